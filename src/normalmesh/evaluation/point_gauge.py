"""Aligning points with the truth by a rotation and a translation, or by a similarity, of each component."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.evaluation.depth_gauge import DepthGauge
from normalmesh.normals.camera import Camera

#: Ratio of singular values below which points lie on a line, around which any rotation is as good.
COLLINEAR = 1e-9


class Motions(NamedTuple):
    """What moves points p of component c to ``scale[c] · rotation[c] (p − origin[c]) + target[c]``.

    Attributes
    ----------
    scale : (C,)
    rotation : (C, 3, 3)
    origin, target : (C, 3)
    """

    scale: Float
    rotation: Float
    origin: Float
    target: Float


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
