"""What single precision, in which most formats store numbers, keeps of a surface far from the origin."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import Float, Floating
from normalmesh.errors import NormalMeshWarning, path_text

if TYPE_CHECKING:
    from trimesh import Trimesh

    from normalmesh.mesh.surface import Surface


#: Largest rounding of a position, as a share of a pixel of the surface. A face of one pixel turns by 0.06°.
PIXEL_SHARE = 1e-3
#: The same as a share of the median edge of a mesh whose pixels are not known: their edges are several pixels long.
EDGE_SHARE = 1e-4
#: Largest rounding of a depth, as a share of the median step between neighbouring pixels.
STEP_SHARE = 1e-2
#: Relative size of steps that are none, but the rounding of double precision.
NO_STEP = 1e-12
#: Number of rows of a depth map that are looked at.
SAMPLED_ROWS = 1000


def surface_tolerance(surface: Surface) -> float:
    """Return the largest rounding of the vertices of a surface that keeps its shape."""
    camera = surface.camera
    distance = float(np.median(camera.depth_per_unknown(camera.depth(surface.vertices))))
    return PIXEL_SHARE * camera.pixel_length * distance


def mesh_tolerance(mesh: Trimesh) -> float:
    """Return the largest rounding of the vertices of a mesh that keeps its shape."""
    corners = mesh.vertices[mesh.faces]
    lengths = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    return EDGE_SHARE * float(np.median(lengths))


def depth_tolerance(depth: Floating) -> float:
    """Return the largest rounding of a depth map (H, W) that keeps its shape; infinite if it is flat."""
    sample = depth[:: -(-len(depth) // SAMPLED_ROWS)]
    steps = np.abs(np.diff(sample, axis=1))
    steps = steps[steps > NO_STEP * _largest(sample)]
    return STEP_SHARE * float(np.median(steps)) if steps.size else np.inf


def rounding(values: Floating) -> float:
    """Return the largest error of values, some of which may not be finite, in single precision; 0 if it is exact."""
    with np.errstate(over="ignore"):
        exact = np.array_equal(values.astype(np.float32), values, equal_nan=True)
        return 0.0 if exact else float(np.spacing(np.float32(_largest(values)))) / 2


def centre(vertices: Float) -> Float:
    """Return the centre (3,) of the bounding box, rounded to single precision: readers that round it agree on it."""
    middle: Float = vertices.min(axis=0) / 2 + vertices.max(axis=0) / 2
    return middle.astype(np.float32).astype(np.float64)


def warn_of_rounding(path: Path, what: str, error: float, advice: str) -> None:
    """Warn that a file does not keep the shape."""
    warnings.warn(
        f"{path_text(path)}: the format has single precision, which rounds {what} so far from the origin by up to "
        f"{error:.2g}; {advice}",
        NormalMeshWarning,
        stacklevel=2,
    )


def _largest(values: Floating) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
