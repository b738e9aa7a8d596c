"""Maps on disk: windows are bit for bit those of the map that is read whole, in every format and with every rule."""

from __future__ import annotations

import pickle
import threading
import warnings

import numpy as np
import pytest
import tifffile

import normalmesh as nm
from normal_map_files import encode, with_alpha, write_png
from normalmesh.files import tiff_windows, windowed_arrays
from surfaces import waves

SHAPE = (120, 170)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Make passes in many windows: objects, holes and specks cross their borders."""
    monkeypatch.setattr(windowed_arrays, "PASS_PIXELS", 1600)


def relief():
    """Return normals (H, W, 3) of waves, as float32."""
    return waves(SHAPE)[0].normals.copy()


def torn(rng):
    """Return waves with specks, holes, a crack over many windows, short and back-facing vectors."""
    normals = relief()
    normals[rng.random(SHAPE) < 0.02] = np.nan
    normals[30:40, 20:150] = np.nan
    normals[60:115, 60:110] = 0
    normals[100, :30] = np.inf
    normals[70:80, 150:] *= -1
    normals[:3, :80] *= 0.01
    return normals


def ball(background):
    """Return normals of a ball before a background of one colour, with a speck of that colour on it."""
    v, u = np.indices(SHAPE) - np.array(SHAPE).reshape(2, 1, 1) / 2
    x, y = u / 50, -v / 50
    inside = x**2 + y**2 < 1
    inside[50:53, 70:74] = False
    normals = np.dstack([x, y, np.sqrt(np.clip(1 - x**2 - y**2, 0, 1))])
    return np.where(inside[..., None], normals, background).astype(np.float32), inside


def recorded(read):
    """Return what a function returns, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = read()
    return result, [str(warning.message) for warning in caught]


def assert_same_windows(whole, opened):
    """Check windows of all sizes, among them windows of single pixels and of whole rows."""
    rng = np.random.default_rng(1)
    for _ in range(12):
        top, left = rng.integers(0, whole.shape)
        rows, columns = slice(top, top + rng.integers(1, 80)), slice(left, left + rng.integers(1, 80))
        expected, window = whole.window(rows, columns), opened.window(rows, columns)
        assert np.array_equal(whole.mask_window(rows, columns), opened.mask_window(rows, columns))
        if expected is None:
            assert window is None
            continue
        assert window.normals.tobytes() == expected.normals.tobytes()
        assert np.array_equal(window.mask, expected.mask)
        assert np.array_equal(window.camera.frame, expected.camera.frame)


def assert_same(path, like=None, **options):
    """Check that a file opens as the same, or another one, reads: warnings, repairs, mask, every normal."""
    whole, expected = recorded(lambda: nm.read_normal_map(like or path, **options))
    opened, given = recorded(lambda: nm.NormalMap.open(path, **options))
    if like is None:
        assert given == expected
    opened = pickle.loads(pickle.dumps(opened))
    assert (opened.shape, opened.repairs, opened.foreground) == (whole.shape, whole.repairs, whole.foreground)
    assert opened.rectangle() == whole.rectangle()
    read = opened.read()
    assert np.array_equal(read.mask, whole.mask)
    assert read.normals.tobytes() == whole.normals.tobytes()
    assert_same_windows(whole, opened)
    return opened


TIFFS = {
    "8 bit, tiled, deflate": (np.uint8, {"tile": (32, 48), "compression": "zlib"}),
    "16 bit, striped, LZW": (np.uint16, {"rowsperstrip": 7, "compression": "lzw", "predictor": True}),
    "16 bit, not compressed, big-endian": (np.uint16, {"byteorder": ">"}),
    "signed": (np.int16, {"tile": (16, 16)}),
    "float, tiled, BigTIFF": (None, {"tile": (32, 32), "bigtiff": True, "compression": "zlib", "predictor": True}),
    "float, one strip": (None, {"rowsperstrip": 500, "compression": "zlib"}),
    "JPEG": (np.uint8, {"tile": (64, 64), "compression": "jpeg", "photometric": "ycbcr"}),
}


@pytest.mark.parametrize("kind", TIFFS)
def test_tiff(kind, tmp_path):
    dtype, options = TIFFS[kind]
    values = relief() if dtype is None else encode(relief(), dtype)
    tifffile.imwrite(tmp_path / "map.tif", values, **{"photometric": "rgb", **options})
    assert_same(tmp_path / "map.tif", convention="auto")


def test_planes_of_a_tiff(tmp_path):
    planes = np.moveaxis(encode(relief(), np.uint16), -1, 0)
    for number, options in enumerate(({"tile": (32, 32), "compression": "zlib"}, {"rowsperstrip": 9}, {})):
        path = tmp_path / f"{number}.tif"
        tifffile.imwrite(path, planes, photometric="rgb", planarconfig="separate", **options)
        assert_same(path)


