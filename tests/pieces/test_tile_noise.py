"""Noise that is estimated, and filtered, window by window is that of the whole map."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, Perspective
from normalmesh.normals import noise as noise_module
from normalmesh.normals import rounding
from normalmesh.normals.noise import MapNoise, Noise, component_noise, without_noise
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.map_windows import Window, tiles_of
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.tile_noise import find_noise
from scenes import Scene, dome
from surfaces import noisy
from task_loop import Loop

SIZE, SIDE = 300, 128
CAMERAS = [Orthographic(), Perspective(900.0, 900.0, 150.0, 140.0)]


def blotted(camera, several):
    """Return a map of a dome with a hole, in which components of different noise touch at corners or lie in the hole.

    Parts cross the seams of tiles of 128 px.
    """
    mask = np.ones((SIZE, SIZE), bool)
    mask[:6], mask[100:150, 90:160] = False, False
    if several:
        mask[200], mask[:, 61] = False, False
        mask[200, 61] = mask[10, 61] = True
        mask[115:140, 120:140] = mask[102, 95] = True
    dull = Scene.of(dome(SIZE), (SIZE, SIZE)).normal_map(camera, mask)
    upper = np.arange(SIZE)[:, None, None] < 200
    return NormalMap(np.where(upper, noisy(dull, 3.0).normals, dull.normals), mask, camera)


@pytest.mark.parametrize("camera", CAMERAS, ids=["parallel", "pinhole"])
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("sampled", [2**19, 4000], ids=["all", "some"])
def test_the_estimate_is_that_of_the_whole_map(camera, several, sampled, monkeypatch):
    monkeypatch.setattr(noise_module, "SAMPLED", sampled)
    normal_map, run = blotted(camera, several), Loop()
    expected = component_noise(normal_map)
    found = find_noise(normal_map, find_components(normal_map, run, SIDE), run, SIDE)
    assert found.areas == expected.areas
    if not camera.is_central:
        assert found == expected
    for one, other in zip(found.components, expected.components, strict=True):
        assert one.degrees == pytest.approx(other.degrees, rel=1e-4)
        assert one.correlation == pytest.approx(other.correlation, rel=1e-3, abs=1e-4)


def test_a_mask_that_repeats_itself_is_sampled_unevenly(monkeypatch):
    monkeypatch.setattr(noise_module, "SAMPLED", 8000)
    rows = np.arange(SIZE)[:, None]
    # The first rows of the sample meet bars one px high.
    mask = np.broadcast_to((rows % 16 == 0) | (rows % 16 > 7), (SIZE, SIZE)).copy()
    mask[:, 10:12] = True
    normal_map, run = noisy(Scene.of(dome(SIZE), (SIZE, SIZE)).normal_map(Orthographic(), mask), 2.0), Loop()
    found = find_noise(normal_map, find_components(normal_map, run, SIDE), run, SIDE)
    assert found == component_noise(normal_map)


@pytest.mark.parametrize("compared", [2**17, 20_000], ids=["all", "some"])
def test_rounding_to_8_bits_is_found_as_in_the_whole_map(compared, monkeypatch):
    monkeypatch.setattr(rounding, "COMPARED", compared)
    clean = blotted(Orthographic(), several=True)
    stored = NormalMap(np.round(clean.normals * 127.5 + 127.5) / 127.5 - 1, clean.mask)
    expected, run = component_noise(stored), Loop()
    assert expected.rounding.degrees > 0
    assert find_noise(stored, find_components(stored, run, SIDE), run, SIDE) == expected


@pytest.mark.parametrize("camera", CAMERAS, ids=["parallel", "pinhole"])
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_filtered_windows_are_those_of_the_whole_map(camera, several):
    normal_map, run = blotted(camera, several), Loop()
    components = find_components(normal_map, run, SIDE)
    count = components.count
    assert (count > 3) == several
    noise = MapNoise(tuple(Noise(3.0 - k / 2, 1.0 + k) for k in range(count)), tuple(components.areas.tolist()))
    expected = without_noise(normal_map, noise)
    for window in tiles_of(Window.whole(normal_map.shape), 110).values():
        found = CleanMap(normal_map, components, noise).window(window.rows, window.columns)
        assert np.array_equal(found.mask, expected.mask[window.rows, window.columns])
        # Of another camera, rays are rounded elsewhere.
        tolerance = 1e-6 if camera.is_central else 0
        np.testing.assert_allclose(found.normals, expected.normals[window.rows, window.columns], rtol=0, atol=tolerance)
    assert CleanMap(normal_map, components, noise).window(slice(0, 6), slice(0, SIZE)) is None


def test_windows_of_one_component():
    normal_map, run = blotted(Orthographic(), True), Loop()
    components = find_components(normal_map, run, SIDE)
    whole = Window.whole(normal_map.shape)
    labels = components.labels(whole)
    for number in range(components.count):
        only = CleanMap(normal_map, components).only(number)
        window = only.window(whole.rows, whole.columns)
        assert np.array_equal(window.mask, labels == number + 1)
        assert np.array_equal(only.mask_window(whole.rows, whole.columns), window.mask)
    assert only.window(slice(0, 20), slice(0, 20)) is None
