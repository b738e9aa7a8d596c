"""read_normal_map: masks and background."""

from __future__ import annotations

import itertools
import struct
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile

from normal_map_files import (
    COLUMNS,
    ROWS,
    assert_reads,
    corner_mask,
    dome,
    encode,
    hand_made_png,
    with_alpha,
    write_png,
)
from normalmesh import NormalMeshError, NormalMeshWarning, read_normal_map

pytestmark = pytest.mark.usefixtures("no_diagnosis")


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
        with pytest.warns(NormalMeshWarning, match="1 pixel without a measurement took the mean"):
            result = read_normal_map(write_png(tmp_path / "n.png", values), mask=mask)
        assert mask[0, 0]
        assert result.mask[0, 0]

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
        with pytest.raises(NormalMeshError, match=r"mask\.png: mask is 4×5 but normals are 12×17"):
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
        with pytest.raises(
            NormalMeshError,
            match=r"is a NPZ file; expected a mask as PNG, JPEG, TIFF",
        ):
            read_normal_map(normals, mask=tmp_path / "mask.npz")
        (tmp_path / "mask.txt").write_text("1 1 1")
        with pytest.raises(
            NormalMeshError,
            match=r"is of an unknown format; expected a mask as PNG, JPEG, TIFF",
        ):
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
        with pytest.warns(NormalMeshWarning, match="9 pixels without a measurement took the mean normal"):
            assert read_normal_map(path, mask=np.ones((ROWS, COLUMNS))).mask.all()

    def test_grey_with_the_noise_of_a_file_is_no_normal(self, tmp_path):
        values = encode(dome(), np.uint8)
        values[0, 0] = (126, 129, 130)
        values[0, 2] = (110, 129, 140)
        with pytest.warns(NormalMeshWarning, match="1 normal was not of unit length"):
            result = read_normal_map(write_png(tmp_path / "n.png", values))
        assert np.argwhere(~result.mask).tolist() == [[0, 0]]

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
        with pytest.warns(NormalMeshWarning, match="1 normal is NaN, infinite or of .* zero length"):
            assert read_normal_map(tmp_path / "n.npy", mask=np.ones((ROWS, COLUMNS))).mask[0, 0]

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
