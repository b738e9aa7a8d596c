"""Error measures of a result against ground truth: RMSE, MADE, MAE, compression and coverage."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_bool, checked_choice, checked_nonzero, checked_path
from normalmesh.array_types import Bool, Float, Floating, Int32
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.gauges import DepthGauge, PointGauge
from normalmesh.evaluation.looks import Looks, looks_of
from normalmesh.evaluation.synthetic.relief_case import pixel_centres
from normalmesh.mesh.surface import Surface, face_normals
from normalmesh.normals.camera import MAX_COORDINATE, Camera
from normalmesh.normals.mask_labels import component_labels
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_formats import MESH_SUFFIXES
from normalmesh.output.mesh_libraries import surface_of
from normalmesh.runtime.row_blocks import row_blocks

if TYPE_CHECKING:
    from normalmesh.evaluation.rendering.triangle_model import TriangleModel


#: What :func:`evaluate` aligns.
ALIGNMENTS = ("offset", "scale", "similarity", "rigid")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The errors of a result against ground truth.

    Attributes
    ----------
    rmse, made
        Root mean square and mean absolute depth error in ``units``, each after the alignment ``align``; NaN if no depth
        is known.
    mae
        Mean angle over the pixels between the normals of the result and the true normals, in degrees. Like RMSE and
        MADE, it says nothing about foreground that the result does not cover: see ``covered``.
    vertices, foreground
        Number of vertices of the result (one per pixel for a depth map), and of foreground pixels of the normal map.
    covered, spilled
        Foreground and background pixels that the result covers, as fractions of the foreground.
    depth_error
        Difference (H, W) of result and truth, aligned as for the RMSE; NaN where one of them is unknown.
    angles
        Angular errors (H, W) in degrees; NaN where one of the normals is unknown.
    units
        Unit of the depth.
    looks
        Teeth, bad faces, needles and the like, see :class:`Looks`; None for a depth map, or for a mesh file that
        reaches behind the camera or very far from the image.
    align
        How the result was aligned: one of :data:`ALIGNMENTS`.
    """

    rmse: float
    made: float
    mae: float
    vertices: int
    foreground: int
    covered: float
    spilled: float
    depth_error: Float = field(repr=False)
    angles: Float = field(repr=False)
    units: str
    looks: Looks | None = None
    align: str = "offset"

    @property
    def depths_compared(self) -> int:
        """Number of pixels of RMSE and MADE: counted foreground where both result and truth have a depth."""
        return int(np.count_nonzero(np.isfinite(self.depth_error)))

    @property
    def normals_compared(self) -> int:
        """Number of pixels of the MAE: counted foreground where both result and truth have a normal."""
        return int(np.count_nonzero(np.isfinite(self.angles)))

    @property
    def compression(self) -> float:
        """1 − vertices / foreground pixels."""
        return 1 - self.vertices / self.foreground

    def __str__(self) -> str:
        return (
            f"RMSE {self.rmse:.4g} {self.units}, MADE {self.made:.4g} {self.units} ({self.depths_compared} pixels), "
            f"MAE {self.mae:.3f}° ({self.normals_compared} pixels), "
            f"{self.vertices} vertices (compression {100 * self.compression:.2f} %), "
            f"covers {100 * self.covered:.2f} % of the foreground and {100 * self.spilled:.2f} % outside it"
        )


