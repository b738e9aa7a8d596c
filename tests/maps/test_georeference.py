"""GeoTIFF: pixel size, unit and transform of a map."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tifffile

import normalmesh as nm
from normal_map_files import encode
from surfaces import waves

VALUES = encode(waves((40, 60))[0].normals, np.uint8)
METRES, FEET = 9001, 9003


def keys(model=1, raster=1, unit=METRES):
    """Return a directory of GeoKeys: the type of coordinates, of pixels, and the unit of length."""
    return (1, 1, 0, 3, 1024, 0, 1, model, 1025, 0, 1, raster, 3076, 0, 1, unit)


def write(path, directory=None, scale=(2.0, 2.0, 0.0), point=(0.0, 0.0, 0.0, 500.0, 900.0, 0.0), matrix=None):
    """Write a GeoTIFF and return its path."""
    doubles = {33550: scale, 33922: point} if matrix is None else {34264: matrix}
    tags = [(tag, "d", len(values), values, True) for tag, values in doubles.items() if values is not None]
    if directory is not None:
        tags.append((34735, "H", len(directory), directory, True))
        tags.append((34737, "s", 0, "somewhere|", True))
    tifffile.imwrite(path, VALUES, photometric="rgb", tile=(16, 16), extratags=tags)
    return path


def test_pixel_size_and_unit(tmp_path):
    opened = nm.NormalMap.open(write(tmp_path / "map.tif", keys()))
    assert opened.camera == nm.Orthographic(2.0)
    assert opened.units == "m"
    assert opened.georeference.transform == (2.0, 0.0, 500.0, 0.0, -2.0, 900.0)
    assert opened.georeference.crs_tags == {34735: keys(), 34737: "somewhere|"}
    assert nm.NormalMap.open(write(tmp_path / "feet.tif", keys(unit=FEET))).units == "US ft"
    assert nm.NormalMap.open(write(tmp_path / "unknown.tif")).units == "units"


def test_tie_point_inside_the_image(tmp_path):
    opened = nm.NormalMap.open(write(tmp_path / "map.tif", keys(), point=(10.0, 5.0, 0.0, 500.0, 900.0, 0.0)))
    assert opened.georeference.transform == (2.0, 0.0, 480.0, 0.0, -2.0, 910.0)


def test_pixels_that_are_points_become_areas(tmp_path):
    opened = nm.NormalMap.open(write(tmp_path / "map.tif", keys(raster=2)))
    assert opened.georeference.transform == (2.0, 0.0, 499.0, 0.0, -2.0, 901.0)
    assert opened.georeference.crs_tags[34735] == keys(raster=1)


def test_turned_image(tmp_path):
    c, s = 3 * math.cos(0.4), 3 * math.sin(0.4)
    matrix = (c, s, 0, 7, s, -c, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1)
    opened = nm.NormalMap.open(write(tmp_path / "map.tif", keys(), matrix=matrix))
    assert opened.georeference.transform == (c, s, 7, s, -c, 8)
    assert opened.camera.pixel_size == pytest.approx(3)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"directory": keys(model=2)}, "in degrees"), ({"scale": (2.0, 3.0, 0.0)}, "2 × 3 on the ground, are not square")],
)
def test_pixels_without_a_size_need_a_camera(options, reason, tmp_path):
    path = write(tmp_path / "map.tif", **{"directory": keys(), **options})
    with pytest.raises(nm.NormalMeshError, match=rf"{reason}.*give camera=Orthographic\(pixel_size\)"):
        nm.NormalMap.open(path)
    opened = nm.NormalMap.open(path, camera=nm.Orthographic(30.0))
    assert opened.camera.pixel_size == 30
    assert opened.units == "px"
    assert opened.georeference is not None


def test_files_without_a_transform(tmp_path):
    assert nm.NormalMap.open(write(tmp_path / "keys.tif", keys(), scale=None, point=None)).georeference is None
    points = (0.0,) * 12
    assert nm.NormalMap.open(write(tmp_path / "points.tif", keys(), scale=None, point=points)).georeference is None
    opened = nm.NormalMap.open(write(tmp_path / "nan.tif", keys(), scale=(math.nan, 1.0, 0.0)))
    assert opened.georeference is None
    assert opened.camera == nm.Orthographic()
    assert opened.units == "px"