def test_full_resolution_of_a_tiff_with_overviews(tmp_path):
    values = encode(relief(), np.uint8)
    options = {"photometric": "rgb", "tile": (32, 32), "compression": "zlib"}
    with tifffile.TiffWriter(tmp_path / "cog.tif", bigtiff=True) as file:
        file.write(values, subifds=1, **options)
        file.write(values[::2, ::2], subfiletype=1, **options)
    with tifffile.TiffWriter(tmp_path / "pages.tif") as file:
        file.write(values, **options)
        file.write(values[::2, ::2], subfiletype=1, **options)
    assert assert_same(tmp_path / "cog.tif").shape == SHAPE
    assert assert_same(tmp_path / "pages.tif").shape == SHAPE


def test_missing_values_of_gdal(tmp_path):
    normals = relief()
    normals[40:60, 30:150] = -9999
    tags = [(42113, "s", 0, "-9999", True)]
    tifffile.imwrite(tmp_path / "map.tif", normals, photometric="rgb", tile=(32, 32), extratags=tags)
    assert_same(tmp_path / "map.tif")


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(order, tmp_path):
    np.save(tmp_path / "map.npy", np.asarray(relief(), np.float64, order=order))
    assert_same(tmp_path / "map.npy")


def test_floats_from_zero_to_one(tmp_path):
    np.save(tmp_path / "map.npy", (relief() + 1) / 2)
    assert_same(tmp_path / "map.npy")


@pytest.mark.parametrize("camera", [None, nm.Perspective.centred(150, SHAPE)], ids=["orthographic", "perspective"])
@pytest.mark.parametrize("masked", [False, True])
def test_holes_specks_and_normals_turned_away(masked, camera, tmp_path):
    np.save(tmp_path / "map.npy", torn(np.random.default_rng(0)))
    mask = np.ones(SHAPE, bool)
    mask[:, :5] = mask[90:, 140:] = False
    opened = assert_same(tmp_path / "map.npy", mask=mask if masked else None, camera=camera)
    assert opened.repairs.extended > 100


def test_random_holes(tmp_path):
    """Holes of all shapes, in masks of all shapes."""
    rng = np.random.default_rng(2)
    for number in range(6):
        normals = relief()
        coarse = rng.random((30, 43)) < rng.uniform(0.05, 0.6)
        normals[np.kron(coarse, np.ones((4, 4), bool))[: SHAPE[0], : SHAPE[1]]] = np.nan
        mask = np.kron(rng.random((10, 15)) < 0.9, np.ones((12, 12), bool))[: SHAPE[0], : SHAPE[1]]
        np.save(tmp_path / f"{number}.npy", normals)
        assert_same(tmp_path / f"{number}.npy", mask=mask if number % 2 else None)


@pytest.mark.parametrize("kind", ["tif", "npy", "png"])
def test_mask_of_a_file(kind, tmp_path):
    mask = np.zeros(SHAPE, np.uint8)
    mask[10:100, 20:140] = 255
    mask[50:60, 70:80] = 0
    np.save(tmp_path / "map.npy", torn(np.random.default_rng(0)))
    if kind == "tif":
        tifffile.imwrite(tmp_path / "mask.tif", mask, tile=(16, 32), compression="zlib")
    elif kind == "npy":
        np.save(tmp_path / "mask.npy", mask)
    else:
        write_png(tmp_path / "mask.png", mask)
    assert_same(tmp_path / "map.npy", mask=tmp_path / f"mask.{kind}")


def test_mask_of_greys_and_of_ones(tmp_path):
    np.save(tmp_path / "map.npy", relief())
    ramp = np.broadcast_to(np.linspace(0, 255, SHAPE[1]), SHAPE).astype(np.uint8)
    for name, values in (("greys", ramp), ("ones", (ramp > 99).astype(np.uint8))):
        tifffile.imwrite(tmp_path / f"{name}.tif", values, rowsperstrip=8)
        assert_same(tmp_path / "map.npy", mask=tmp_path / f"{name}.tif")


ALPHAS = {
    "mask": lambda v, u: 255 * ((u > 20) & (v < 100)),
    "height": lambda v, u: (u + v) % 256,
    "opaque": lambda v, u: 255 + 0 * u,
    "soft": lambda v, u: np.clip(8 * (u - 20), 0, 255),
}


