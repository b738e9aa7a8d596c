"""The page of anything that ``normalmesh reconstruct`` reads or writes, for ``view`` and ``report``."""

from __future__ import annotations

from pathlib import Path

import normalmesh as nm
from normalmesh.array_types import Float
from normalmesh.cli.console import Console, each_warning
from normalmesh.cli.map_reading import MapReading
from normalmesh.decimation.stopping import DEFAULT_COMPRESSION
from normalmesh.errors import NormalMeshError, path_text, warn_caller
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
from normalmesh.output.mesh_reading import read_tileset
from normalmesh.output.tileset import TILESET
from normalmesh.report import page

PAGES = (".html", ".htm")

#: Share of the foreground, below which a warning questions whether surface and normal map belong together.
MIN_COVERED = 0.5


def page_of(file: Path, reading: MapReading, console: Console) -> bytes:
    """Return the page of a mesh, heights, a folder of 3D Tiles, a report, or a normal map, which is reconstructed."""
    messages: list[str] = []
    with each_warning(messages.append, shown=True):
        if file.suffix.lower() in PAGES and not file.is_dir():
            return file.read_bytes()
        model = _model(file)
        if model is not None:
            return page.mesh_page(model, file, messages)
        found = _map_or_heights(file, reading)
        if not isinstance(found, NormalMap):
            return page.surface_page(_height_surface(file, found, reading), source=file, warnings=messages)
        surface = nm.reconstruct(found, progress=console.progress)
        settings = {"compression": DEFAULT_COMPRESSION, **vars(reading)}
        given = {name: value for name, value in settings.items() if value is not None}
        return page.surface_page(surface, found, source=file, settings=given, warnings=messages)


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
        covered = 1 - Coverage.of(surface.mesh, normal_map.mask).uncovered_share
        if covered < MIN_COVERED:
            warn_caller(
                f"{path_text(file)} covers only {100 * covered:.1f} % of the foreground of the normal map: check "
                "--camera, and --pixel-size if it is in mm"
            )
        return page.surface_page(surface, normal_map, source=file, warnings=messages, texture=texture)


def _model(file: Path) -> TriangleModel | None:
    """Return the model of a mesh file or of 3D Tiles; None if the file is something else."""
    if file.is_dir() or file.name == TILESET:
        vertices, faces, complete = read_tileset(file if file.is_dir() else file.parent, page.MAX_FACES)
        if not complete:
            warn_caller(f"of {path_text(file)}, a coarser level of {len(faces)} faces is shown")
        return TriangleModel.of((vertices, faces))
    file_format(file)  # raises if the file is missing or empty
    return TriangleModel.of(file) if file.suffix.lower() in MESH_SUFFIXES else None


def _map_or_heights(file: Path, reading: MapReading) -> NormalMap | Float:
    """Return the normal map of a file, or its heights (H, W) if it has one number for each pixel."""
    if stored_range(file) is None:
        try:
            return reading.normal_map(file)
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


def _height_surface(file: Path, heights: Float, reading: MapReading) -> Surface:
    """Return the surface of heights (H, W), seen by the camera of the options or of their description."""
    found = stored_range(file) if reading.has_camera else read_height_range(file)
    units = "px" if found is None or found.units is None else found.units
    camera = None if found is None else found.camera
    if reading.has_camera:
        camera = reading.questioned_camera((heights.shape[0], heights.shape[1]), file)
    elif camera is None:
        warn_caller(f"{path_text(file)} has no pixel size: heights are taken to be in pixels; else give --pixel-size")
        camera = Orthographic()
    surface = grid_surface(heights, camera, units, page.MAX_FACES)
    if 2 * heights.size > page.MAX_FACES:
        warn_caller(f"of {heights.shape[1]} × {heights.shape[0]} heights, {len(surface.vertices)} are shown")
    return surface
