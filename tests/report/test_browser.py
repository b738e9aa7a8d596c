"""Test the report in a real browser: it opens from disk and draws the surface, and each control has an effect."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import normalmesh as nm
from browsers import CHROMIUM, DRIVER, Browser
from normalmesh.evaluation.synthetic.medallion import Medallion
from scenes import scene

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with its chromedriver is installed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Write the report of a perspective scene with jumps and a photo, which has all controls, and return its path."""
    path = tmp_path_factory.mktemp("reports") / "flaps ü#1.html"
    normal_map = scene("flaps", 96).normal_map(nm.Perspective(120, 120, 48, 48))
    photo = np.random.default_rng(1).integers(0, 255, (12, 12, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    nm.write_report(path, nm.reconstruct(normal_map, compression=0.94), normal_map, texture=photo)
    return path


@pytest.fixture
def page(browser, report):
    browser.open(report.as_uri())
    assert browser.state() == "ready", browser.driver.find_element("id", "message").text
    yield browser
    assert browser.errors() == []


def differ(first: np.ndarray, second: np.ndarray, share: float = 0.002) -> bool:
    """Return whether more than a fraction ``share`` of the pixels differ visibly."""
    return first.shape != second.shape or bool(np.mean(np.abs(first - second).max(axis=-1) > 8) > share)


def test_the_surface_is_drawn(page):
    picture = page.picture()
    middle = picture[len(picture) // 4 : -len(picture) // 4, picture.shape[1] // 4 : -picture.shape[1] // 4]
    assert middle.std(axis=(0, 1)).min() > 5
    assert not page.driver.find_element("id", "message").is_displayed()


def test_each_shading_looks_different(page):
    names = page.run("return [...document.querySelectorAll('input[name=shading]')].map((each) => each.value)")
    assert names == ["light", "normal", "error", "uncertainty", "density", "photo"]
    pictures = []
    for name in names:
        page.click(f"[value={name}]")
        pictures.append(page.picture())
        assert page.driver.find_element("id", "scale").is_displayed() == (name in ("error", "uncertainty", "density"))
    for k, picture in enumerate(pictures):
        assert all(differ(picture, other, 0.05) for other in pictures[:k])


def test_normals_from_the_front_have_the_colours_of_the_map(page):
    page.click("[value=normal]")
    page.click("#front")
    picture = page.picture()
    rows, columns = picture.shape[:2]
    flat = picture[rows // 2 - 3 : rows // 2 + 3, columns // 2 - 3 : columns // 2 + 3].mean(axis=(0, 1))
    assert flat[2] > 200


@pytest.mark.parametrize("toggle", ["wireframe", "flat", "jumps"])
def test_a_toggle_changes_the_picture_and_back(page, toggle):
    before = page.picture()
    page.click(f"#{toggle}")
    assert differ(before, page.picture(), 0.0005)
    page.click(f"#{toggle}")
    assert not differ(before, page.picture(), 0.0002)


def test_side_by_side(page):
    whole = page.run("return document.getElementById('canvas').clientWidth")
    image = page.driver.find_element("css selector", "#map img")
    assert not image.is_displayed()
    page.click("#beside")
    assert image.is_displayed()
    assert page.run("return arguments[0].naturalWidth", image) == 96
    picture = page.picture()
    assert page.run("return document.getElementById('canvas').clientWidth") == pytest.approx(whole / 2, abs=2)
    # The surface still fits: there is only background along the sides.
    assert np.ptp(picture[5:-5, [3, -4]], axis=1).max() <= 2


def test_mouse_and_keys_move_the_view_and_reset_brings_it_back(page):
    from selenium.webdriver import ActionChains, Keys

    before = page.picture()
    canvas = page.driver.find_element("id", "canvas")
    moves = (
        lambda: ActionChains(page.driver).drag_and_drop_by_offset(canvas, 80, 30).perform(),
        lambda: page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT),
        lambda: page.press(Keys.SHIFT, Keys.ARROW_UP),
        lambda: page.press("+", "+"),
        lambda: page.click("#front"),
    )
    for move in moves:
        move()
        assert differ(before, page.picture())
        page.click("#reset")
        # Moving the camera back and forth leaves rounding errors.
        assert not differ(before, page.picture(), 0.01)


def test_nothing_is_loaded(page):
    entries = page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert [name for name in entries if not name.startswith("data:")] == []


def test_narrow_window(browser, report):
    browser.driver.set_window_size(500, 900)
    browser.open(report.as_uri())
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    browser.driver.set_window_size(900, 1000)
    assert browser.errors() == []


def test_dark(browser, report):
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.open(report.as_uri())
    colour = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert max(map(int, re.findall(r"\d+", colour))) < 60


def test_a_million_triangles(browser, tmp_path):
    side = 708
    u, v = np.meshgrid(np.arange(side, dtype=float), np.arange(side, dtype=float))
    corner = np.arange(side * side).reshape(side, side)
    a, b, c, d = (each.ravel() for each in (corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    points = np.stack([u.ravel(), -v.ravel(), 20 * (np.sin(u / 30) * np.cos(v / 25)).ravel()], axis=1)
    screen = np.stack([u.ravel(), v.ravel()], axis=1)
    surface = nm.Surface(points, faces, screen, nm.Orthographic(), (side, side), components=np.zeros(side**2, np.int32))
    nm.write_report(tmp_path / "million.html", surface)
    assert (tmp_path / "million.html").stat().st_size < 15_000_000
    browser.open((tmp_path / "million.html").as_uri())
    assert browser.state() == "ready"
    smooth = browser.picture()
    assert smooth.std() > 20
    browser.click("#wireframe")
    assert differ(smooth, browser.picture())
    assert browser.errors() == []


def test_view_serves_a_mesh(browser, tmp_path):
    normal_map = Medallion(64).normal_map
    nm.reconstruct(normal_map, compression=0.9).save(tmp_path / "medallion.ply")
    command = [sys.executable, "-m", "normalmesh", "view", str(tmp_path / "medallion.ply"), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            browser.open(process.stdout.readline().strip())
            assert browser.state() == "ready"
            assert browser.driver.find_element("tag name", "h1").text == "medallion.ply"
            assert browser.picture().std() > 5
            assert browser.errors() == []
        finally:
            process.terminate()