@pytest.mark.parametrize("use", ["auto", "mask", "ignore"])
@pytest.mark.parametrize("kind", ALPHAS)
def test_alpha(kind, use, tmp_path):
    values = with_alpha(encode(relief(), np.uint8), ALPHAS[kind](*np.indices(SHAPE)))
    options = {"photometric": "rgb", "extrasamples": ["unassalpha"], "tile": (32, 32), "compression": "zlib"}
    tifffile.imwrite(tmp_path / "map.tif", values, **options)
    assert_same(tmp_path / "map.tif", alpha=use)


def test_alpha_that_is_zero_in_the_background_and_colours_multiplied_by_it(tmp_path):
    normals, inside = ball((-1, -1, -1))
    alpha = np.where(inside, 60 + np.arange(SHAPE[1]), 0)
    values = with_alpha(encode(normals, np.uint8), alpha)
    premultiplied = with_alpha(np.rint(encode(normals, np.uint8) * (alpha[..., None] / 255)), alpha).astype(np.uint8)
    for number, image in enumerate((values, premultiplied)):
        options = {"photometric": "rgb", "extrasamples": ["unassalpha"], "tile": (32, 32)}
        tifffile.imwrite(tmp_path / f"{number}.tif", image, **options)
        opened = assert_same(tmp_path / f"{number}.tif")
        assert opened.foreground < inside.size / 2


@pytest.mark.parametrize("colour", [(0, 0, 1), (0.3, 0.3, 0.3), (0, 0, 0)], ids=["flat", "no normal", "grey"])
@pytest.mark.parametrize("noise", [0, 4])
def test_background(colour, noise, tmp_path):
    normals, inside = ball(colour)
    values = encode(normals, np.uint8) + np.random.default_rng(0).integers(-noise, noise + 1, normals.shape)
    values = np.clip(values, 0, 255).astype(np.uint8)
    tifffile.imwrite(tmp_path / "map.tif", values, photometric="rgb", tile=(32, 32), compression="zlib")
    opened = assert_same(tmp_path / "map.tif")
    assert abs(opened.foreground - np.count_nonzero(inside)) < 0.1 * inside.size


def test_ground_of_a_relief_is_no_background(tmp_path):
    normals = relief()
    normals[:20] = normals[-20:] = normals[:, :20] = normals[:, -20:] = (0, 0, 1)
    np.save(tmp_path / "map.npy", normals)
    assert assert_same(tmp_path / "map.npy").foreground == normals[..., 0].size


def test_small_object_in_a_large_image(tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_arrays, "PASS_PIXELS", 60_000)
    normals = np.zeros((900, 1100, 3), np.float32)
    normals[403:440, 501:530] = relief()[:37, :29]
    np.save(tmp_path / "map.npy", normals)
    assert_same(tmp_path / "map.npy", convention="auto")


@pytest.mark.parametrize("convention", ["directx", "opencv", "+y+x+z", "auto"])
def test_conventions(convention, tmp_path):
    stored = nm.Convention.parse("opencv" if convention == "auto" else convention).from_project(ball((0, 0, 0))[0])
    np.save(tmp_path / "map.npy", stored)
    assert_same(tmp_path / "map.npy", convention=convention)


def test_components_of_clamped_normals_are_counted_over_windows(tmp_path):
    normals = relief()
    mask = np.ones(SHAPE, bool)
    mask[:, 100:104] = False
    normals[:, 104:112] = (0.999, 0, 0.01)
    mask[:, 112:116] = False
    np.save(tmp_path / "map.npy", normals)
    _, (*_, text) = recorded(lambda: nm.read_normal_map(tmp_path / "map.npy", mask=mask))
    assert "1 component of the mask consists of them" in text
    assert_same(tmp_path / "map.npy", mask=mask)


def test_a_window_decodes_only_the_tiles_that_it_touches(tmp_path, monkeypatch):
    normals = np.tile(encode(relief(), np.uint8), (4, 4, 1))[:448, :640]
    options = {"photometric": "rgb", "tile": (64, 64), "compression": "zlib"}
    tifffile.imwrite(tmp_path / "map.tif", normals, **options)
    opened, _ = recorded(lambda: nm.NormalMap.open(tmp_path / "map.tif"))
    decoded = []
    copy = tiff_windows._Page._copy
    monkeypatch.setattr(
        tiff_windows._Page, "_copy", lambda page, piece, *rest: (decoded.append(piece), copy(page, piece, *rest))
    )
    opened.window(slice(60, 130), slice(128, 192))
    assert sorted(decoded) == [2, 12, 22]
    opened.mask_window(slice(0, 448), slice(0, 640))
    assert len(decoded) == 3


