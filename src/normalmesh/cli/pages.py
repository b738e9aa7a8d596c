"""The page of anything that ``normalmesh reconstruct`` reads or writes, for ``view`` and ``report``."""

from __future__ import annotations

import warnings
from pathlib import Path

import normalmesh as nm
from normalmesh.array_types import Float
from normalmesh.cli.console import Console, each_warning
from normalmesh.cli.map_reading import CameraChoice, MapReading
from normalmesh.decimation.stopping import DEFAULT_COMPRESSION
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text
from normalmesh.evaluation.metrics import surface_seen
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files.formats import file_format
from normalmesh.files.height_png import read_height_range, stored_range
from normalmesh.maps.stored_normals import read_array
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.height_grid import grid_surface
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_formats import MESH_SUFFIXES
from normalmesh.output.tileset import TILESET
from normalmesh.output.tileset_reading import read_tileset
from normalmesh.report import page

PAGES = (".html", ".htm")

#: Share of the foreground, below which a warning questions whether surface and normal map belong together.
MIN_COVERED = 0.5


def page_of(file: Path, reading: MapReading, view: CameraChoice, console: Console) -> bytes:
    """Return the page of a mesh, heights, a folder of 3D Tiles, a report, or a normal map, which is reconstructed.

    ``view`` is the camera that the options choose.
    """
    messages: list[str] = []
    with each_warning(messages.append, shown=True):
        if file.suffix.lower() in PAGES and not file.is_dir():
            return file.read_bytes()
        model = _model(file)
        if model is not None:
            return page.mesh_page(model, file, messages)
        found = _map_or_heights(file, reading, view)
        if isinstance(found, NormalMap):
            return _reconstructed(file, found, reading, messages, console)
        return page.surface_page(_height_surface(file, found, view), source=file, warnings=messages)


def compared_page(file: Path, normal_map: NormalMap, texture: Path | None, console: Console) -> bytes:
    """Return the page of a mesh, heights or 3D Tiles with comparisons with the normal map that they came from."""
    messages: list[str] = []
    with each_warning(messages.append, shown=True):
        model = _model(file)
        surface: Surface | None
        if model is None:
            depth = read_depth_map(file)
            if depth.shape != normal_map.shape:
                raise NormalMeshError(
                    f"{path_text(file)} has {depth.shape[1]} × {depth.shape[0]} pixels but the normal map "
                    f"{normal_map.shape[1]} × {normal_map.shape[0]}: give the map that it was reconstructed from"
                )
            surface = grid_surface(depth, normal_map.camera, normal_map.camera.default_units)
        else:
            surface = surface_seen(model, normal_map.camera, normal_map.shape)
        if surface is None:
            raise NormalMeshError(
                f"{path_text(file)}: the mesh reaches behind the camera or far from the image of the normal map; check "
                "--camera and --pixel-size, or leave out --normals"
            )
        _question_coverage(file, surface, normal_map)
        return page.surface_page(surface, normal_map, source=file, warnings=messages, texture=texture)


def _question_coverage(file: Path, surface: Surface, normal_map: NormalMap) -> None:
    """Warn if a surface hardly covers the normal map that it is compared with."""
    covered = 1 - Coverage.of(surface.mesh, normal_map.mask).uncovered_share
    if covered < MIN_COVERED:
        _warn(
            f"{path_text(file)} covers only {100 * covered:.1f} % of the foreground of the normal map: check --camera, "
            "and --pixel-size if it is in mm"
        )


def _model(file: Path) -> TriangleModel | None:
    """Return the model of a mesh file or of 3D Tiles; None if the file is something else."""
    if file.is_dir() or file.name == TILESET:
        vertices, faces, complete = read_tileset(file if file.is_dir() else file.parent, page.MAX_FACES)
        if not complete:
            _warn(f"of {path_text(file)}, a coarser level of {len(faces)} faces is shown")
        return TriangleModel.of((vertices, faces))
    file_format(file)  # raises if the file is missing or empty
    return TriangleModel.of(file) if file.suffix.lower() in MESH_SUFFIXES else None


def _map_or_heights(file: Path, reading: MapReading, view: CameraChoice) -> NormalMap | Float:
    """Return the normal map of a file, or its heights (H, W) if it has one number for each pixel."""
    if stored_range(file) is None:
        try:
            return reading.normal_map(file, view)
        except NormalMeshError as error:
            if _holds_normals(file):
                raise
            try:
                return read_depth_map(file)
            except NormalMeshError:
                raise error from None
    return read_depth_map(file)


def _holds_normals(file: Path) -> bool:
    """Check whether a file has the channels of normals, whatever is wrong with them or with the options."""
    try:
        read_array(file)
    except NormalMeshError:
        return False
    return True


def _height_surface(file: Path, heights: Float, view: CameraChoice) -> Surface:
    """Return the surface of heights (H, W), seen by the camera of the options or of their description."""
    found = stored_range(file) if view.is_given else read_height_range(file)
    units = "px" if found is None or found.units is None else found.units
    camera = None if found is None else found.camera
    if view.is_given:
        camera = view.questioned((heights.shape[0], heights.shape[1]), file)
    elif camera is None:
        _warn(f"{path_text(file)} has no pixel size: heights are taken to be in pixels; else give --pixel-size")
        camera = Orthographic()
    surface = grid_surface(heights, camera, units, page.MAX_FACES)
    if 2 * heights.size > page.MAX_FACES:
        _warn(f"of {heights.shape[1]} × {heights.shape[0]} heights, {len(surface.vertices)} are shown")
    return surface


def _reconstructed(
    file: Path, normal_map: NormalMap, reading: MapReading, messages: list[str], console: Console
) -> bytes:
    surface = nm.reconstruct(normal_map, progress=console.progress)
    settings = {"compression": DEFAULT_COMPRESSION, **vars(reading)}
    given = {name: value for name, value in settings.items() if value is not None}
    return page.surface_page(surface, normal_map, source=file, settings=given, warnings=messages)


def _warn(text: str) -> None:
    """Print a warning, which the page shows, too."""
    warnings.warn(text, NormalMeshWarning, stacklevel=3)