def evaluate(
    result: Surface | str | PathLike[str] | ArrayLike,
    truth: Case | NormalMap,
    depth: ArrayLike | str | PathLike[str] | None = None,
    *,
    counted: ArrayLike | None = None,
    each_component: bool = True,
    align: str | None = None,
) -> Evaluation:
    """Compare a surface, a mesh file or a depth map with the truth.

    Normals determine a surface up to a constant height (orthographic) or scale (perspective), which is aligned first.

    Parameters
    ----------
    result
        A :class:`Surface`; a mesh file (PLY, OBJ, STL, GLB, glTF, OFF) in the frame of the camera, as
        :meth:`Surface.save` writes it; or a depth map, as an array (H, W), defined as in :meth:`Surface.depth_map`, or
        as a file.
    truth
        A case, or a normal map whose normals are the truth.
    depth
        True depth if ``truth`` is a normal map, as an array (H, W), defined as in :meth:`Surface.depth_map`, NaN where
        unknown; or as a file.
    counted
        Mask (H, W) of the pixels to evaluate; default: all. Pixels that the result does not cover are ignored:
        :attr:`Evaluation.depths_compared` and :attr:`Evaluation.normals_compared` are the numbers of those that count.
    each_component
        Whether to align each 4-connected component of the mask separately; False: all together.
    align
        What is aligned before errors are computed.

        - ``"offset"``, the default for parallel rays: a constant is added to depths, for RMSE the mean difference, for
          MADE the median difference.
        - ``"scale"``, the default for perspective cameras: depths are multiplied, for RMSE by the least-squares scale,
          for MADE by the median ratio. For other cameras, the level of heights must be known.
        - ``"rigid"``: the surface is moved and turned in space so that the squared distances between points of the same
          pixel are least. It forgives a tilt, which inaccurate lights cause.
        - ``"similarity"``: the same with a scale. The paper measures after "a non-rigid alignment" that removes the
          scale, and does not define it further; this is the usual one.

        After a rotation, errors are still differences of depth between points of the same pixel, for MADE less their
        median, and normals are turned, too.

    Returns
    -------
    Evaluation
        Errors, their maps, and the share of the foreground that the result covers. ``print`` it for a summary.

    Warns
    -----
    NormalMeshWarning
        No pixel has both a depth and a true depth; result and truth have opposite directions, or other units.
    """
    checked_bool(each_component, "each_component")
    if isinstance(truth, NormalMap):
        units = truth.camera.default_units
        # Depths that state no unit have that of a surface whose size is not aligned.
        is_sized = checked_align(align, truth.camera) in ("offset", "rigid")
        if is_sized and isinstance(result, Surface) and result.units != "px":
            units = result.units
        truth = Case("truth", truth, None if depth is None else _true_depth(depth), units=units)
    elif not isinstance(truth, Case):
        raise NormalMeshError(f"truth must be a normalmesh.NormalMap or a case, not {type(truth).__name__}")
    elif depth is not None:
        raise NormalMeshError("a case has its own depth: omit depth, or give a normal map as truth")
    normal_map = truth.normal_map
    align = checked_align(align, normal_map.camera)
    found = _Rasterised.of(result, normal_map.camera, normal_map.shape)
    seen = np.isfinite(found.depth)
    counts = seen & normal_map.mask
    if counted is not None:
        inside = checked_nonzero(_checked(counted, normal_map.shape, "counted", "bfiu"), "counted")
        if not (inside & normal_map.mask).any():
            raise NormalMeshError("counted leaves no pixel of the foreground to compare")
        counts &= inside
    rmse, made, error = np.nan, np.nan, np.full(normal_map.shape, np.nan)
    component = component_labels(normal_map.mask)[0] if each_component else np.zeros(normal_map.shape, np.int32)
    gauge, both = _depth_gauge(found.depth, truth, counts, component, align)
    if gauge is not None:
        error[both] = gauge.squares()
        rmse, made = float(np.sqrt(np.mean(error[both] ** 2))), float(np.mean(np.abs(gauge.absolutes())))
    angles = _angles(found.normals, truth.normals, component, gauge)
    angles[~counts] = np.nan
    if (doubt := _doubt(truth, counts, gauge)) is not None:
        warnings.warn(doubt, NormalMeshWarning, stacklevel=2)
    return Evaluation(
        rmse=rmse,
        made=made,
        mae=float(np.nanmean(angles)) if np.isfinite(angles).any() else np.nan,
        vertices=found.vertices,
        foreground=normal_map.foreground,
        covered=int(np.count_nonzero(seen & normal_map.mask)) / normal_map.foreground,
        spilled=int(np.count_nonzero(seen & ~normal_map.mask)) / normal_map.foreground,
        depth_error=error,
        angles=angles,
        units=truth.units,
        looks=looks_of(found.surface, found.owners, normal_map) if found.surface and found.owners is not None else None,
        align=align,
    )


def _true_depth(depth: ArrayLike | str | PathLike[str]) -> Float:
    """Return a true depth (H, W), given as an array or a file."""
    if isinstance(depth, str | PathLike):
        return read_depth_map(checked_path(depth, "depth"))
    return checked_array(depth, "depth").astype(np.float64)


def checked_align(align: str | None, camera: Camera) -> str:
    """Return one of :data:`ALIGNMENTS`, by default what normals leave open behind the camera."""
    return camera.gauge if align is None else checked_choice(align, ALIGNMENTS, "align")


