"""Test what notebooks show of normal maps and surfaces, also in a browser."""

from __future__ import annotations

import base64
import html
import io
import re

import numpy as np
import pytest
from PIL import Image

import normalmesh as nm
from browsers import CHROMIUM, DRIVER, Browser
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.report import notebook, page


@pytest.fixture(scope="module")
def surface():
    return nm.reconstruct(Medallion(64).normal_map, compression=0.98)


def page_of(text):
    """Return the page inside the frame."""
    return html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1])


def test_a_normal_map_is_a_picture_of_bounded_size_with_figures():
    normal_map = nm.NormalMap(np.tile([0.0, 0.0, 1.0], (30, 1200, 1)), np.arange(1200) < np.full((30, 1), 900))
    text = normal_map._repr_html_()
    content = re.search(r'src="data:image/png;base64,([^"]*)"', text)[1]
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))
    assert picture.shape == (10, notebook.PICTURE_SIDE, 4)
    np.testing.assert_array_equal(picture[5, 10], [128, 128, 255, 255])
    assert picture[5, -10, 3] == 0
    for figure in ("1200 × 30 pixels", "27\u202f000 pixels (75.0 %)", "orthographic", "Normals repaired"):
        assert figure in text


def test_a_surface_is_a_frame_that_loads_nothing(surface, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = surface._repr_html_()
    inner = page_of(text)
    assert 'sandbox="allow-scripts"' in text
    assert "default-src 'none'" in inner
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", inner)
    assert f"<dd>{len(surface.vertices)}</dd>" in inner
    assert repr(surface) in html.unescape(text)
    assert str(tmp_path) not in inner
    assert len(text) < 1_000_000


def test_large_surfaces_are_shown_with_fewer_faces(surface, monkeypatch):
    assert "shown with" not in surface._repr_html_()
    monkeypatch.setattr(page, "MAX_EMBEDDED_FACES", 50)
    text = surface._repr_html_()
    assert 25 <= int(re.search(r"shown with (\d+) faces", text)[1]) <= 50
    assert f"<dd>{len(surface.vertices)}</dd>" in page_of(text)


def test_what_cannot_be_shown_has_no_html(surface):
    broken = nm.Surface(surface.vertices, surface.faces, surface.screen, surface.camera, surface.shape)
    broken.faces[:] = 10**9
    assert broken._repr_html_() is None
    point = nm.Surface([[1, -1, 0]], [[0, 0, 0]], [[1, 1]], nm.Orthographic(), (2, 2))
    assert point._repr_html_() is not None


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with its chromedriver is installed")
def test_the_frame_draws_the_surface(surface, tmp_path):
    path = tmp_path / "cell.html"
    path.write_text(f'<html data-state="ready"><meta charset="utf-8">{surface._repr_html_()}</html>', "utf-8")
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(path.as_uri())
        browser.driver.switch_to.frame(0)
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(browser.driver, 60).until(lambda _: browser.state() == "ready")
        picture = browser.picture()
        assert picture[len(picture) // 3 : -len(picture) // 3].std(axis=(0, 1)).min() > 5
        assert browser.run("return document.documentElement.scrollHeight <= window.innerHeight")
        assert browser.errors() == []
    finally:
        browser.driver.quit()


def test_a_mesh_without_origin_is_shown():
    mesh = ScreenMesh.from_mask(np.ones((3, 4)))
    surface = nm.Surface.from_unknown(mesh, np.zeros(len(mesh.vertices)), nm.Orthographic(), (3, 4))
    assert "<dd>20</dd>" in page_of(surface._repr_html_())