def test_threads_may_share_a_map(tmp_path):
    tifffile.imwrite(tmp_path / "map.tif", encode(relief(), np.uint16), photometric="rgb", tile=(16, 16))
    opened = assert_same(tmp_path / "map.tif")
    whole, failures = opened.read(), []

    def compare(top):
        for left in range(0, 130, 10):
            rows, columns = slice(top, top + 30), slice(left, left + 40)
            if opened.window(rows, columns).normals.tobytes() != whole.window(rows, columns).normals.tobytes():
                failures.append((top, left))

    threads = [threading.Thread(target=compare, args=(top,)) for top in range(0, 80, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_map_in_memory_is_stored_and_opened(tmp_path):
    mask = np.zeros(SHAPE, bool)
    mask[20:90, 30:150] = True
    whole = nm.NormalMap(relief(), mask, nm.Perspective.centred(200, SHAPE))
    opened = pickle.loads(pickle.dumps(nm.MapOnDisk.of(whole, tmp_path / "work" / "map")))
    assert opened.read().normals.tobytes() == whole.normals.tobytes()
    assert opened.rectangle() == whole.rectangle() == (20, 30, 70, 120)
    assert_same_windows(whole, opened)


def test_windows_of_a_map_in_memory_share_its_rows():
    whole, _ = waves(SHAPE)
    window = whole.window(slice(10, 40), slice(None))
    assert np.shares_memory(window.normals, whole.normals)
    assert window.shape == (30, 170)
    assert whole.window(slice(100, 500), slice(5, 9)).shape == (20, 4)


def test_pickle_holds_no_pixels(tmp_path):
    np.save(tmp_path / "map.npy", relief())
    assert len(pickle.dumps(nm.NormalMap.open(tmp_path / "map.npy"))) < 3000


def refused(path, match, **options):
    with pytest.raises(nm.NormalMeshError, match=match):
        nm.NormalMap.open(path, **options)


def test_files_that_cannot_be_opened(tmp_path):
    write_png(tmp_path / "map.png", encode(relief(), np.uint8))
    refused(tmp_path / "map.png", "is a PNG file, which cannot be read in windows; convert it to a tiled TIFF")
    refused(tmp_path, "is a folder, but no Zarr array or group")
    refused(tmp_path / "none.tif", "there is no such file")
    np.save(tmp_path / "map.npy", relief())
    refused(tmp_path / "map.npy", "a NPY file holds one image", variable="normals")
    refused(tmp_path / "map.npy", "more than the limit", max_pixels=100)
    refused(tmp_path / "map.npy", "mask is 3×3 but normals are 120×170", mask=np.ones((3, 3)))
    np.save(tmp_path / "mask.npy", np.zeros(SHAPE))
    refused(tmp_path / "map.npy", "mask is empty", mask=tmp_path / "mask.npy")
    tifffile.imwrite(tmp_path / "mask.tif", np.ones((4, 4), np.uint8))
    refused(tmp_path / "map.npy", r"mask.tif: mask is 4×4", mask=tmp_path / "mask.tif")
    np.save(tmp_path / "grey.npy", np.ones(SHAPE))
    refused(tmp_path / "grey.npy", r"must have the shape \(rows, columns, 3\)")
    np.save(tmp_path / "wide.npy", np.ones((*SHAPE, 3), np.int64))
    refused(tmp_path / "wide.npy", "whose range is not known")
    np.save(tmp_path / "zero.npy", np.zeros((*SHAPE, 3)))
    refused(tmp_path / "zero.npy", "no pixel")
    tifffile.imwrite(tmp_path / "narrow.tif", encode(relief(), np.uint8).astype(np.uint16), photometric="rgb")
    refused(tmp_path / "narrow.tif", "8-bit values in a wider file")


def test_damaged_files_are_named(tmp_path):
    tifffile.imwrite(tmp_path / "map.tif", encode(relief(), np.uint8), photometric="rgb", tile=(32, 32))
    content = (tmp_path / "map.tif").read_bytes()
    (tmp_path / "map.tif").write_bytes(content[: len(content) // 2])
    refused(tmp_path / "map.tif", r"map\.tif: cannot be read as TIFF")
    np.save(tmp_path / "map.npy", relief())
    content = (tmp_path / "map.npy").read_bytes()
    (tmp_path / "map.npy").write_bytes(content[:-100])
    refused(tmp_path / "map.npy", r"map\.npy: cannot be read as NPY.*too short")


def test_windows_outside_the_image_are_refused():
    whole, _ = waves((20, 30))
    for rows, columns in (
        (slice(20, 25), slice(0, 5)),
        (slice(-3, 5), slice(0, 5)),
        (slice(0, 9, 2), slice(0, 5)),
        (3, 4),
    ):
        with pytest.raises(nm.NormalMeshError, match="slices without steps"):
            whole.window(rows, columns)
