"""Aligning depths with the truth: normals determine them up to a constant or a scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Float, Integer

#: Correlation below which result and truth increase in opposite directions.
OPPOSITE = -0.5
#: Share of the error that may remain if a scale explains it.
EXPLAINED = 0.1


@dataclass(frozen=True, eq=False)
class DepthGauge:
    """Align depths (K,) with the truth (K,) by a constant or scale per component."""

    found: Float
    truth: Float
    component: Integer
    is_scale: bool

    def squares(self) -> Float:
        """Return the errors (K,) after least-squares alignment."""
        count = np.bincount(self.component)
        errors: Float
        if not self.is_scale:
            shift = np.bincount(self.component, self.found - self.truth) / np.maximum(count, 1)
            errors = self.found - self.truth - shift[self.component]
            return errors
        least = np.bincount(self.component, self.found * self.truth)
        scale = least / np.maximum(np.bincount(self.component, self.found**2), 1e-300)
        errors = scale[self.component] * self.found - self.truth
        return errors

    def absolutes(self) -> Float:
        """Return the errors (K,) after alignment by the median difference or ratio."""
        from scipy import ndimage

        which = np.unique(self.component)
        errors: Float
        if not self.is_scale:
            shift = ndimage.median(self.found - self.truth, self.component, which)
            errors = self.found - self.truth - shift[np.searchsorted(which, self.component)]
            return errors
        ratio = ndimage.median(self.truth / self.found, self.component, which)
        errors = ratio[np.searchsorted(which, self.component)] * self.found - self.truth
        return errors

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
