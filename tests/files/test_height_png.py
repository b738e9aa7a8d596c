"""Heights in PNG files of 16 bit: their range is in the text and in a JSON file beside them, and is read back."""

import json
import re
import warnings
from dataclasses import replace

import imagecodecs
import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from invocation import succeed
from normalmesh import (
    NormalMeshError,
    NormalMeshWarning,
    Orthographic,
    Perspective,
    ScreenMesh,
    Surface,
    from_heights,
    read_depth_map,
    read_height_range,
)
from normalmesh.files.height_png import depth_files

TRIANGLE = ScreenMesh(np.array([[1.0, 1], [1, 15], [19, 1]]), np.array([[0, 1, 2]], np.int32))


def written(tmp_path, camera=None, unknown=(0.0, 3.0, 7.0), units="mm"):
    """Write the heights of a triangle as PNG, and return the file and the surface."""
    surface = Surface.from_unknown(TRIANGLE, np.array(unknown), camera or Orthographic(0.5), (16, 20), units)
    surface.save_depth(tmp_path / "height.png")
    return tmp_path / "height.png", surface


@pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(30, 31, 9, 8, 0.1)])
def test_heights_return_with_their_unit(tmp_path, camera):
    unknown = (0.0, 3.0, 7.0) if camera == Orthographic(0.5) else (1.0, 1.1, 1.3)
    path, surface = written(tmp_path, camera, unknown)
    expected, about = surface.depth_map(), read_height_range(path)
    step = np.ptp(expected[np.isfinite(expected)]) / 65534
    np.testing.assert_allclose(read_depth_map(path), expected, rtol=0, atol=0.501 * step)
    assert about.units == "mm"
    assert about.pixel_size == (0.5 if about.K is None else None)
    if about.K is not None:
        assert Perspective.from_matrix(about.K) == camera


@pytest.mark.parametrize("camera", [Orthographic(), Perspective(30, 30, 9, 8)])
def test_other_programs_see_16_bit_grey_that_is_bright_towards_the_viewer(tmp_path, camera):
    path, surface = written(tmp_path, camera, (0.1, 0.2, 0.5))
    with Image.open(path) as image:
        assert image.mode.startswith("I;16")
        by_pillow, text = np.asarray(image), image.text
    values = imagecodecs.imread(path)
    np.testing.assert_array_equal(by_pillow, values)
    depth = surface.depth_map()
    known = np.isfinite(depth)
    np.testing.assert_array_equal(values > 0, known)
    assert (values[known].min(), values.max()) == (1, 65535)
    nearest = np.nanargmin(depth) if camera.is_central else np.nanargmax(depth)
    assert values.flat[nearest] == 65535
    about = json.loads((tmp_path / "height.json").read_text("utf-8"))
    assert json.loads(text["normalmesh"]) == about
    assert text["Description"] == about["formula"]
    # The formula, as a person and as a program would apply it.
    term = re.search(r" = (.* / 65535)", about["formula"])[1]
    assert "+ -" not in term
    assert eval(term, {"value": 65535}) == pytest.approx(about["white"])
    np.testing.assert_allclose(
        about["black"] + (about["white"] - about["black"]) * values[known] / 65535, depth[known], atol=1e-4
    )


def test_the_range_survives_a_program_that_drops_text(tmp_path):
    path, _ = written(tmp_path)
    before = read_depth_map(path)
    path.write_bytes(imagecodecs.png_encode(imagecodecs.imread(path)))
    np.testing.assert_array_equal(read_depth_map(path), before)
    path.write_bytes(imagecodecs.png_encode((imagecodecs.imread(path) >> 8).astype(np.uint8)))
    np.testing.assert_allclose(np.nanmax(read_depth_map(path)), np.nanmax(before))
    path.rename(tmp_path / "other.png")
    (tmp_path / "height.json").rename(tmp_path / "other.json")
    assert read_height_range(tmp_path / "other.png") is None  # the JSON file is of another image
    assert np.nanmax(read_depth_map(tmp_path / "other.png")) == 255


@pytest.mark.parametrize("keeps_text", [True, False])
def test_an_image_that_was_resized_has_no_pixel_size(tmp_path, keeps_text):
    path, _ = written(tmp_path)
    with Image.open(path) as image:
        text = PngInfo()
        text.add_itxt("normalmesh", image.text["normalmesh"])
        image.resize((40, 32), Image.Resampling.NEAREST).save(path, pnginfo=text if keeps_text else None)
    with pytest.warns(NormalMeshWarning, match=r"32×40 pixels, .* of 16×20.*give them"):
        about = read_height_range(path)
    assert about.pixel_size is None
    assert about.units == "mm"
    assert np.nanmax(read_depth_map(path)) == about.white  # heights are still lengths
    with pytest.warns(NormalMeshWarning, match="resized or cropped"):
        assert from_heights(path).camera == Orthographic()
    assert from_heights(path, camera=Orthographic(0.25)).camera == Orthographic(0.25)
    with pytest.warns(NormalMeshWarning) as told:
        succeed("report", path, "-o", tmp_path / "page.html")
    assert sum("resized or cropped" in str(each.message) for each in told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        succeed("report", path, "-o", tmp_path / "page.html", "--pixel-size", "0.25")


def test_flat_and_empty(tmp_path):
    path, _ = written(tmp_path, unknown=(2.5, 2.5, 2.5))
    found = read_depth_map(path)
    np.testing.assert_allclose(found[np.isfinite(found)], 2.5)
    assert set(np.unique(imagecodecs.imread(path))) == {0, 65535}  # not the rounding errors
    with pytest.raises(NormalMeshError, match="no height"):
        depth_files(path, np.full((3, 3), np.nan))


def test_exaggerated_heights_are_no_measurement(tmp_path):
    path, surface = written(tmp_path)
    about = replace(read_height_range(path), strength=2.0)
    for name, content in depth_files(path, surface.depth_map(), about).items():
        name.write_bytes(content)
    with pytest.warns(NormalMeshWarning, match="multiplied by 2"):
        read_depth_map(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-3],
        lambda text: text.replace('"black"', '"grey"'),
        lambda text: text.replace('"strength": 1.0', '"strength": NaN'),
        lambda text: text.replace('"pixel_size": 0.5', '"pixel_size": "wide"'),
        lambda text: text.replace('"strength": 1.0', '"strength": 0'),
        lambda text: text.replace('"pixel_size": 0.5', '"pixel_size": 0'),
        lambda text: text.replace('"K": null', '"K": 7'),
        lambda text: text.replace('"K": null', '"K": [[1, 0, 0], [0, 1, 0]]'),
    ],
)
def test_damaged_descriptions_are_refused(tmp_path, damage):
    path, _ = written(tmp_path)
    path.write_bytes(imagecodecs.png_encode(imagecodecs.imread(path)))
    beside = tmp_path / "height.json"
    beside.write_text(damage(beside.read_text("utf-8")), "utf-8")
    with pytest.raises(NormalMeshError, match=r"height\.json"):
        read_depth_map(path)


def test_the_json_file_of_something_else_is_left_alone(tmp_path):
    path, _ = written(tmp_path)
    path.write_bytes(imagecodecs.png_encode(imagecodecs.imread(path)))
    for text in ("[1, 2]", "no json", '{"black": 1}', ""):
        (tmp_path / "height.json").write_text(text)
        assert read_height_range(path) is None


def test_saving_a_mesh_as_png_names_the_method(tmp_path):
    _, surface = written(tmp_path)
    with pytest.raises(NormalMeshError, match="save_depth"):
        surface.save(tmp_path / "surface.png")
