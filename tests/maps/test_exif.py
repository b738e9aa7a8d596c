"""Test focal lengths from EXIF data, in files made by Pillow and tifffile."""

import numpy as np
import PIL.Image
import pytest
import tifffile

from normalmesh import NormalMeshError, Perspective
from normalmesh.maps.cameras import read_exif_lens

FOCAL_LENGTH, EQUIVALENT, RESOLUTION, UNIT = 0x920A, 0xA405, 0xA20E, 0xA210
COLUMNS, ROWS = 0xA002, 0xA003


def photograph(path, size=(120, 80), **tags):
    """Write an image of columns and rows with EXIF tags."""
    image = PIL.Image.new("RGB", size)
    exif = image.getexif()
    exif[0x010F] = "Maker"
    exif[0x8769] = {globals()[name]: value for name, value in tags.items()}
    written = PIL.Image.Exif()
    written.load(exif.tobytes())  # Pillow writes the tags to TIFF only if they were read
    image.save(path, exif=written)
    return path


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif"])
def test_from_the_sensor_and_from_the_equivalent(suffix, tmp_path):
    # A sensor of 24 × 16 mm behind 50 mm: 36 × 24 mm behind 75 mm.
    path = photograph(tmp_path / f"a.{suffix}", FOCAL_LENGTH=50.0, RESOLUTION=50.0, UNIT=3)
    assert Perspective.from_exif(path).fx == pytest.approx(50 * 120 / 24)
    path = photograph(tmp_path / f"b.{suffix}", EQUIVALENT=75)
    camera = Perspective.from_exif(path, (40, 60))
    assert (camera.cx, camera.cy) == (30, 20)
    assert camera.fx == pytest.approx(75 * 60 / 36)


def test_a_photograph_that_was_made_smaller(tmp_path):
    taken = {"COLUMNS": 1200, "ROWS": 800, "FOCAL_LENGTH": 50.0, "RESOLUTION": 500.0, "UNIT": 3}
    path = photograph(tmp_path / "small.jpg", **taken)
    assert Perspective.from_exif(path).fx == pytest.approx(250)
    # Turned by 90°, it has the same focal length.
    assert Perspective.from_exif(path, (120, 80)).fx == pytest.approx(250)


@pytest.mark.parametrize("size", [{"COLUMNS": 120, "ROWS": 80}, {}])
def test_a_resolution_of_a_larger_original(size, tmp_path):
    """Programs that make a photograph smaller keep the resolution; the field of view stays."""
    path = photograph(tmp_path / "a.jpg", FOCAL_LENGTH=50.0, EQUIVALENT=75, RESOLUTION=500.0, UNIT=3, **size)
    assert Perspective.from_exif(path).fx == pytest.approx(250)


def test_what_does_not_tell_a_focal_length(tmp_path):
    for path, text in (
        (photograph(tmp_path / "none.jpg"), "no focal length"),
        (photograph(tmp_path / "zero.jpg", FOCAL_LENGTH=0.0, EQUIVALENT=0), "no focal length"),
        (photograph(tmp_path / "lens.jpg", FOCAL_LENGTH=50.0), "not the sensor's size"),
        (photograph(tmp_path / "crop.jpg", (100, 100), EQUIVALENT=50, COLUMNS=120, ROWS=80), "cropped"),
    ):
        with pytest.raises(NormalMeshError, match=text):
            Perspective.from_exif(path)
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(NormalMeshError, match="EXIF data are read from"):
        Perspective.from_exif(tmp_path / "a.npy")
    with pytest.raises(NormalMeshError, match="from_exif"):
        Perspective.from_file(tmp_path / "none.jpg")


def test_damaged_data_count_as_none(tmp_path):
    path = photograph(tmp_path / "whole.jpg", EQUIVALENT=50)
    content = path.read_bytes()
    start = content.index(b"Exif\0\0")
    for offset in range(6, int.from_bytes(content[start - 2 : start], "big") - 2):
        damaged = tmp_path / "damaged.jpg"
        damaged.write_bytes(content[: start + offset] + b"\xff" + content[start + offset + 1 :])
        lens = read_exif_lens(damaged)
        assert lens is None or lens.focal_px((80, 120)) > 0
    tifffile.imwrite(tmp_path / "plain.tif", np.zeros((4, 5, 3), np.uint8))
    assert read_exif_lens(tmp_path / "plain.tif") is None
