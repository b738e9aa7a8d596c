"""Test reports: the page is self-contained and correct, and input is never interpreted as markup."""

from __future__ import annotations

import base64
import io
import json
import re
import urllib.error
import urllib.request
import zlib
from html.parser import HTMLParser
from threading import Thread

import numpy as np
import pytest
from PIL import Image

import normalmesh as nm
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.report.packed_geometry import Geometry
from normalmesh.report.page import mesh_page
from normalmesh.report.page_server import PageServer
from normalmesh.report.shadings import AngularErrors, cut_edges, density, round_up
from scenes import scene

MARKUP = "</script><script>alert(1)</script> \" ' & ü \u2028 <b>"


class Page(HTMLParser):
    """The elements and texts of a page, with scripts and styles separate."""

    def __init__(self, content: bytes):
        super().__init__()
        self.tags, self.texts, self.scripts, self._inside = [], [], {}, None
        self.feed(content.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = (tag, dict(attributes).get("id", "")) if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside is None:
            self.texts.append(data)
        else:
            self.scripts[self._inside[1]] = self.scripts.get(self._inside[1], "") + data

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def about(self):
        return json.loads(self.scripts["about"])

    def shadings(self):
        return [each["value"] for tag, each in self.tags if tag == "input" and each.get("name") == "shading"]

    def arrays(self):
        """Return the decoded arrays of the geometry."""
        content = zlib.decompress(base64.b64decode(self.scripts["geometry"]))
        return {name: decoded(content, **place) for name, place in self.about["arrays"].items()}


def decoded(content, start, bytes, shape):  # noqa: A002
    """Decode an array that is stored column by column, each column as byte planes."""
    rows, columns = (*shape, 1)[:2]
    planes = np.frombuffer(content, np.uint8, rows * columns * bytes, start).reshape(columns, bytes, rows)
    return (planes.astype(np.int64) << (8 * np.arange(bytes)[:, None])).sum(axis=1).T


def summed(steps):
    return np.cumsum((steps >> 1) ^ -(steps & 1), axis=0) % 65536 / 65535


def written(tmp_path, *arguments, **options):
    nm.write_report(tmp_path / "report.html", *arguments, **options)
    return (tmp_path / "report.html").read_bytes()


@pytest.fixture(scope="module")
def medallion():
    normal_map = Medallion(96).normal_map
    return nm.reconstruct(normal_map, compression=0.95), normal_map


@pytest.fixture(scope="module")
def flaps():
    """Return surface and normal map of a perspective scene with jumps."""
    normal_map = scene("flaps", 96).normal_map(nm.Perspective(120, 120, 48, 48))
    return nm.reconstruct(normal_map, compression=0.94, discontinuities=True), normal_map


def triangle():
    return nm.Surface(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], [[0, 1], [1, 1], [0, 0]], nm.Orthographic(), (1, 1)
    )


def test_figures(tmp_path, medallion):
    surface, normal_map = medallion
    page = Page(written(tmp_path, surface, normal_map, source="in/maps.png", settings={"compression": 0.95}))
    found = nm.evaluate(surface, normal_map)
    for text in (
        "maps.png",
        "96 × 96 pixels",
        f"{100 * found.compression:.2f} %",
        f"{found.mae:.2f}°",
        f"{100 * normal_map.foreground / 96**2:.1f} %",
        "compression 0.95",
        "integration: solve",
        "decimation: collapse",
        "Jumps none",
        f"numpy {np.__version__}",
        f"normalmesh {nm.__version__}",
        "convention:",
        f"± {np.median(surface.uncertainty()):.2g} px, 95 % below ±",
    ):
        assert text in page.text, text
    assert "in/" not in page.text
    assert "Warnings" not in page.text
    assert page.shadings() == ["light", "normal", "error", "uncertainty", "density"]


def test_looks(tmp_path, flaps):
    surface, normal_map = flaps
    page, looks = Page(written(tmp_path, surface, normal_map)), nm.measure_looks(surface, normal_map)
    for text in (
        f"Cuts {looks.cut_length:.0f} px",
        f"Teeth {looks.teeth:.1f}°, {looks.turning:.1f}° per px mean angle",
        f"Bad area {looks.bad_area:.2f} % area of faces",
        f"Needles {looks.needles} faces",
    ):
        assert text in page.text, text
    assert "Teeth" not in Page(written(tmp_path, surface)).text