def _depth_gauge(
    depth: Float, truth: Case, counts: Bool, component: Int32, align: str
) -> tuple[DepthGauge | PointGauge | None, Bool]:
    """Return the depths to compare, None if there are none, and where (H, W) they are."""
    if truth.depth is None:
        return None, np.zeros_like(counts)
    camera, both = truth.normal_map.camera, counts & np.isfinite(truth.depth)
    found, true, which = depth[both], truth.depth[both], component[both]
    camera.check_depths(true, "true depths, which are NaN where they are unknown,")
    if np.abs(true).max(initial=0.0) > MAX_COORDINATE:
        raise NormalMeshError(f"true depths must be at most {MAX_COORDINATE:.0e}; NaN where they are unknown")
    if len(true) == 0:
        return None, both
    if align in ("offset", "scale"):
        return DepthGauge(found, true, which, is_scale=align == "scale"), both
    rows, columns = np.nonzero(both)
    screen = np.stack([columns, rows], axis=1) + 0.5
    points, true_points = (camera.points(screen, camera.unknown_of_depth(depths)) for depths in (found, true))
    return PointGauge(points, true_points, which, camera, has_scale=align == "similarity"), both


def _angles(found: Floating, true: Floating, component: Int32, gauge: DepthGauge | PointGauge | None) -> Float:
    """Return the angles (H, W) in degrees between true normals (H, W, 3) and those found, turned as the gauge is."""
    angles, rotations = np.empty(component.shape), None
    if isinstance(gauge, PointGauge):
        # A component without a true depth is not turned.
        rotations = np.tile(np.eye(3), (int(component.max()) + 1, 1, 1))
        rotations[: len(gauge.motions.rotation)] = gauge.motions.rotation
    for rows in row_blocks(component.shape):
        normals = found[rows]
        if rotations is not None:
            normals = np.einsum("hwij,hwj->hwi", rotations[component[rows]], normals)
        angles[rows] = angles_between(normals, true[rows])
    return angles


def _doubt(truth: Case, counts: Bool, gauge: DepthGauge | PointGauge | None) -> str | None:
    """Return what makes the comparison of depths doubtful, or None."""
    if truth.depth is None or not counts.any():
        return None
    if gauge is None:
        return f"none of the {np.count_nonzero(counts)} pixels to compare has a true depth: is it of another image?"
    if isinstance(gauge, DepthGauge) and truth.normal_map.camera.gauge == "offset" and gauge.lacks_level():
        return (
            "a constant explains nearly all of the error, and normals of an orthographic map do not determine it: "
            'use align="offset" or "similarity" (--align)'
        )
    return gauge.doubt()


def mean_angle(surface: Surface, normal_map: NormalMap) -> float:
    """Return the mean angle between a surface and the normals that it was reconstructed from, in degrees.

    It is the MAE of :func:`evaluate`, except that foreground pixels that no face covers count as 90°.
    """
    return mean_of_angles(*sum_of_angles(surface, normal_map), normal_map.foreground)


def sum_of_angles(surface: Surface, normal_map: NormalMap) -> tuple[float, int]:
    """Return the sum of the angles in rad at pixels of the foreground that a surface covers, and their number."""
    normals = surface.normal_map()
    total, covered_pixels = 0.0, 0
    for rows in row_blocks(normal_map.shape):
        covered = normal_map.mask[rows] & normals[rows].any(axis=-1)
        # Half the distance between unit vectors is the sine of half their angle.
        chords = np.linalg.norm(normals[rows][covered] - normal_map.normals[rows][covered], axis=-1)
        total += float(np.arcsin(np.minimum(0.5 * chords, 1)).sum(dtype=np.float64))
        covered_pixels += len(chords)
    return 2 * total, covered_pixels


def mean_of_angles(total: float, covered: float, foreground: int) -> float:
    """Return the mean angle in degrees from a sum in rad over covered pixels; other foreground counts as 90°."""
    return (math.degrees(total) + 90.0 * (foreground - covered)) / foreground


