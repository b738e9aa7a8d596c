"""read_normal_map: every format and bit depth, masks, background, ranges, conventions, and what it refuses."""

from __future__ import annotations

import builtins
import io
import itertools
import re
import struct
import tracemalloc
import warnings
import zlib
from importlib import import_module
from types import SimpleNamespace

import imagecodecs
import numpy as np
import PIL.Image
import pytest
import scipy.io
import tifffile

from normalmesh import NormalMeshError, NormalMeshWarning, Orthographic, Perspective, read_normal_map
from normalmesh.conventions import Convention
from normalmesh.files.images import read_image

OpenEXR = pytest.importorskip("OpenEXR")

ROWS, COLUMNS = 12, 17


def dome() -> np.ndarray:
    """Unit normals (12, 17, 3) float64 of a paraboloid: all directions differ, none is grazing."""
    v, u = np.mgrid[0:ROWS, 0:COLUMNS]
    n = np.dstack([(u - 8.2) / 9, (5.3 - v) / 8, np.ones((ROWS, COLUMNS))])
    return n / np.linalg.norm(n, axis=2, keepdims=True)


def encode(normals: np.ndarray, dtype: type) -> np.ndarray:
    """Normals as integers: 2·value/maximum − 1, or value/maximum for signed types."""
    maximum = np.iinfo(dtype).max
    return np.rint(normals * maximum if np.iinfo(dtype).min else (normals + 1) / 2 * maximum).astype(dtype)


def with_alpha(values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    return np.dstack([values, alpha.astype(values.dtype)])


def corner_mask() -> np.ndarray:
    mask = np.zeros((ROWS, COLUMNS), bool)
    mask[:5, :7] = True
    return mask


def assert_reads(path, tolerance, foreground=None, **options):
    """The file reads as the dome, within a tolerance, with all of it or the given pixels as foreground."""
    result = read_normal_map(path, **options)
    foreground = np.ones((ROWS, COLUMNS), bool) if foreground is None else foreground
    np.testing.assert_array_equal(result.mask, foreground)
    np.testing.assert_allclose(result.normals[foreground], dome()[foreground], atol=tolerance)


def write_png(path, values):
    path.write_bytes(imagecodecs.png_encode(np.ascontiguousarray(values)))
    return path


def write_exr(path, channels, **header):
    channels = {name: np.ascontiguousarray(values) for name, values in channels.items()}
    settings = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **header}
    OpenEXR.File(settings, channels).write(str(path))
    return path


def layer(normals, prefix="", axes="RGB", dtype=np.float32):
    return {prefix + axis: normals[..., k].astype(dtype) for k, axis in enumerate(axes)}


