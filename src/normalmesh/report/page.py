"""write_report: write an HTML file with the surface in 3D, its normal map, and the figures of the run."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from normalmesh import __version__
from normalmesh.arguments import checked_instance, checked_path
from normalmesh.errors import NormalMeshError, path_text, repr_for_error, shape_text
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files.atomic import check_targets, write_atomically
from normalmesh.integration.uncertainty import UncertaintySummary
from normalmesh.mesh.relief import measured_surface
from normalmesh.mesh.surface import Surface
from normalmesh.mesh.walls import parted
from normalmesh.normals.diagnosis import diagnose
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.textures import colour_image
from normalmesh.pictures.panels import normal_colours
from normalmesh.report.figures import ExplainedRows, Figures, Rows, count, versions
from normalmesh.report.packed_geometry import Geometry
from normalmesh.report.shadings import AngularErrors, Shading, cut_edges, density, uncertainty_shading

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.output.textures import Texture

#: Longest side of an embedded picture, in pixels.
MAX_SIDE = 1600
#: Largest PNG, in bytes; larger pictures are embedded with lossy compression.
MAX_PNG_BYTES = 1_000_000
#: Number of vertices up to which the uncertainty of heights is shown.
MOST_SHADED = 1_000_000
#: Labels of the shadings, in the order of their buttons.
LABELS = {
    "light": "Light",
    "normal": "Normal",
    "error": "Angular error",
    "uncertainty": "Height uncertainty",
    "density": "Vertex density",
    "photo": "Photo",
}

#: Faces that the viewer shows, at most: a page of about 10 MB; in a notebook, which keeps about 10 bytes for each.
MAX_FACES, MAX_EMBEDDED_FACES = 1_000_000, 200_000


def write_report(
    path: str | PathLike[str],
    surface: Surface,
    normal_map: NormalMap | None = None,
    *,
    source: str | PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    warnings: Iterable[object] = (),
    texture: Texture | None = None,
) -> None:
    """Write a report as one HTML file, which any browser opens offline.

    The page shows the surface in 3D, as wireframe or coloured by shading, normals, angular error, uncertainty of
    heights, vertex density or photo, the normal map, and size, compression, errors, uncertainty, jumps, looks, seconds,
    settings, versions and warnings.

    Parameters
    ----------
    path
        The file to write, usually ``….html``.
    surface
        The surface to show.
    normal_map
        The normal map that the surface was reconstructed from; without it, comparisons with it are omitted.
    source
        Name of the input, for the title.
    settings
        Settings of the run, by name.
    warnings
        Texts or warnings of the run. Those of :func:`diagnose` are added.
    texture
        A photo of the same view: uint8 (H', W', 3 or 4), or a file.

    Raises
    ------
    NormalMeshError
        If the sizes of normal map and surface differ, the texture is unusable, or the path cannot be written.
    """
    check_targets([checked_path(path)], [each for each in (source, texture) if isinstance(each, str | PathLike)])
    page = surface_page(surface, normal_map, source=source, settings=settings, warnings=warnings, texture=texture)
    write_atomically({path: page})


def surface_page(
    surface: Surface,
    normal_map: NormalMap | None = None,
    *,
    source: str | PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    warnings: Iterable[object] = (),
    texture: Texture | None = None,
) -> bytes:
    """Return the page that :func:`write_report` writes."""
    checked_instance(surface, Surface, "surface")
    _check_texts(source, settings, warnings)
    shadings, errors, diagnosis = {}, None, None
    if normal_map is not None:
        if checked_instance(normal_map, NormalMap, "normal_map").shape != surface.shape:
            raise NormalMeshError(
                f"the normal map has {shape_text(normal_map.shape)} pixels but the surface has "
                f"{shape_text(surface.shape)}: give the map that the surface was reconstructed from"
            )
        errors, diagnosis = AngularErrors.of(measured_surface(surface), normal_map), diagnose(normal_map)
        shadings["error"] = errors.shading()
    uncertainty = UncertaintySummary.of(surface, MOST_SHADED)
    if uncertainty is not None and uncertainty.high > 0:
        shadings["uncertainty"] = uncertainty_shading(uncertainty)
    shadings["density"] = density(surface.screen, surface.faces, "px")
    geometry = _geometry(surface, shadings, texture is not None)
    figures = Figures.of_surface(surface, normal_map, errors, diagnosis, warnings, uncertainty)
    pictures = {
        "map": None if normal_map is None else normals_address(normal_map),
        "photo": None if texture is None else photo_address(texture, surface.shape),
    }
    return _page(geometry, shadings, figures, pictures, source, settings or {})


def _check_texts(source: object, settings: object, warnings: object) -> None:
    """Raise if source, settings or warnings are of the wrong type."""
    if source is not None and not isinstance(source, str | PathLike):
        raise NormalMeshError(f"source must be the name of a file, not {repr_for_error(source)}")
    if settings is not None and not isinstance(settings, Mapping):
        raise NormalMeshError(f"settings must be a dictionary, not {repr_for_error(settings)}")
    if isinstance(warnings, str | bytes | np.ndarray) or not isinstance(warnings, Iterable):
        raise NormalMeshError(f"warnings must be a list of texts or warnings, not {repr_for_error(warnings)}")


def mesh_page(
    model: TriangleModel, source: str | PathLike[str] | None = None, warnings: Iterable[object] = ()
) -> bytes:
    """Return the page of a mesh without a normal map."""
    shadings = {"density": density(model.vertices, model.faces, None)}
    geometry = Geometry(model.vertices, model.faces, {"density": shadings["density"].values})
    return _page(geometry, shadings, Figures.of_mesh(model.vertices, model.faces, warnings), {}, source, {})


def _geometry(surface: Surface, shadings: Mapping[str, Shading], has_photo: bool) -> Geometry:
    """Return what the viewer shows of a surface: its faces, and its walls with vertices of their own."""
    faces, shown = parted(surface.faces, surface.walls, np.arange(len(surface.vertices)))
    values = {name: shading.values[shown] for name, shading in shadings.items()}
    coordinates = surface.texture_coordinates[shown] if has_photo else None
    return Geometry(surface.vertices[shown], faces, values, coordinates, cut_edges(surface))


def embedded_page(surface: Surface) -> tuple[bytes, int]:
    """Return a page for a frame of a notebook, with a viewer and some figures, and the number of faces it shows."""
    shadings = {"density": density(surface.screen, surface.faces, "px")}
    geometry = _geometry(surface, shadings, has_photo=False).thinned(MAX_EMBEDDED_FACES)
    figures = Figures.of_surface(surface, None, None, None, ())
    rows = [*figures.headline, *(row for row in figures.details if row[0] == "Extent")]
    page = _page(geometry, shadings, replace(figures, headline=rows, warnings=()), {}, None, {}, "embedded")
    return page, len(geometry.faces)


def _page(
    geometry: Geometry,
    shadings: Mapping[str, Shading],
    figures: Figures,
    pictures: Mapping[str, str | None],
    source: str | PathLike[str] | None,
    settings: Mapping[str, object],
    layout: str = "page",
) -> bytes:
    shown_geometry = geometry.thinned(MAX_FACES)
    texts = list(figures.warnings)
    if shown_geometry is not geometry:
        texts.append(
            f"The viewer shows {count(len(shown_geometry.faces))} of {count(len(geometry.faces))} faces; all figures "
            "are of the whole mesh."
        )
    packed, arrays = shown_geometry.packed()
    scales = {name: {"low": shading.low, "high": shading.high} for name, shading in shadings.items()}
    shown = ["light", "normal", *shadings, *(["photo"] if pictures.get("photo") else [])]
    title = "Surface" if source is None else Path(fspath(source)).name or fspath(source)
    about = {**arrays, "scales": scales, "photo": pictures.get("photo")}
    page = Template(_resource("page.html")).substitute(
        layout=layout,
        title=escape(path_text(title)),
        version=escape(__version__),
        style=_resource("page.css"),
        three=_resource("three.bundle.min.js"),
        viewer=_resource("viewer.js"),
        shadings="".join(_radio(name) for name in shown),
        flat=" checked" if shown_geometry.is_closed else "",  # a solid has sharp edges
        jumps_hidden="" if "cuts" in arrays["arrays"] else "hidden",
        map_hidden="" if pictures.get("map") else "hidden",
        map=escape(pictures.get("map") or "data:,"),
        headline="".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in figures.headline
        ),
        warnings=_warnings(texts),
        tables=_tables(figures, settings) if layout == "page" else "",
        about=_json(about),
        geometry=packed,
    )
    return page.encode(errors="replace")  # a file name may not be valid text


def normals_address(normal_map: NormalMap, side: int = MAX_SIDE) -> str:
    """Return the URL of the normal map as a colour image of sides up to ``side``, transparent outside the mask."""
    from PIL import Image

    # Large maps are subsampled first: averaging would double the memory.
    step = max(max(normal_map.shape) // (2 * side), 1)
    colours, mask = normal_colours(normal_map.normals[::step, ::step]), normal_map.mask[::step, ::step]
    return _address(Image.fromarray(np.dstack([colours, (255 * mask).astype(np.uint8)])), side)


def photo_address(texture: Texture, shape: tuple[int, int]) -> str:
    """Return the URL of a photo with the same view as a normal map of the given shape."""
    return _address(colour_image(texture, shape).convert("RGB"))


def _address(image: Image, side: int = MAX_SIDE) -> str:
    image.thumbnail((side, side))
    content, kind = _encoded(image, "PNG"), "png"
    if len(content) > MAX_PNG_BYTES:
        if image.mode == "RGBA":
            content, kind = _encoded(image, "WEBP", quality=92), "webp"
        else:
            content, kind = _encoded(image, "JPEG", quality=92, subsampling=0), "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _encoded(image: Image, name: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, name, **options)
    return content.getvalue()


def _resource(name: str) -> str:
    return (files("normalmesh.report") / name).read_text("utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element: it cannot close the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _radio(name: str) -> str:
    checked = " checked" if name == "light" else ""
    return f'<label><input type="radio" name="shading" value="{name}"{checked}><span>{LABELS[name]}</span></label>'


def _warnings(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return (
        f'<section class="warnings" aria-label="Warnings"><h2>Warnings</h2><ul>{items}</ul></section>' if items else ""
    )


def _tables(figures: Figures, settings: Mapping[str, object]) -> str:
    chosen: Rows = [(str(name), str(value)) for name, value in settings.items()]
    seconds = [(name, f"{value:.3f} s") for name, value in figures.stages.items()]
    tables = [
        _table("Figures", figures.details),
        _table("Looks", figures.looks),
        _table("Time", seconds),
        _table("Settings", chosen),
    ]
    if figures.convention:
        lines = "".join(f"<p>{escape(line)}</p>" for line in figures.convention.splitlines())
        tables.append(
            f'<section class="card"><h2>Convention, relative to the one used for reading</h2>{lines}</section>'
        )
    return "".join([*tables, _table("Versions", versions())])


def _table(title: str, rows: Rows | ExplainedRows) -> str:
    if not rows:
        return ""
    cells = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}'
        + "".join(f"<small>{escape(line)}</small>" for line in explanation)
        + "</td></tr>"
        for name, text, *explanation in rows
    )
    return f'<section class="card"><h2>{escape(title)}</h2><table><tbody>{cells}</tbody></table></section>'
