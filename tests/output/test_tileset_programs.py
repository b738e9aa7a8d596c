"""Test 3D Tiles with programs of others, which ``make npm`` installs: validator, tools, and a viewer in a browser."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from browsers import CHROMIUM, DRIVER, Browser
from normalmesh.output.tileset import write_tileset
from tilesets import wavy_surface

HERE = Path(__file__).parents[1] / "npm"
PACKAGES = Path(__file__).parents[2] / "build" / "npm"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    not (NODE and (PACKAGES / "node_modules").is_dir()), reason="no programs of npm are installed: run make npm"
)


@pytest.fixture(scope="module")
def surface():
    return wavy_surface(np.ones((80, 80), bool))


@pytest.fixture(scope="module")
def folder(surface, tmp_path_factory):
    path = tmp_path_factory.mktemp("tilesets") / "tiles"
    write_tileset(surface, path, max_faces=600)
    return path


def run(*arguments: object) -> str:
    return subprocess.run([NODE, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("textured", [False, True])
def test_tiles_are_valid_gltf(surface, tmp_path, textured):
    image = Image.fromarray(np.zeros((*surface.shape, 3), np.uint8)) if textured else None
    write_tileset(surface, tmp_path / "tiles", image, max_faces=600)
    files = sorted((tmp_path / "tiles").rglob("*.glb"))
    reports = [json.loads(line) for line in run(HERE / "validate_glb.mjs", PACKAGES, *files).splitlines()]
    assert len(reports) == len(files) > 20
    for report in reports:
        assert (report["numErrors"], report["numWarnings"]) == (0, 0), report
        assert {message["code"] for message in report["messages"]} <= {"UNUSED_OBJECT", "IMAGE_NPOT_DIMENSIONS"}


def test_tools_read_the_tileset(folder, tmp_path):
    tools = PACKAGES / "node_modules" / "3d-tiles-tools" / "build" / "src" / "cli.mjs"
    for target in (tmp_path / "tiles.3tz", tmp_path / "again"):
        source = folder if target.suffix else tmp_path / "tiles.3tz"
        run(tools, "convert", "-i", source / "tileset.json" if source.is_dir() else source, "-o", target)
    again = {path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*.*")}
    assert again == {path.relative_to(folder) for path in folder.rglob("*.*")}


class Pages(SimpleHTTPRequestHandler):
    """Serves the page of the viewer, its modules, and the tiles."""

    def __init__(self, tiles: Path, *arguments, **options):
        self.tiles = tiles
        super().__init__(*arguments, **options)

    def translate_path(self, path):
        first, _, rest = path.partition("?")[0].lstrip("/").partition("/")
        folder = {"tiles": self.tiles, "node_modules": PACKAGES / "node_modules"}.get(first, HERE)
        return str(folder / rest if rest else HERE / first)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def viewer(folder, tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with its chromedriver is installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, folder))
    Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser(tmp_path_factory.mktemp("profile"))
    browser.open(f"http://127.0.0.1:{server.server_port}/viewer.html")
    yield browser
    browser.driver.quit()
    server.shutdown()


def look(viewer, start, end, error):
    """Return the depths in the tree of the tiles that a view shows, and a picture of it."""
    script = "look(arguments[0], arguments[1], arguments[2]).then(arguments[3], (error) => arguments[3](String(error)))"
    depths = viewer.driver.execute_async_script(script, start, end, error)
    assert isinstance(depths, list), depths
    content = viewer.driver.find_element("css selector", "canvas").screenshot_as_png
    return depths, np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def test_a_viewer_shows_mixed_levels_without_cracks(viewer, surface):
    (left, low, _), (right, high, top) = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
    assert viewer.state() == "ready"
    views = {
        "corner": ([left + 20, low + 20, top + 60], [left + 60, low + 60, 0], 8.0),
        "oblique": ([left - 40, low - 60, top + 120], [(left + right) / 2, (low + high) / 2, 0], 8.0),
    }
    levels = set()
    for name, (start, end, error) in views.items():
        depths, picture = look(viewer, start, end, error)
        assert len(set(depths)) > 1, f"{name}: all tiles have the same level"
        levels |= set(depths)
        background = (picture == [255, 0, 255]).all(axis=2)
        # What is behind the surface shows around it, never through it.
        _, areas = ndimage.label(background, np.ones((3, 3)))
        enclosed = ndimage.binary_fill_holes(~background) & background
        assert areas <= 4
        assert not enclosed.any(), f"{name}: {enclosed.sum()} pixels show the background"
        assert picture[~background].std() > 10
    assert len(levels) > 2
    assert [text for text in viewer.errors() if "limited support" not in text and "favicon" not in text] == []


def test_relief_lies_in_the_horizontal_plane(viewer, surface):
    middle = (surface.vertices.min(axis=0) + surface.vertices.max(axis=0)) / 2
    _, above = look(viewer, (middle + np.array([0, -1, 500])).tolist(), middle.tolist(), 1.0)
    _, beside = look(viewer, (middle + np.array([0, -500, 1])).tolist(), middle.tolist(), 1.0)
    shown = [float((picture != [255, 0, 255]).any(axis=2).mean()) for picture in (above, beside)]
    assert shown[0] > 4 * shown[1] > 0