def hand_made_png(width, height, depth, colour, rows, extra=b"", interlace=0):
    """A PNG from raw rows, for kinds that encoders do not write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def silent_diagnosis(normals, mask=None, camera=None):
    return SimpleNamespace(axes=None, candidates=("+x+y+z",), strongly_excludes=lambda convention: False)


@pytest.fixture(autouse=True)
def no_diagnosis(monkeypatch, request):
    """Tiny and odd maps are for reading, not for diagnosing; tests of the diagnosis ask for it."""
    if "real_diagnosis" not in request.fixturenames:
        monkeypatch.setattr(import_module("normalmesh.diagnosis"), "diagnose", silent_diagnosis)


@pytest.fixture
def real_diagnosis():
    """Asks for the diagnosis as it is."""


class TestFormats:
    @pytest.mark.parametrize(("dtype", "tolerance"), [(np.uint8, 0.006), (np.uint16, 2.5e-5)])
    def test_png(self, tmp_path, dtype, tolerance):
        assert_reads(write_png(tmp_path / "n.png", encode(dome(), dtype)), tolerance)

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    @pytest.mark.parametrize("channels", [3, 4])
    def test_png_keeps_every_bit_and_the_channel_order(self, tmp_path, dtype, channels):
        rng = np.random.default_rng(1)
        values = rng.integers(0, np.iinfo(dtype).max, (9, 8, channels), dtype, endpoint=True)
        image = read_image(write_png(tmp_path / "n.png", values), "PNG")
        assert image.values.dtype == dtype
        assert image.maximum == np.iinfo(dtype).max
        np.testing.assert_array_equal(image.values, values)

    def test_sixteen_bits_differ_from_eight(self, tmp_path):
        values = encode(dome(), np.uint16)
        expected = values / 65535 * 2 - 1
        expected /= np.linalg.norm(expected, axis=2, keepdims=True)
        result = read_normal_map(write_png(tmp_path / "n.png", values))
        np.testing.assert_allclose(result.normals, expected, atol=2e-7)

    def test_png_with_a_transparent_colour(self, tmp_path):
        key = struct.pack(">I", 6) + b"tRNS" + b"\0\x80\0\x80\0\xfe"
        key += struct.pack(">I", zlib.crc32(key[4:]))
        path = tmp_path / "n.png"
        path.write_bytes(hand_made_png(2, 1, 8, 2, b"\0\x80\x80\xff\x80\x80\xfe", key))
        assert read_normal_map(path).mask.tolist() == [[True, False]]

    def test_interlaced_png(self, tmp_path):
        values = encode(dome(), np.uint8)
        rows = b""
        for row, column, down, across in [
            (0, 0, 8, 8),
            (0, 4, 8, 8),
            (4, 0, 8, 4),
            (0, 2, 4, 4),
            (2, 0, 4, 2),
            (0, 1, 2, 2),
            (1, 0, 2, 1),
        ]:
            for line in values[row::down, column::across]:
                rows += b"\0" + line.tobytes()
        path = tmp_path / "n.png"
        path.write_bytes(hand_made_png(COLUMNS, ROWS, 8, 2, rows, interlace=1))
        np.testing.assert_array_equal(read_image(path, "PNG").values, values)

    def test_jpeg(self, tmp_path):
        path = tmp_path / "n.jpg"
        tilted = np.full((ROWS, COLUMNS, 3), (-0.6, 0, 0.8))
        path.write_bytes(imagecodecs.jpeg8_encode(encode(tilted, np.uint8), level=98))
        np.testing.assert_allclose(read_normal_map(path).normals, tilted, atol=0.02)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"compression": "zlib", "predictor": True},
            {"compression": "lzw"},
            {"tile": (16, 16)},
            {"tile": (16, 16), "compression": "zlib"},
            {"planarconfig": "separate"},
            {"bigtiff": True},
            {"byteorder": ">"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize(
        ("dtype", "tolerance"), [(np.uint8, 0.006), (np.uint16, 2.5e-5), (np.float32, 1e-6), (np.float64, 1e-6)]
    )
    def test_tiff(self, tmp_path, options, dtype, tolerance):
        values = encode(dome(), dtype) if np.dtype(dtype).kind == "u" else dome().astype(dtype)
        stored = np.moveaxis(values, 2, 0) if "planarconfig" in options else values
        tifffile.imwrite(tmp_path / "n.tif", stored, photometric="rgb", **options)
        np.testing.assert_array_equal(read_image(tmp_path / "n.tif", "TIFF").values, values)
        assert_reads(tmp_path / "n.tif", tolerance)

    @pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint32, np.float16])
    def test_tiff_of_rarer_types(self, tmp_path, dtype):
        values = dome().astype(dtype) if np.dtype(dtype).kind == "f" else encode(dome(), dtype)
        tifffile.imwrite(tmp_path / "n.tif", values, photometric="rgb")
        assert_reads(tmp_path / "n.tif", 0.006)

    def test_tiff_of_plain_data_pages(self, tmp_path):
        tifffile.imwrite(tmp_path / "n.tif", dome().astype(np.float32), photometric="minisblack")
        assert_reads(tmp_path / "n.tif", 1e-6)

    def test_tiff_with_alpha(self, tmp_path):
        values = with_alpha(encode(dome(), np.uint16), 65535 * corner_mask())
        tifffile.imwrite(tmp_path / "n.tif", values, photometric="rgb", extrasamples=["unassalpha"])
        assert_reads(tmp_path / "n.tif", 2.5e-5, corner_mask())

    @pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 1e-3), (np.float32, 1e-6)])
    @pytest.mark.parametrize("prefix", ["", "normal."])
    @pytest.mark.parametrize("axes", ["RGB", "XYZ"])
    def test_exr(self, tmp_path, dtype, tolerance, prefix, axes):
        path = write_exr(tmp_path / "n.exr", layer(dome(), prefix, axes, dtype))
        assert_reads(path, tolerance)

    def test_exr_alpha_is_the_mask(self, tmp_path):
        channels = {**layer(dome(), "normal.", "XYZ"), "A": corner_mask().astype(np.float32)}
        assert_reads(write_exr(tmp_path / "n.exr", channels), 1e-6, corner_mask())

    def test_exr_layer_by_name(self, tmp_path):
        path = write_exr(tmp_path / "n.exr", {**layer(dome() * 0 + 0.3), **layer(dome(), "view.normal.", "XYZ")})
        assert_reads(path, 1e-6, variable="view.normal")
        with pytest.raises(NormalMeshError, match=r"several layers could be the normals: RGB, view\.normal; name one"):
            read_normal_map(path)
        with pytest.raises(NormalMeshError, match=r"no layer 'x' with three channels; the file holds: RGB, view"):
            read_normal_map(path, variable="x")

    def test_exr_with_both_kinds_of_channels(self, tmp_path):
        path = write_exr(tmp_path / "n.exr", {**layer(dome() * 0 + 0.3, "a."), **layer(dome(), "a.", "XYZ")})
        assert_reads(path, 1e-6, variable="a.XYZ")

    def test_exr_part_by_name(self, tmp_path):
        settings = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
        parts = [
            OpenEXR.Part(dict(settings), layer(dome() * scale), name) for name, scale in (("colour", 0.4), ("n", 1))
        ]
        OpenEXR.File(parts).write(str(tmp_path / "n.exr"))
        assert_reads(tmp_path / "n.exr", 1e-6, variable="n")

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float16, np.float32, np.float64, ">f4", ">u2"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_npy(self, tmp_path, dtype, order):
        dtype = np.dtype(dtype)
        values = dome().astype(dtype) if dtype.kind == "f" else encode(dome(), dtype).astype(dtype)
        np.save(tmp_path / "n.npy", np.asarray(values, order=order))
        assert_reads(tmp_path / "n.npy", 0.006 if dtype.itemsize == 1 else 1e-3)

    def test_npy_with_alpha(self, tmp_path):
        np.save(tmp_path / "n.npy", with_alpha(dome(), corner_mask()))
        assert_reads(tmp_path / "n.npy", 1e-6, corner_mask())

    @pytest.mark.parametrize("name", ["normals", "Normal_gt", "N", "something"])
    def test_npz(self, tmp_path, name):
        np.savez_compressed(tmp_path / "n.npz", depth=np.zeros((3, 4)), **{name: dome()})
        assert_reads(tmp_path / "n.npz", 1e-6)

    @pytest.mark.parametrize("compressed", [False, True])
    def test_mat(self, tmp_path, compressed):
        contents = {"Normal_gt": dome(), "mask": corner_mask(), "notes": "measured"}
        scipy.io.savemat(tmp_path / "n.mat", contents, do_compression=compressed)
        assert_reads(tmp_path / "n.mat", 1e-6, corner_mask())

    def test_the_suffix_does_not_matter(self, tmp_path):
        assert_reads(write_png(tmp_path / "normals.jpg", encode(dome(), np.uint16)), 2.5e-5)

    def test_text_paths(self, tmp_path):
        assert_reads(str(write_png(tmp_path / "n.png", encode(dome(), np.uint16))), 2.5e-5)


class TestVariables:
    def save(self, path, **arrays):
        if path.suffix == ".npz":
            np.savez(path, **arrays)
        else:
            scipy.io.savemat(path, arrays)
        return path

    @pytest.mark.parametrize("suffix", [".npz", ".mat"])
    def test_by_name(self, tmp_path, suffix):
        path = self.save(tmp_path / f"n{suffix}", normals=np.ones((2, 2, 3)), other=dome(), grey=np.ones((4, 4)))
        assert_reads(path, 1e-6, variable="other")

    @pytest.mark.parametrize("suffix", [".npz", ".mat"])
    def test_refused(self, tmp_path, suffix):
        path = self.save(tmp_path / f"n{suffix}", first=dome(), second=dome(), grey=np.ones((4, 5)))
        with pytest.raises(NormalMeshError, match="several arrays could be the normals: first, second; name one"):
            read_normal_map(path)
        with pytest.raises(
            NormalMeshError, match=r"no variable 'x'; the file holds: first \(12×17×3\), .*grey \(4×5\)"
        ):
            read_normal_map(path, variable="x")
        with pytest.raises(NormalMeshError, match=r"'grey' must have the shape \(rows, columns, 3\), not 4×5"):
            read_normal_map(path, variable="grey")
        path = self.save(tmp_path / f"m{suffix}", grey=np.ones((4, 5)))
        with pytest.raises(NormalMeshError, match=r"no array has the shape .*; the file holds: grey \(4×5\)"):
            read_normal_map(path)

    def test_only_where_there_is_a_choice(self, tmp_path):
        with pytest.raises(NormalMeshError, match=r"a PNG file holds one image: variable='x'"):
            read_normal_map(write_png(tmp_path / "n.png", encode(dome(), np.uint8)), variable="x")


class TestMasks:
    @pytest.fixture
    def normals(self, tmp_path):
        return write_png(tmp_path / "n.png", encode(dome(), np.uint16))

    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
    def test_arrays_count_what_is_not_zero(self, normals, dtype):
        assert_reads(normals, 2.5e-5, corner_mask(), mask=corner_mask().astype(dtype))

    def test_a_given_array_stays_as_it_is(self, tmp_path):
        values = encode(dome(), np.uint8)
        values[0, 0] = 0
        mask = corner_mask()
        read_normal_map(write_png(tmp_path / "n.png", values), mask=mask)
        assert mask[0, 0]

    @pytest.mark.parametrize(
        ("background", "foreground", "dtype"),
        [(0, 255, np.uint8), (127, 128, np.uint8), (0, 1, np.uint8), (0, 1, np.uint16), (32767, 32768, np.uint16)],
    )
    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    def test_png_masks(self, tmp_path, normals, background, foreground, dtype, channels):
        grey = np.where(corner_mask(), foreground, background).astype(dtype)
        opaque = np.full_like(grey, np.iinfo(dtype).max)
        planes = {1: [grey], 2: [grey, opaque], 3: [grey] * 3, 4: [grey, grey // 2, grey // 2, opaque]}[channels]
        path = write_png(tmp_path / "mask.png", np.dstack(planes).squeeze())
        assert_reads(normals, 2.5e-5, corner_mask(), mask=path)

    def test_transparent_pixels_of_a_mask_are_background(self, tmp_path, normals):
        white = np.full((ROWS, COLUMNS, 3), 255, np.uint8)
        path = write_png(tmp_path / "mask.png", with_alpha(white, 255 * corner_mask()))
        assert_reads(normals, 2.5e-5, corner_mask(), mask=path)

    def test_one_bit_palette_and_jpeg_masks(self, tmp_path, normals):
        packed = np.packbits(corner_mask(), axis=1)
        rows = b"".join(b"\0" + line.tobytes() for line in packed)
        palette = struct.pack(">I", 6) + b"PLTE" + b"\0\0\0\xff\xff\xff"
        palette += struct.pack(">I", zlib.crc32(palette[4:]))
        path = tmp_path / "mask.png"
        path.write_bytes(hand_made_png(COLUMNS, ROWS, 1, 0, rows))
        assert_reads(normals, 2.5e-5, corner_mask(), mask=path)
        path.write_bytes(hand_made_png(COLUMNS, ROWS, 1, 3, rows, palette))
        assert_reads(normals, 2.5e-5, corner_mask(), mask=path)
        path.write_bytes(imagecodecs.jpeg8_encode((255 * corner_mask()).astype(np.uint8), level=95))
        assert_reads(normals, 2.5e-5, corner_mask(), mask=path)

    @pytest.mark.parametrize("values", [corner_mask(), corner_mask().astype(np.float32), corner_mask() * np.uint8(255)])
    def test_tiff_masks(self, tmp_path, normals, values):
        tifffile.imwrite(tmp_path / "mask.tif", values)
        assert_reads(normals, 2.5e-5, corner_mask(), mask=tmp_path / "mask.tif")

    def test_tiff_mask_where_zero_is_white(self, tmp_path, normals):
        tifffile.imwrite(tmp_path / "mask.tif", np.where(corner_mask(), 0, 255).astype("u1"), photometric="miniswhite")
        assert_reads(normals, 2.5e-5, corner_mask(), mask=tmp_path / "mask.tif")

    def test_npy_mask(self, tmp_path, normals):
        np.save(tmp_path / "mask.npy", corner_mask().astype(np.int64))
        assert_reads(normals, 2.5e-5, corner_mask(), mask=tmp_path / "mask.npy")

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_alpha_from_half_on(self, tmp_path, dtype):
        half = (np.iinfo(dtype).max + 1) // 2
        path = write_png(tmp_path / "n.png", with_alpha(encode(dome(), dtype), np.where(corner_mask(), half, half - 1)))
        assert_reads(path, 0.006, corner_mask())

    def test_a_given_mask_wins_over_alpha(self, tmp_path):
        path = write_png(tmp_path / "n.png", with_alpha(encode(dome(), np.uint8), 255 * ~corner_mask()))
        assert_reads(path, 0.006, corner_mask(), mask=corner_mask())

    def test_wrong_sizes(self, tmp_path, normals):
        with pytest.raises(NormalMeshError, match="mask is 4×5 but normals are 12×17"):
            read_normal_map(normals, mask=np.ones((4, 5)))
        with pytest.raises(NormalMeshError, match="mask is 4×5 but normals are 12×17"):
            read_normal_map(normals, mask=write_png(tmp_path / "mask.png", np.full((4, 5), 255, np.uint8)))
        np.save(tmp_path / "mask.npy", np.ones((ROWS, COLUMNS, 1)))
        with pytest.raises(NormalMeshError, match=r"mask\.npy: a mask must have the shape .*, not 12×17×1"):
            read_normal_map(normals, mask=tmp_path / "mask.npy")

    def test_empty_and_label_masks(self, tmp_path, normals):
        labels = np.arange(ROWS * COLUMNS, dtype=np.uint8).reshape(ROWS, COLUMNS) % 4
        path = write_png(tmp_path / "mask.png", labels)
        with pytest.raises(
            NormalMeshError, match=r"mask\.png: the mask is empty: its largest value is 3 .* half of 255"
        ):
            read_normal_map(normals, mask=path)
        with pytest.raises(NormalMeshError, match="mask is empty"):
            read_normal_map(normals, mask=np.zeros((ROWS, COLUMNS)))

    def test_files_that_are_no_masks(self, tmp_path, normals):
        with pytest.raises(NormalMeshError, match="there is no such file"):
            read_normal_map(normals, mask=tmp_path / "none.png")
        np.savez(tmp_path / "mask.npz", mask=corner_mask())
        with pytest.raises(NormalMeshError, match=r"a mask must be a PNG, JPEG, TIFF or NPY file, not NPZ"):
            read_normal_map(normals, mask=tmp_path / "mask.npz")
        (tmp_path / "mask.txt").write_text("1 1 1")
        with pytest.raises(NormalMeshError, match=r"a mask must be a PNG, JPEG, TIFF or NPY file$"):
            read_normal_map(normals, mask=tmp_path / "mask.txt")
        tifffile.imwrite(
            tmp_path / "mask.tif",
            corner_mask().astype(np.uint8),
            photometric="palette",
            colormap=np.zeros((3, 256), np.uint16),
        )
        with pytest.raises(NormalMeshError, match=r"is a palette image; save the mask as grey or RGB"):
            read_normal_map(normals, mask=tmp_path / "mask.tif")


class TestBackground:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_black_and_mid_grey(self, tmp_path, dtype):
        values = encode(dome(), dtype)
        low = np.iinfo(dtype).max // 2
        colours = [(0, 0, 0), *itertools.product([low, low + 1], repeat=3)]
        for column, colour in enumerate(colours):
            values[3, column] = colour
        mask = np.ones((ROWS, COLUMNS), bool)
        mask[3, : len(colours)] = False
        path = write_png(tmp_path / "n.png", values)
        assert_reads(path, 0.006, mask)
        assert_reads(path, 0.006, mask, mask=np.ones((ROWS, COLUMNS)))

    def test_two_steps_from_mid_grey_is_a_normal(self, tmp_path):
        values = encode(dome(), np.uint8)
        values[0, 0] = (127, 128, 129)
        with pytest.warns(NormalMeshWarning, match="1 normals were not of unit length"):
            assert read_normal_map(write_png(tmp_path / "n.png", values)).mask.all()

    @pytest.mark.parametrize("value", [0, np.nan, np.inf, 1e300])
    def test_zero_and_nan_of_floats_without_a_mask(self, tmp_path, value):
        values = dome()
        values[~corner_mask()] = value
        np.save(tmp_path / "n.npy", values)
        assert_reads(tmp_path / "n.npy", 1e-6, corner_mask())

    def test_nan_inside_a_given_mask_is_reported(self, tmp_path):
        values = dome()
        values[0, 0, 1] = np.nan
        np.save(tmp_path / "n.npy", values)
        with pytest.warns(NormalMeshWarning, match="1 NaN, infinite or zero-length normals left the mask"):
            assert not read_normal_map(tmp_path / "n.npy", mask=np.ones((ROWS, COLUMNS))).mask[0, 0]

    def test_black_and_mid_grey_of_floats(self, tmp_path):
        values = (dome() + 1) / 2
        values[0, :3] = 0
        values[1, :3] = 0.5
        mask = np.ones((ROWS, COLUMNS), bool)
        mask[:2, :3] = False
        np.save(tmp_path / "n.npy", values)
        with pytest.warns(NormalMeshWarning, match="decoded as 2·value − 1"):
            assert_reads(tmp_path / "n.npy", 1e-6, mask)

    def test_nothing_but_background(self, tmp_path):
        with pytest.raises(NormalMeshError, match=r"n\.png: no pixel is foreground: all are black, mid grey"):
            read_normal_map(write_png(tmp_path / "n.png", np.zeros((4, 5, 3), np.uint8)))


class TestFloatRange:
    def save(self, tmp_path, values):
        np.save(tmp_path / "n.npy", np.asarray(values, np.float32))
        return tmp_path / "n.npy"

    def test_zero_to_one_is_reported(self, tmp_path):
        path = self.save(tmp_path, (dome() + 1) / 2)
        with pytest.warns(NormalMeshWarning, match=r"n\.npy: floats lie in \[0, 1\]; they were decoded") as caught:
            assert_reads(path, 1e-6)
        assert [warning.filename for warning in caught] == [__file__]

    def test_signed_without_negative_values(self, tmp_path):
        values = np.abs(dome())
        np.testing.assert_allclose(read_normal_map(self.save(tmp_path, values)).normals, values, atol=1e-6)

    def test_a_flat_map_in_both_ranges(self, tmp_path):
        flat = np.full((5, 5, 3), (0.0, 0.0, 1.0))
        np.testing.assert_array_equal(read_normal_map(self.save(tmp_path, flat)).normals, flat)
        with pytest.warns(NormalMeshWarning, match="2·value − 1"):
            np.testing.assert_array_equal(read_normal_map(self.save(tmp_path, flat / 2 + 0.5)).normals, flat)

    def test_signed_vectors_of_any_length(self, tmp_path):
        with pytest.warns(NormalMeshWarning, match="not of unit length"):
            assert_reads(self.save(tmp_path, 3.5 * dome()), 1e-6)

    def test_only_the_foreground_is_asked(self, tmp_path):
        values = (dome() + 1) / 2
        values[~corner_mask()] = -1
        with pytest.warns(NormalMeshWarning, match="2·value − 1"):
            assert_reads(self.save(tmp_path, values), 1e-6, corner_mask(), mask=corner_mask())

    def test_a_large_map_with_a_tiny_foreground(self, tmp_path):
        values = np.zeros((1500, 1500, 3), np.float32)
        values[701, 703] = (0.5, 0.5, 1)
        with pytest.warns(NormalMeshWarning, match="2·value − 1"):
            assert read_normal_map(self.save(tmp_path, values)).foreground == 1

    def test_neither(self, tmp_path):
        path = self.save(tmp_path, (dome() + 1) / 2 * 255)
        with pytest.raises(
            NormalMeshError, match=r"floats from .* are neither normals in .*; divide them by .*\(255 for"
        ):
            read_normal_map(path)


class TestConventions:
    @pytest.mark.parametrize("convention", ["opengl", "directx", "opencv", "-y+z+x", "-z+x-y"])
    @pytest.mark.parametrize("dtype", [np.uint16, np.float32])
    def test_stated(self, tmp_path, convention, dtype):
        channels = Convention.parse(convention).from_project(dome())
        np.save(tmp_path / "n.npy", channels.astype(dtype) if dtype == np.float32 else encode(channels, dtype))
        assert_reads(tmp_path / "n.npy", 2.5e-5, convention=convention)

    def test_unknown(self, tmp_path):
        with pytest.raises(NormalMeshError, match="unknown convention 'vulkan'"):
            read_normal_map(tmp_path / "none.png", convention="vulkan")

    def use(self, monkeypatch, axes=None, candidates=(), excluded=()):
        seen = []

        def diagnose(normals, mask=None, camera=None):
            seen.append((normals.copy(), mask.copy(), camera))
            excludes = lambda convention: convention.axes in excluded  # noqa: E731
            return SimpleNamespace(axes=axes, candidates=candidates, strongly_excludes=excludes)

        monkeypatch.setattr(import_module("normalmesh.diagnosis"), "diagnose", diagnose)
        return seen

    def test_auto_takes_what_the_data_show(self, tmp_path, monkeypatch):
        seen = self.use(monkeypatch, "+x-y+z", ("+x-y+z",))
        channels = 1.01 * Convention.parse("directx").from_project(dome())
        np.save(tmp_path / "n.npy", channels)
        assert_reads(tmp_path / "n.npy", 1e-6, convention="auto")
        np.testing.assert_allclose(seen[0][0], channels, rtol=1e-6)
        assert seen[0][1].all()
        assert seen[0][2] == Orthographic()

    @pytest.mark.parametrize(
        ("candidates", "assumed"),
        [(("-x+y+z", "+x-y-z", "+x-y+z"), "directx"), ((), "opengl"), (("+y+x+z",), r"\+y\+x\+z")],
    )
    def test_auto_says_what_it_assumes(self, tmp_path, monkeypatch, candidates, assumed):
        self.use(monkeypatch, None, candidates)
        np.save(tmp_path / "n.npy", dome())
        with pytest.warns(NormalMeshWarning, match=f"cannot tell the convention; {assumed} was assumed") as caught:
            read_normal_map(tmp_path / "n.npy", convention="auto")
        assert caught[0].filename == __file__

    def test_a_contradiction_is_reported_once(self, tmp_path, monkeypatch):
        self.use(monkeypatch, "+x-y+z", ("+x-y+z",), ("+x+y+z",))
        np.save(tmp_path / "n.npy", dome())
        with pytest.warns(NormalMeshWarning, match="contradict the convention opengl; directx fits") as caught:
            assert_reads(tmp_path / "n.npy", 1e-6)
        assert len(caught) == 1

    def test_a_contradiction_is_reported_before_the_map_is_refused(self, tmp_path, monkeypatch):
        self.use(monkeypatch, "+x-y-z", ("+x-y-z",), ("+x+y+z",))
        np.save(tmp_path / "n.npy", Convention.parse("opencv").from_project(dome()))
        with (
            pytest.warns(NormalMeshWarning, match="contradict the convention opengl; opencv fits"),
            pytest.raises(NormalMeshError, match=r"n\.npy: all normals point away from the viewer"),
        ):
            read_normal_map(tmp_path / "n.npy")

    @pytest.mark.usefixtures("real_diagnosis")
    @pytest.mark.parametrize("convention", ["opengl", "directx", "opencv"])
    def test_a_ball_is_recognised(self, tmp_path, convention):
        path = write_png(tmp_path / "n.png", encode(Convention.parse(convention).from_project(ball()), np.uint16))
        mask = ball()[..., 2] > 0
        result = read_normal_map(path, mask, convention="auto")
        np.testing.assert_allclose(result.normals[mask], ball()[mask], atol=3e-5)

    @pytest.mark.usefixtures("real_diagnosis")
    def test_a_ball_read_wrongly_is_reported(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(ball(), np.uint16))
        with pytest.warns(NormalMeshWarning, match="contradict the convention directx; opengl fits"):
            read_normal_map(path, ball()[..., 2] > 0, convention="directx")


def ball(size: int = 128) -> np.ndarray:
    """Normals (size, size, 3) of a ball up to 80° from the viewer; zero outside."""
    v, u = np.mgrid[0:size, 0:size] + 0.5
    x, y = (u - size / 2) / (0.45 * size), (size / 2 - v) / (0.45 * size)
    z = np.sqrt(np.clip(1 - x * x - y * y, 0, None))
    return np.where(z[..., None] > np.cos(np.radians(80)), np.dstack([x, y, z]), 0)


class TestCameras:
    def test_objects_and_files(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(dome(), np.uint16))
        assert read_normal_map(path).camera == Orthographic()
        assert read_normal_map(path, camera=Orthographic(0.5)).camera == Orthographic(0.5)
        (tmp_path / "K.txt").write_text("900 0 8\n0 900 6\n0 0 1\n")
        assert read_normal_map(path, camera=tmp_path / "K.txt").camera == Perspective(900, 900, 8.5, 6.5)
        assert read_normal_map(path, camera=str(tmp_path / "K.txt")).camera == Perspective(900, 900, 8.5, 6.5)

    def test_refused(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(dome(), np.uint16))
        with pytest.raises(NormalMeshError, match=r"camera must be Orthographic.* or a file, not ndarray"):
            read_normal_map(path, camera=np.eye(3))
        with pytest.raises(NormalMeshError, match="there is no such file"):
            read_normal_map(path, camera="none.txt")
        (tmp_path / "K.txt").write_text("900 0 0\n0 900 0\n8 6 1\n")
        with pytest.raises(NormalMeshError, match=r"K\.txt: the camera matrix must read .*transposed"):
            read_normal_map(path, camera=tmp_path / "K.txt")


class TestRefused:
    def test_no_file(self, tmp_path):
        with pytest.raises(NormalMeshError, match=r"none\.png: there is no such file"):
            read_normal_map(tmp_path / "none.png")

    def test_a_folder(self, tmp_path):
        with pytest.raises(NormalMeshError, match="is a folder, not a file"):
            read_normal_map(tmp_path)

    def test_a_file_that_may_not_be_read(self, tmp_path, monkeypatch):
        def refuse(*args, **options):
            raise PermissionError(13, "Permission denied")

        path = write_png(tmp_path / "n.png", encode(dome(), np.uint8))
        monkeypatch.setattr(io, "open", refuse)
        with pytest.raises(NormalMeshError, match=r"n\.png: cannot be opened: Permission denied"):
            read_normal_map(path)

    def test_an_empty_file(self, tmp_path):
        (tmp_path / "n.png").touch()
        with pytest.raises(NormalMeshError, match=r"n\.png: the file is empty"):
            read_normal_map(tmp_path / "n.png")

    @pytest.mark.parametrize("content", [b"x", b"GIF89a" + bytes(200), b"solid cube\n"])
    def test_an_unknown_format(self, tmp_path, content):
        (tmp_path / "n.png").write_bytes(content)
        with pytest.raises(NormalMeshError, match="unknown format; expected PNG, JPEG, TIFF, EXR, NPY, NPZ or MAT"):
            read_normal_map(tmp_path / "n.png")

    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", "-zlib.tif", ".exr", ".npy", ".npz", ".mat"])
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.97])
    def test_truncated(self, tmp_path, suffix, share):
        normals = np.tile(dome(), (4, 4, 1))
        path = tmp_path / f"n{suffix}"
        if suffix == ".png":
            write_png(path, encode(normals, np.uint16))
        elif suffix == ".jpg":
            path.write_bytes(imagecodecs.jpeg8_encode(encode(normals, np.uint8), level=95))
        elif path.suffix == ".tif":
            compression = "zlib" if "zlib" in suffix else None
            tifffile.imwrite(path, encode(normals, np.uint16), photometric="rgb", compression=compression)
        elif suffix == ".exr":
            write_exr(path, layer(normals))
        elif suffix == ".npy":
            np.save(path, normals)
        elif suffix == ".npz":
            np.savez_compressed(path, normals=normals)
        else:
            scipy.io.savemat(path, {"normals": normals}, do_compression=True)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(NormalMeshError, match=rf"n{re.escape(suffix)}: cannot be read as .* incomplete"):
            read_normal_map(path)

    @pytest.mark.parametrize(
        ("colour", "rows", "name"), [(0, b"\0\1\2", "grey"), (3, b"\0\0\0", "palette"), (4, b"\0\1\2\3\4", "grey")]
    )
    def test_png_without_three_channels(self, tmp_path, colour, rows, name):
        palette = struct.pack(">I", 3) + b"PLTE" + b"\x80\x80\xff"
        palette += struct.pack(">I", zlib.crc32(palette[4:]))
        (tmp_path / "n.png").write_bytes(hand_made_png(2, 1, 8, colour, rows, palette if colour == 3 else b""))
        with pytest.raises(
            NormalMeshError, match=f"is a {name} image; a normal map needs three channels: save it as RGB"
        ):
            read_normal_map(tmp_path / "n.png")

    def test_jpeg_without_three_channels(self, tmp_path):
        path = tmp_path / "n.jpg"
        path.write_bytes(imagecodecs.jpeg8_encode(np.full((9, 9), 99, np.uint8)))
        with pytest.raises(NormalMeshError, match="is a grey image"):
            read_normal_map(path)
        PIL.Image.new("CMYK", (9, 9)).save(path)
        with pytest.raises(NormalMeshError, match="is a CMYK image"):
            read_normal_map(path)

    def test_tiff_without_three_channels(self, tmp_path):
        path, grey = tmp_path / "n.tif", np.ones((9, 9), np.uint8)
        tifffile.imwrite(path, grey)
        with pytest.raises(NormalMeshError, match="is a grey image"):
            read_normal_map(path)
        tifffile.imwrite(path, grey, photometric="palette", colormap=np.zeros((3, 256), np.uint16))
        with pytest.raises(NormalMeshError, match="is a palette image"):
            read_normal_map(path)
        tifffile.imwrite(path, np.ones((9, 9, 4), np.uint8), photometric="separated")
        with pytest.raises(NormalMeshError, match="is a CMYK image"):
            read_normal_map(path)
        tifffile.imwrite(path, np.ones((5, 9, 9), np.float32), photometric="minisblack")
        with pytest.raises(NormalMeshError, match="holds an array of 5×9×9; expected one image"):
            read_normal_map(path)

    def test_exr_without_the_extra(self, tmp_path, monkeypatch):
        path = write_exr(tmp_path / "n.exr", layer(dome()))
        original = builtins.__import__

        def without_openexr(name, *args, **options):
            if name == "OpenEXR":
                raise ImportError(name)
            return original(name, *args, **options)

        monkeypatch.setattr(builtins, "__import__", without_openexr)
        with pytest.raises(NormalMeshError, match=r"reading EXR needs OpenEXR; pip install normalmesh\[exr\]"):
            read_normal_map(path)

    def test_exr_of_other_channels(self, tmp_path):
        path = tmp_path / "n.exr"
        with pytest.raises(NormalMeshError, match="no layer has the channels R, G, B or X, Y, Z"):
            read_normal_map(write_exr(path, {"Y": dome()[..., 0].astype(np.float32)}))
        with pytest.raises(NormalMeshError, match="channel R holds whole numbers"):
            read_normal_map(write_exr(path, layer(dome() + 5, dtype=np.uint32)))

    def test_cropped_exr(self, tmp_path):
        corners = (np.array([0, 0], np.int32), np.array([99, 99], np.int32))
        path = write_exr(tmp_path / "n.exr", layer(dome()), displayWindow=corners)
        with pytest.raises(NormalMeshError, match="data window is not its display window"):
            read_normal_map(path)

    def test_subsampled_exr(self, tmp_path, monkeypatch):
        channel = SimpleNamespace(name="R", xSampling=2, ySampling=2)
        window = {"dataWindow": (0, 0), "displayWindow": (0, 0)}
        part = SimpleNamespace(channels=dict.fromkeys("RGB", channel), header=window, name=lambda: "")
        monkeypatch.setattr("normalmesh.files.exr._read_parts", lambda path: [part])
        with pytest.raises(NormalMeshError, match="channel R is subsampled; save all channels in full resolution"):
            read_normal_map(write_exr(tmp_path / "n.exr", layer(dome())))

    def test_arrays_of_other_shapes(self, tmp_path):
        np.save(tmp_path / "n.npy", np.ones((3, 20, 20)))
        with pytest.raises(NormalMeshError, match=r"normals must have the shape \(rows, columns, 3\), not 3×20×20"):
            read_normal_map(tmp_path / "n.npy")

    @pytest.mark.parametrize("dtype", [bool, np.int64, np.uint32, complex])
    def test_arrays_of_other_types(self, tmp_path, dtype):
        np.save(tmp_path / "n.npy", np.ones((4, 4, 3), dtype))
        with pytest.raises(
            NormalMeshError, match=f"holds {np.dtype(dtype)}, whose range is not known; save normals as"
        ):
            read_normal_map(tmp_path / "n.npy")

    def test_nothing_is_unpickled(self, tmp_path):
        np.save(tmp_path / "n.npy", np.full((2, 2, 3), None), allow_pickle=True)
        with pytest.raises(NormalMeshError, match=r"n\.npy: cannot be read as NPY"):
            read_normal_map(tmp_path / "n.npy")
        np.savez(tmp_path / "n.npz", normals=np.full((2, 2, 3), None))
        with pytest.raises(NormalMeshError, match=r"n\.npz: cannot be read as NPZ"):
            read_normal_map(tmp_path / "n.npz")

    @pytest.mark.parametrize(
        "content",
        [
            b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400) + b"\x89HDF\r\n\x1a\n",
            b"\x89HDF\r\n\x1a\n" + bytes(200),
        ],
    )
    def test_mat_of_version_7_3(self, tmp_path, content):
        (tmp_path / "n.mat").write_bytes(content)
        with pytest.raises(NormalMeshError, match=r"is a MAT file of version 7\.3 \(HDF5\).*save\(\.\.\., '-v7'\)"):
            read_normal_map(tmp_path / "n.mat")

    def test_eight_bits_in_sixteen(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(dome(), np.uint8).astype(np.uint16))
        with pytest.raises(NormalMeshError, match="values end at 255 of 65535: 8-bit values in a wider file"):
            read_normal_map(path)


def test_memory_stays_below_two_copies(tmp_path):
    """Two float32 copies of the normals and two masks; the diagnosis, which has a fixed budget, is not counted."""
    values = np.tile(encode(np.full((500, 500, 3), (0, 0.6, 0.8)), np.uint16), (4, 4, 1))
    path = write_png(tmp_path / "n.png", values)
    read_normal_map(path)  # compiles the kernel
    pixels = values.shape[0] * values.shape[1]
    del values
    tracemalloc.start()
    try:
        result = read_normal_map(path, convention="directx")
        peak = tracemalloc.get_traced_memory()[1] / pixels
    finally:
        tracemalloc.stop()
    assert result.foreground == pixels
    assert peak <= 26.5


@pytest.mark.usefixtures("real_diagnosis")
def test_shared_cases_read_as_stated(cases):
    for folder in sorted(path for path in cases.iterdir() if path.is_dir())[:4]:
        camera = folder / "K.txt"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = read_normal_map(folder / "normals.png", folder / "mask.png", camera if camera.exists() else None)
        assert result.foreground > 1000
        assert not any("convention" in str(warning.message) for warning in caught)
