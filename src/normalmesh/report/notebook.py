"""Normal maps and surfaces as HTML for notebooks: pictures and a viewer of bounded size, with figures."""

from __future__ import annotations

import logging
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, TypeVar

from normalmesh.report.figures import Rows, about_map, count
from normalmesh.report.page import embedded_page, normals_address

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap

#: Longest side of the picture of a normal map, and height of the viewer of a surface, in pixels.
PICTURE_SIDE, VIEWER_HEIGHT = 400, 480

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
    page, shown = embedded_page(surface)
    caption = repr(surface)
    if shown < len(surface.all_faces):
        caption += f"; shown with {count(shown)} faces"
    return (
        f'<iframe srcdoc="{escape(page.decode())}" sandbox="allow-scripts" title="Surface in 3D" '
        f'style="width:100%;height:{VIEWER_HEIGHT}px;border:0"></iframe>'
        f"<div><small>{escape(caption)}</small></div>"
    )


def _table(rows: Rows) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f"<table><tbody>{cells}</tbody></table>"