def test_the_page_loads_nothing(tmp_path, medallion):
    content = written(tmp_path, *medallion, texture=np.full((8, 8, 3), 90, np.uint8))
    page = Page(content)
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "object", "embed", "base")
        for name in ("src", "href", "srcset", "action"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
    policy = next(each["content"] for tag, each in page.tags if each.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "http" not in policy
    # The only URL is the name of a namespace.
    assert set(re.findall(rb"https?://[\w./-]+", content)) == {b"http://www.w3.org/1999/xhtml"}


def test_input_never_becomes_markup(tmp_path, medallion):
    plain = Page(written(tmp_path, *medallion, source="x", settings={"a": "b"}, warnings=["w"]))
    nasty = Page(
        written(tmp_path, *medallion, source=MARKUP, settings={MARKUP: MARKUP}, warnings=[UserWarning(MARKUP)])
    )
    assert [tag for tag, _ in plain.tags] == [tag for tag, _ in nasty.tags]
    assert nasty.text.count("</script><script>alert(1)</script> \" ' & ü") == 3
    assert plain.scripts[""] == nasty.scripts[""]


def test_a_unit_never_becomes_markup():
    scale = density(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[0, 1, 2]], np.int32), MARKUP)
    assert MARKUP in scale.high
    model = TriangleModel.of((triangle().vertices, triangle().faces))
    assert "</script>" not in Page(mesh_page(model, MARKUP)).scripts["about"]


def test_positions_and_faces_are_decoded_unchanged(tmp_path, medallion):
    surface, normal_map = medallion
    page = Page(written(tmp_path, surface, normal_map))
    arrays, about = page.arrays(), page.about
    places = summed(arrays["position"]) * about["size"] + about["low"]
    steps = arrays["index"]
    first = np.cumsum(steps[:, 0])
    faces = np.stack([first, first + steps[:, 1], first + steps[:, 2]], axis=1)
    corners, expected = places[faces], surface.vertices[surface.faces]
    # Faces may start at another corner: compare symmetric functions of the corners, one of which has an orientation.
    for of in (lambda each: each.sum(axis=1), lambda each: np.cross(each, np.roll(each, -1, axis=1)).sum(axis=1)):
        found, wanted = (np.sort(np.round(of(each), 1) + 0.0, axis=0) for each in (corners, expected))
        assert np.abs(found - wanted).max() < 0.4
    assert len(arrays["error"]) == len(surface.vertices)


def test_angular_errors_agree_with_the_evaluation(flaps):
    surface, normal_map = flaps
    assert AngularErrors.of(surface, normal_map).mean == pytest.approx(nm.evaluate(surface, normal_map).mae, rel=1e-5)


def test_cut_edges_are_those_of_the_discontinuities(medallion, flaps):
    assert len(cut_edges(medallion[0])) == 0
    surface, _ = flaps
    cuts, found = cut_edges(surface), surface.discontinuities
    on_screen = {tuple(sorted(map(tuple, ends))) for ends in surface.screen[cuts].tolist()}
    assert on_screen
    assert on_screen <= {tuple(sorted(map(tuple, ends))) for ends in found.screen.tolist()}


def test_perspective_with_jumps(tmp_path, flaps):
    surface, normal_map = flaps
    page = Page(written(tmp_path, surface, normal_map))
    assert "perspective, focal length 120 px, principal point (48, 48)" in page.text
    assert "cuts" in page.about["arrays"]
    assert f"Jumps {surface.discontinuities}" in page.text
    assert "Walls" not in page.text


def test_walls_are_shown_with_their_own_vertices(tmp_path):
    normal_map = scene("flaps", 96).normal_map(nm.Orthographic())
    surface = nm.reconstruct(normal_map, compression=0.94)
    page, copies = Page(written(tmp_path, surface, normal_map)), len(np.unique(surface.walls))
    assert copies > 10
    assert f"Walls {len(surface.walls)} faces" in page.text
    arrays = page.arrays()
    assert len(arrays["index"]) == len(surface.all_faces)
    assert len(arrays["position"]) == len(arrays["error"]) == len(surface.vertices) + copies


def test_a_solid_is_shown_with_flat_faces():
    surface = triangle()
    for each, is_flat in ((surface, False), (surface.solid(1), True)):
        text = mesh_page(TriangleModel(each.vertices, each.faces, None)).decode()
        assert ('id="flat" checked' in text) == is_flat


def test_without_a_normal_map(tmp_path, medallion):
    page = Page(written(tmp_path, medallion[0]))
    assert page.shadings() == ["light", "normal", "uncertainty", "density"]
    assert "angular error" not in page.text.lower()
    assert "Compression" not in page.text


def test_photo(tmp_path, medallion):
    photo = np.random.default_rng(1).integers(0, 255, (1800, 1800, 3), np.uint8)
    page = Page(written(tmp_path, medallion[0], texture=photo))
    assert page.shadings()[-1] == "photo"
    assert "uv" in page.about["arrays"]
    image = Image.open(io.BytesIO(base64.b64decode(page.about["photo"].partition(",")[2])))
    assert image.size == (1600, 1600)
    with pytest.raises(nm.NormalMeshError, match=r"missing\.png"):
        written(tmp_path, medallion[0], texture=tmp_path / "missing.png")
    with pytest.raises(nm.NormalMeshError, match="the texture is 1800 × 40 pixels but the normal map"):
        written(tmp_path, medallion[0], texture=photo[:40])