def angles_between(first: Floating, second: Floating) -> Float:
    """Return the angles (...) in degrees between vectors (..., 3) of any length; NaN where one of them is zero."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    # The arc cosine would be inaccurate at small angles.
    angles: Float = np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(axis=-1)))
    angles[~(a.any(axis=-1) & b.any(axis=-1))] = np.nan
    return angles


def normals_of_depth(depth: ArrayLike, camera: Camera) -> Float:
    """Return the unit normals (H, W, 3) of a depth map (H, W), towards the viewer; zero where neighbours are missing.

    A normal is the cross product of two tangents: the mean difference in space to the left and right neighbours, or the
    only one of them, and that to the neighbours above and below.
    """
    depth = np.asarray(depth, np.float64)
    normals = np.empty((*depth.shape, 3))
    for rows in row_blocks(depth.shape):
        near = slice(max(rows.start - 1, 0), min(rows.stop + 1, len(depth)))
        points = camera.points(pixel_centres(near, depth.shape[1]), camera.unknown_of_depth(depth[near]))
        block = np.cross(_mean_steps(points, 0), _mean_steps(points, 1))
        normals[rows] = block[rows.start - near.start : rows.stop - near.start]
    lengths = np.linalg.norm(normals, axis=-1, keepdims=True)
    np.divide(normals, lengths, out=normals, where=lengths > 0)
    return normals


def _mean_steps(points: Float, axis: int) -> Float:
    """Return the mean (H, W, 3) of forward and backward differences along an axis, ignoring NaN."""
    steps = np.diff(points, axis=axis)
    nothing = np.full_like(np.take(points, [0], axis), np.nan)
    pair = np.stack([np.concatenate([steps, nothing], axis), np.concatenate([nothing, steps], axis)])
    known = np.isfinite(pair).all(axis=-1, keepdims=True)
    return np.where(known, pair, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


@dataclass(frozen=True, eq=False)
class _Rasterised:
    """A result at the pixels: depth (H, W) and unit normals (H, W, 3), NaN and zero where there is no surface.

    A mesh is known as a surface, too, with the face (H, W) of each pixel or −1.
    """

    depth: Float
    normals: Floating
    vertices: int
    surface: Surface | None = None
    owners: Int32 | None = None

    @classmethod
    def of(
        cls, result: Surface | str | PathLike[str] | ArrayLike, camera: Camera, shape: tuple[int, int]
    ) -> _Rasterised:
        if isinstance(result, Surface):
            if result.shape != shape:
                raise NormalMeshError(
                    f"the surface has {shape_text(result.shape)} pixels but the truth has {shape_text(shape)}"
                )
            if result.camera != camera:
                raise NormalMeshError(
                    f"the surface was seen by another camera ({result.camera}) than the truth ({camera}): their depths "
                    "differ; reconstruct the surface with the camera of the truth"
                )
            return cls(result.depth_map(), result.normal_map(), len(result.vertices), result, result.owners()[1])
        if isinstance(result, str | PathLike):
            if checked_path(result, "result").suffix.lower() in MESH_SUFFIXES:
                return cls._of_mesh(Path(result), camera, shape)
            result = read_depth_map(result)
        depth = _checked(result, shape, "the depth map").astype(np.float64)
        depth[~np.isfinite(depth)] = np.nan
        camera.check_depths(depth, "values of the depth map")
        return cls(depth, normals_of_depth(depth, camera), int(np.isfinite(depth).sum()))

    @classmethod
    def _of_mesh(cls, path: Path, camera: Camera, shape: tuple[int, int]) -> _Rasterised:
        from normalmesh.evaluation.rendering.rendering import cast
        from normalmesh.evaluation.rendering.triangle_model import TriangleModel

        model = TriangleModel.of(path)
        seen = surface_seen(model, camera, shape)
        # Rays must not hit the walls of a surface, along which they run.
        vertices, faces = (model.vertices, model.faces) if seen is None else (seen.vertices, seen.faces)
        hit, depth = cast(vertices, faces, camera, shape)
        normals = face_normals(vertices, faces)[hit]
        rows, columns = np.nonzero(hit >= 0)
        to_viewer = camera.towards_viewer * camera.rays(columns + 0.5, rows + 0.5)
        # The faces of a mesh file may have either orientation.
        normals[rows, columns] *= np.where((normals[rows, columns] * to_viewer).sum(axis=1) < 0, -1, 1)[:, None]
        normals[hit < 0] = 0
        return cls(depth, normals, len(vertices), seen, hit)


def surface_seen(model: TriangleModel, camera: Camera, shape: tuple[int, int]) -> Surface | None:
    """Return a model as a surface; None if a vertex is behind the camera or too far from the image."""
    try:
        return surface_of((model.vertices, model.faces), camera, shape)
    except NormalMeshError:
        return None


def _checked(values: ArrayLike, shape: tuple[int, int], name: str, kinds: str = "fiu") -> NDArray[Any]:
    array = checked_array(values, name, kinds=kinds)
    if array.shape != shape:
        raise NormalMeshError(f"{name} is {shape_text(array.shape)} but normals are {shape_text(shape)}")
    return array
