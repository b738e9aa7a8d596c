"""Normal maps and surfaces as HTML for notebooks: pictures and a viewer of bounded size, with figures."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.report.embedded_pictures import normals_address
from normalmesh.report.figures import Rows, about_map, count
from normalmesh.report.page import embedded_page

if TYPE_CHECKING:
    from normalmesh.normals.normal_map import NormalMap

#: Longest side of the picture of a normal map, and height of the viewer of a surface, in pixels.
PICTURE_SIDE, VIEWER_HEIGHT = 400, 480
#: Vertices that the viewer of a surface shows, at most about; a notebook keeps some 20 bytes for each.
MAX_VERTICES = 100_000
#: Height of a cell in which vertices become one, in sides of the cell.
CELL_HEIGHT = 4

logger = logging.getLogger("normalmesh")
Shown = TypeVar("Shown")


def html_or_none(make: Callable[[Shown], str], shown: Shown) -> str | None:
    """Return the HTML of an object, or None if it cannot be made: notebooks then show its ``repr``."""
    try:
        return make(shown)
    # Whatever the reason is, displaying an object must not stop the cell that computed it.
    except Exception:
        logger.debug("no HTML for a notebook", exc_info=True)
        return None


def normal_map_html(normal_map: NormalMap) -> str:
    """Return a picture of a normal map and its figures."""
    rows, columns = normal_map.shape
    figures: Rows = [
        ("Size", f"{columns} × {rows} pixels"),
        *about_map(normal_map),
        ("Camera", normal_map.camera.describe()),
    ]
    picture = normals_address(normal_map, PICTURE_SIDE)
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f'<img src="{escape(picture)}" alt="Normal map" style="max-width:100%">'
        f"<div><strong>NormalMap</strong>{_table(figures)}</div></div>"
    )


def surface_html(surface: Surface) -> str:
    """Return a viewer in which the surface can be turned, and its figures.

    The page is inside the HTML and loads nothing. It runs in a sandbox, apart from the notebook.
    """
    surface.check_arrays()
    shown = thinned(surface, MAX_VERTICES)
    page = embedded_page(surface, shown).decode()
    caption = repr(surface)
    if shown is not surface:
        caption += f"; shown with {count(len(shown.vertices))} vertices"
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="Surface in 3D" '
        f'style="width:100%;height:{VIEWER_HEIGHT}px;border:0"></iframe>'
        f"<div><small>{escape(caption)}</small></div>"
    )


def thinned(surface: Surface, most: int) -> Surface:
    """Return a surface with about ``most`` vertices, the means of those in each cell of a grid over the screen.

    Cells end at jumps of the depth by more than :data:`CELL_HEIGHT` of their sides. The surface itself is returned if
    it has no more vertices.
    """
    if len(surface.vertices) <= most:
        return surface
    camera, vertices, screen = surface.camera, surface.vertices, surface.screen
    side = math.sqrt(np.abs(surface.mesh.areas).sum() / most)
    heights = camera.unknown_of_depth(camera.depth(vertices)) / (CELL_HEIGHT * camera.pixel_length)
    places = np.column_stack([screen, heights]) / side
    cells = np.floor(places - places.min(axis=0)).astype(np.int64)
    keys = np.ravel_multi_index(tuple(cells.T), tuple(cells.max(axis=0) + 1))
    cell = np.unique(keys, return_inverse=True)[1].reshape(-1)
    members = np.bincount(cell)
    vertices, screen = (
        np.stack([np.bincount(cell, column) / members for column in array.T], axis=1) for array in (vertices, screen)
    )
    faces = cell[surface.faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    # Where means fold the mesh over, two faces that are not turned over cover the same place.
    upright = ScreenMesh(screen, faces).areas > 0
    return Surface(vertices, faces[upright], screen, camera, surface.shape, surface.units)


def _table(rows: Rows) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f"<table><tbody>{cells}</tbody></table>"
