"""Aligning a result with the truth, component by component: what normals leave open does not count as an error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.normals.camera import Camera

#: Correlation below which result and truth increase in opposite directions.
OPPOSITE = -0.5
#: Share of the error that may remain if a scale explains it.
EXPLAINED = 0.1
#: Ratio of singular values below which points lie on a line, around which any rotation is as good.
COLLINEAR = 1e-9


@dataclass(frozen=True, eq=False)
class DepthGauge:
    """Align depths (K,) with the truth (K,) by a constant or scale per component."""

    found: Float
    truth: Float
    component: Integer
    is_scale: bool

    def squares(self) -> Float:
        """Return the errors (K,) after least-squares alignment."""
        if not self.is_scale:
            return self._centred(self.found - self.truth)
        least = np.bincount(self.component, self.found * self.truth)
        scale = least / np.maximum(np.bincount(self.component, self.found**2), 1e-300)
        return scale[self.component] * self.found - self.truth

    def absolutes(self) -> Float:
        """Return the errors (K,) after alignment by the median difference or ratio."""
        from scipy import ndimage

        values = self.truth / self.found if self.is_scale else self.found - self.truth
        which, place = np.unique(self.component, return_inverse=True)
        medians: Float = ndimage.median(values, self.component, which)[place]
        return medians * self.found - self.truth if self.is_scale else values - medians

    def lacks_level(self) -> bool:
        """Return whether a constant, which a scale does not add, explains nearly all of the error."""
        found, truth = self._centred(self.found), self._centred(self.truth)
        rest = truth - float(found @ truth) / max(float(found @ found), 1e-300) * found
        return self.is_scale and bool(np.linalg.norm(rest) < EXPLAINED * np.linalg.norm(self.squares()))

    def doubt(self) -> str | None:
        """Return a warning if result and truth have opposite directions or other units, else None."""
        found, truth = self._centred(self.found), self._centred(self.truth)
        product, size = float(found @ truth), float(np.linalg.norm(found))
        if product < OPPOSITE * size * np.linalg.norm(truth):
            return "result and truth increase in opposite directions: negate the truth (add or remove --away)"
        if self.is_scale or size == 0 or product <= 0:
            return None
        scale = product / size**2
        if np.linalg.norm(truth - scale * found) > EXPLAINED * np.linalg.norm(truth - found) or abs(scale - 1) < 0.02:
            return None
        return (
            f"the truth is {scale:.4g} times the result, which explains nearly all of the error: check the units, and "
            "the pixel size of the camera"
        )

    def _centred(self, values: Float) -> Float:
        """Return values (K,) less their mean in each component."""
        means = np.bincount(self.component, values) / np.maximum(np.bincount(self.component), 1)
        return values - means[self.component]


class Motions(NamedTuple):
    """What moves points p of component c to ``scale[c] · rotation[c] (p − origin[c]) + target[c]``."""

    scale: Float  # (C,)
    rotation: Float  # (C, 3, 3)
    origin: Float  # (C, 3)
    target: Float  # (C, 3)


@dataclass(frozen=True, eq=False)
class PointGauge:
    """Align points (K, 3) with the true points (K, 3) of the same pixels, component (K,) by component.

    The sum of the squared distances in space is minimised (Kabsch; with a scale, Umeyama 1991). Errors are differences
    of depth afterwards, as those of :class:`DepthGauge`, so that all alignments can be compared.
    """

    found: Float
    truth: Float
    component: Integer
    camera: Camera
    has_scale: bool

    @cached_property
    def motions(self) -> Motions:
        """The best motion of each component; a component on a line is not turned."""
        count = np.maximum(np.bincount(self.component), 1)
        origin, target = (self._sums(points) / count[:, None] for points in (self.found, self.truth))
        p, q = self.found - origin[self.component], self.truth - target[self.component]
        covariance = self._sums((q[:, :, None] * p[:, None, :]).reshape(-1, 9)).reshape(-1, 3, 3)
        left, values, right = np.linalg.svd(covariance)
        signs = np.ones_like(values)
        signs[:, 2] = np.sign(np.linalg.det(left @ right))
        rotation: Float = (left * signs[:, None, :]) @ right
        undetermined = values[:, 1] <= COLLINEAR * values[:, 0]
        rotation[undetermined] = np.eye(3)
        scale = np.ones(len(count))
        if self.has_scale:
            squares = self._sums((p**2).sum(axis=1, keepdims=True))[:, 0]
            fitted = np.einsum("cij,cij->c", rotation, covariance)
            np.divide(fitted, squares, out=scale, where=(squares > 0) & (fitted > 0))
        return Motions(scale, rotation, origin, target)

    def squares(self) -> Float:
        """Return the differences (K,) of depth after the least-squares alignment."""
        scale, rotation, origin, target = (each[self.component] for each in self.motions)
        moved = scale[:, None] * np.einsum("kij,kj->ki", rotation, self.found - origin) + target
        return self.camera.depth(moved) - self.camera.depth(self.truth)

    def absolutes(self) -> Float:
        """Return the same, less their median in each component."""
        errors = self.squares()
        return DepthGauge(errors, np.zeros_like(errors), self.component, is_scale=False).absolutes()

    def doubt(self) -> str | None:
        """Return a warning if result and truth have opposite directions or, without a scale, other units."""
        found, truth = (self.camera.depth(points) for points in (self.found, self.truth))
        return DepthGauge(found, truth, self.component, is_scale=self.has_scale).doubt()

    def _sums(self, values: Float) -> Float:
        """Return the sums (C, k) of values (K, k) over each component."""
        return np.stack([np.bincount(self.component, column) for column in values.T], axis=1)