def test_wrong_convention_gives_a_warning(tmp_path):
    true = Medallion(96).normal_map
    turned = nm.NormalMap(true.normals * [1, -1, 1], true.mask)
    page = Page(written(tmp_path, nm.reconstruct(turned, compression=0.9), turned, warnings=["first of all"]))
    assert "first of all The data contradict the convention" in page.text


@pytest.mark.parametrize("flat", [True, False])
def test_a_single_triangle(tmp_path, flat):
    surface = triangle()
    normal_map = None if flat else nm.NormalMap(np.array([[[0, 0, 1.0]]]))
    page = Page(written(tmp_path, surface, normal_map))
    assert page.about["size"] == [1, 1, 0]
    assert len(page.arrays()["position"]) == 3


def test_several_components(tmp_path):
    mask = np.zeros((24, 24), bool)
    mask[2:9, 2:9] = mask[12:20, 3:20] = mask[22, 22] = True
    normal_map = nm.NormalMap(np.broadcast_to([0, 0, 1.0], (24, 24, 3)), mask)
    page = Page(written(tmp_path, nm.reconstruct(normal_map, vertices=12), normal_map))
    assert "Components 3" in page.text


def test_the_mean_slope_that_a_surface_that_repeats_lacks_is_shown(tmp_path):
    wave = 0.4 * np.sin(np.arange(24) * np.pi / 6) + 0.1
    normals = np.stack([np.tile(wave, (24, 1)), np.zeros((24, 24)), np.ones((24, 24))], axis=-1)
    normal_map = nm.NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    with pytest.warns(nm.NormalMeshWarning, match="mean slope"):
        surface = nm.reconstruct(normal_map, vertices=40, tileable=True)
    page = Page(written(tmp_path, surface, normal_map))
    assert f"Repeats {surface.repeats}" in page.text
    assert f"{surface.repeats.tilt:.2f}° removed" in page.text


def test_large_maps_are_reduced(tmp_path):
    normal_map = nm.NormalMap(np.broadcast_to(np.float32([0, 0, 1]), (3, 5000, 3)))
    faces, corners = [[0, 1, 2], [0, 2, 3]], [[0, 3], [5000, 3], [5000, 0], [0, 0]]
    surface = nm.Surface(np.c_[corners, np.zeros(4)] * [1, -1, 1], faces, corners, nm.Orthographic(), (3, 5000))
    page = Page(written(tmp_path, surface, normal_map))
    address = next(each["src"] for tag, each in page.tags if tag == "img")
    assert Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).width == 1600


def test_size_of_an_irregular_mesh():
    """A triangle takes less than ten bytes, so that a million of them take less than 15 MB."""
    from scipy.spatial import Delaunay

    random = np.random.default_rng(2)
    points = random.uniform(0, 1000, (20_000, 2))
    faces = Delaunay(points).simplices.astype(np.int32)
    heights = 30 * np.sin(points / 40).sum(axis=1) + random.normal(0, 0.2, len(points))
    values = {"error": random.uniform(0, 1, len(points)), "density": random.uniform(0, 1, len(points))}
    packed, _ = Geometry(np.c_[points, heights], faces, values).packed()
    assert len(packed) < 10 * len(faces)


def test_another_map_is_rejected(tmp_path, medallion):
    other = nm.NormalMap(np.broadcast_to([0, 0, 1.0], (5, 7, 3)))
    with pytest.raises(nm.NormalMeshError, match=r"5×7.*96×96"):
        written(tmp_path, medallion[0], other)
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(nm.NormalMeshError, match="does not exist"):
        nm.write_report(tmp_path / "no" / "where.html", medallion[0])


@pytest.mark.parametrize(("value", "end"), [(0.0, 0.1), (0.1, 0.1), (0.12, 0.2), (4.1, 5), (5, 5), (51, 60), (99, 100)])
def test_ends_of_scales(value, end):
    assert round_up(value) == pytest.approx(end)


def test_server_responds_to_this_machine_only():
    with PageServer() as server:
        server.page = b"<p>here"
        Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(server.address) as answer:
            assert answer.read() == b"<p>here"
        for path, headers, status in (("etc/passwd", {}, 404), ("", {"Host": "example.org"}, 403)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(server.address + path, headers=headers))
            assert refused.value.code == status
            refused.value.close()
        with pytest.raises(nm.NormalMeshError, match="choose another"):
            PageServer(server.server_port)
        server.shutdown()
