"""Test depth maps as cloud-optimised GeoTIFF: their pixels, their layout, and where on a map they lie."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import tifffile

import normalmesh as nm
from meshes import disc
from normalmesh.mesh.depth_bands import depth_bands
from normalmesh.output import depth_tiff
from tilesets import wavy_surface

NORTH_UP = SimpleNamespace(
    transform=(2.0, 0.0, 500000.0, 0.0, -2.0, 4000000.0),
    crs_tags={34735: (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633), 34737: "made up|"},
)
TURNED = SimpleNamespace(transform=(1.5, 0.5, 10.0, 0.5, -1.5, 20.0), crs_tags={})


@pytest.fixture(scope="module")
def surface():
    return wavy_surface(disc(40, 19.0), scale=30.0)  # 1171 × 1171 pixels


@pytest.fixture(scope="module")
def path(surface, tmp_path_factory):
    path = tmp_path_factory.mktemp("depths") / "depth.tif"
    surface.save_depth(path, NORTH_UP)
    return path


@pytest.mark.parametrize("height", [1, 7, 64, 1000])
@pytest.mark.parametrize("camera", [None, nm.Perspective(400, 400, 90, 90)])
def test_bands_are_the_depth_map(camera, height):
    surface = wavy_surface(disc(20, 9.0), camera)
    moved = nm.Surface(surface.vertices, surface.faces, surface.screen - [3.2, 5.7], surface.camera, (60, 55))
    for each in (surface, moved):  # some vertices outside the image
        bands = list(depth_bands(each, height))
        assert {len(band) for band in bands[:-1]} <= {height}
        np.testing.assert_allclose(np.concatenate(bands), each.depth_map(), rtol=1e-12)


def test_pixels_are_the_depth_map(path, surface):
    with tifffile.TiffFile(path) as file:
        assert not file.is_bigtiff
        found = [page.asarray() for page in file.pages]
    assert found[0].dtype == np.float32
    np.testing.assert_array_equal(found[0], surface.depth_map().astype(np.float32))
    for fine, coarse in pairwise(found):
        np.testing.assert_array_equal(coarse, depth_tiff.half(fine))
    assert max(found[-1].shape) <= depth_tiff.SIDE < max(found[-2].shape)


def test_half_is_the_mean_of_known_pixels():
    image = np.array([[1, 3, np.nan], [np.nan, 5, np.nan], [7, 8, 9]], np.float32)
    np.testing.assert_array_equal(depth_tiff.half(image), [[3, np.nan], [7.5, 9]])


@pytest.mark.parametrize("big", [False, True])
def test_the_layout_is_cloud_optimised(tmp_path, surface, monkeypatch, big):
    if big:
        monkeypatch.setattr(depth_tiff, "MAX_CLASSIC", 0)
    surface.save_depth(tmp_path / "d.tif")
    with tifffile.TiffFile(tmp_path / "d.tif") as file:
        assert file.is_bigtiff == big
        pages = list(file.pages)
        np.testing.assert_array_equal(pages[0].asarray(), surface.depth_map().astype(np.float32))
    assert len(pages) == 3
    assert pages[0].offset == (16 if big else 8)
    assert [page.offset for page in pages] == sorted(page.offset for page in pages)
    ranges = [
        (offset, offset + length)
        for page in reversed(pages)
        for offset, length in zip(page.dataoffsets, page.databytecounts, strict=True)
    ]
    # Directories first; then the tiles of the coarsest overview, without gaps, up to the end of the file.
    assert pages[-1].offset < ranges[0][0]
    assert all(end == start for (_, end), (start, _) in pairwise(ranges))
    assert ranges[-1][1] == (tmp_path / "d.tif").stat().st_size
    for page in pages:
        assert (page.tilewidth, page.tilelength, page.predictor.name) == (512, 512, "FLOATINGPOINT")
        assert page.tags["GDAL_NODATA"].value == "nan"
        assert page.subfiletype == (0 if page is pages[0] else 1)


def test_the_georeference_is_kept(path, tmp_path, surface):
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        assert tags["ModelPixelScaleTag"].value == (2.0, 2.0, 0.0)
        assert tags["ModelTiepointTag"].value == (0.0, 0.0, 0.0, 500000.0, 4000000.0, 0.0)
        assert tags["GeoKeyDirectoryTag"].value == NORTH_UP.crs_tags[34735]
        assert tags["GeoAsciiParamsTag"].value == "made up|"
        assert "ModelPixelScaleTag" not in file.pages[1].tags
    surface.save_depth(tmp_path / "turned.tif", TURNED)
    with tifffile.TiffFile(tmp_path / "turned.tif") as file:
        matrix = np.reshape(file.pages[0].tags["ModelTransformationTag"].value, (4, 4))
    np.testing.assert_allclose(matrix @ [3, 4, 0, 1], [1.5 * 3 + 0.5 * 4 + 10, 0.5 * 3 - 1.5 * 4 + 20, 0, 1])
    with pytest.raises(nm.NormalMeshError, match="crs_tags may have"):
        surface.save_depth(tmp_path / "x.tif", SimpleNamespace(transform=TURNED.transform, crs_tags={270: "text"}))
    assert not (tmp_path / "x.tif").exists()


def test_gdal_agrees(path, surface):
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(path) as file:
        assert file.crs.to_epsg() == 32633
        assert file.transform[:6] == NORTH_UP.transform
        assert file.overviews(1) == [2, 4]
        assert np.isnan(file.nodata)
        np.testing.assert_array_equal(file.read(1), surface.depth_map().astype(np.float32))


def test_depths_far_away_are_doubles(tmp_path, surface):
    far = nm.Surface(
        surface.vertices + np.array([0, 0, 1e8]), surface.faces, surface.screen, surface.camera, surface.shape
    )
    far.save_depth(tmp_path / "far.tif")
    found = tifffile.imread(tmp_path / "far.tif")
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, far.depth_map(), rtol=1e-15)


def test_other_formats_and_paths(tmp_path, surface, monkeypatch):
    surface.save_depth(tmp_path / "d.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), surface.depth_map().astype(np.float32))
    with pytest.warns(nm.NormalMeshWarning, match="the georeference is left out of d.npy: only TIFF holds it"):
        surface.save_depth(tmp_path / "d.npy", NORTH_UP)
    with pytest.raises(nm.NormalMeshError, match="the suffix of depths must be one of"):
        surface.save_depth(tmp_path / "d.bmp")
    with pytest.raises(nm.NormalMeshError, match="does not exist"):
        surface.save_depth(tmp_path / "no" / "d.tif")
    before = (tmp_path / "d.tif", b"old")
    before[0].write_bytes(before[1])

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(depth_tiff.CloudOptimisedTiff, "add_rows", fail)
    with pytest.raises(KeyboardInterrupt):
        surface.save_depth(tmp_path / "d.tif")
    assert before[0].read_bytes() == before[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.npy", "d.tif"]
