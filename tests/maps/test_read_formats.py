"""read_normal_map: every format, bit depth and range."""

from __future__ import annotations

import struct
import zlib

import imagecodecs
import numpy as np
import pytest
import scipy.io
import tifffile

from normal_map_files import (
    COLUMNS,
    ROWS,
    assert_reads,
    corner_mask,
    dome,
    encode,
    hand_made_png,
    layer,
    with_alpha,
    write_exr,
    write_png,
)
from normalmesh import NormalMeshError, NormalMeshWarning, read_normal_map
from normalmesh.files.images import read_image

OpenEXR = pytest.importorskip("OpenEXR")

pytestmark = pytest.mark.usefixtures("no_diagnosis")


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
        with pytest.raises(NormalMeshError, match=r"no array has .*; the file holds: grey \(4×5\); from_heights"):
            read_normal_map(path)

    def test_only_where_there_is_a_choice(self, tmp_path):
        with pytest.raises(NormalMeshError, match=r"a PNG file holds one image: variable='x'"):
            read_normal_map(write_png(tmp_path / "n.png", encode(dome(), np.uint8)), variable="x")


class TestFloatRange:
    def save(self, tmp_path, values):
        np.save(tmp_path / "n.npy", np.asarray(values, np.float32))
        return tmp_path / "n.npy"

    def test_zero_to_one_is_reported(self, tmp_path):
        path = self.save(tmp_path, (dome() + 1) / 2)
        with pytest.warns(NormalMeshWarning, match=r"n\.npy: floats lie in \[0, 1\]; they were decoded") as caught:
            normals = read_normal_map(path).normals
        np.testing.assert_allclose(normals, dome(), atol=1e-6)
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
