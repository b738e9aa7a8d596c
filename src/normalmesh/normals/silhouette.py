"""Silhouettes: at the outline of an object its normals lean outwards, which distinguishes bumps from dents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Float32
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.integrability import CANDIDATES, Preference

_DEPTH = 2.0  # pixels inside the outline at which normals are sampled
_BORDER = 4  # pixels: an outline closer to the image border than this is a crop, not a silhouette
_LEANS = 0.8  # sine of 53°: normals at the edge of any cut-out may lean less than this
_CELLS = 10  # number of cells, along the longer side of the outline, of the grid that divides it into arcs
_FEW = 30  # minimum number of pixels of an outline


@dataclass(frozen=True)
class Silhouette:
    """Directions of the normals along the outline of the mask, in each of the sixteen :data:`CANDIDATES`."""

    outward: Float  # (16,) share of the outline where normals lean outwards, or
    inward: Float  # (16,) inwards, by more than 53°
    arcs: Float  # (16, A) for each arc, its part of ``outward − inward``
    all_round: Bool  # (16,) whether they lean outwards on opposite sides: a slope cut out of a relief has one only

    @property
    def scores(self) -> Float:
        """(16,) in [−1, 1]: share of the outline that leans outwards less the share that leans inwards."""
        return self.outward - self.inward

    def preference(self, first: int, second: int) -> Preference:
        """Return the evidence for one candidate against another: none, unless the first leans outwards all round."""
        if not self.all_round[first] or self.inward[first] > 0.1 * self.outward[first]:
            return Preference()
        votes = self.arcs[first] - self.arcs[second]
        return Preference.of(votes, float(votes.sum()))


def silhouette(channels: Float32, foreground: Bool, step: int, camera: Camera) -> Silhouette | None:
    """Evaluate the normals along the outline of the foreground; None if there is no outline.

    Channels (H, W, 3) have unit length on the foreground (H, W); the next row or column is ``step`` pixels of the
    camera's map away.
    """
    rows, columns, outward = _outline(foreground)
    if rows.size < _FEW:
        return None
    tau_u, tau_v = camera.tangents
    towards = camera.to_viewer(columns * step + 0.5, rows * step + 0.5)
    direction = outward[:, :1] * tau_u + outward[:, 1:] * tau_v
    direction -= np.sum(direction * towards, axis=-1, keepdims=True) * towards
    direction /= np.maximum(np.linalg.norm(direction, axis=-1, keepdims=True), 1e-12)

    normals = [Convention(axes).to_project(channels[rows, columns]) for axes in CANDIDATES]
    lean = np.stack([np.sum(normal * direction, axis=-1) for normal in normals])
    leans = (lean > _LEANS).astype(float) - (lean < -_LEANS)
    arc = _arcs(rows, columns)
    arcs = np.stack([np.bincount(arc, lean) for lean in leans]) / rows.size
    all_round = np.array([_on_opposite_sides(outward[lean > 0]) for lean in leans])
    return Silhouette((leans > 0).mean(axis=1), (leans < 0).mean(axis=1), arcs, all_round)


def _outline(foreground: Bool) -> tuple[NDArray[np.intp], NDArray[np.intp], Float]:
    """Return rows, columns (N,) of the pixels along the outline, and the outward direction (N, 2) in u, v."""
    if foreground.all():
        return np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros((0, 2))
    from scipy import ndimage

    # One pixel more, for differences across a pixel.
    pad = _BORDER + 1
    padded = np.pad(foreground, pad, mode="edge")
    near = np.hypot(*np.mgrid[-2:3, -2:3]) <= _DEPTH
    along = padded & ~ndimage.binary_erosion(padded, near)
    inner = pad + _BORDER
    along[:inner] = along[-inner:] = along[:, :inner] = along[:, -inner:] = False
    rows, columns = np.nonzero(along)
    blurred = ndimage.gaussian_filter(padded.astype(np.float32), _DEPTH)
    u = blurred[rows, columns - 1] - blurred[rows, columns + 1]
    v = blurred[rows - 1, columns] - blurred[rows + 1, columns]
    outward = np.stack([u, v], axis=-1).astype(np.float64)
    outward /= np.maximum(np.linalg.norm(outward, axis=-1, keepdims=True), 1e-12)
    return rows - pad, columns - pad, outward


def _arcs(rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number (N,) of the arc that each pixel of the outline belongs to."""
    cell = max(int(np.ptp(rows)), int(np.ptp(columns))) // _CELLS + 1
    _, arc = np.unique(rows // cell * (columns.max() + 1) + columns // cell, return_inverse=True)
    return arc


def _on_opposite_sides(outward: Float) -> bool:
    """Return whether the directions (N, 2) lead both left and right, or both up and down."""
    enough = 0.1 * len(outward)
    return any(min(np.sum(part > 0.7), np.sum(part < -0.7)) > enough for part in outward.T)
