"""Unusual files: pages, orientations, palettes and layouts that would be read wrongly if they were not noticed."""

from __future__ import annotations

import struct

import numpy as np
import PIL.Image
import pytest
import scipy.io
import scipy.sparse
import tifffile

from normal_map_files import (
    COLUMNS,
    ROWS,
    assert_reads,
    corner_mask,
    dome,
    encode,
    layer,
    with_alpha,
    write_exr,
    write_png,
)
from normalmesh import NormalMeshError, NormalMeshWarning, photometric_stereo, read_normal_map
from normalmesh.files.masks import read_mask
from normalmesh.output.heights import read_depth_map

OpenEXR = pytest.importorskip("OpenEXR")

pytestmark = pytest.mark.usefixtures("no_diagnosis")

#: TIFF tags.
SUBFILE, ORIENTATION, NODATA = 254, 274, 42113


def tiff_of_pages(path, *pages):
    """Write pages, each an array and its tags, and return the path."""
    with tifffile.TiffWriter(path) as writer:
        for values, options in pages:
            kind = "rgb" if values.ndim == 3 else "minisblack"
            writer.write(values, photometric=kind, metadata=None, **options)
    return path


def photographs(path):
    return photometric_stereo([path] * 3, np.eye(3))


class TestPages:
    normals = encode(dome(), np.uint16)
    mask = 255 * corner_mask().astype(np.uint8)

    @pytest.mark.parametrize("nested", [0, 1], ids=["first page", "as in a raw file"])
    def test_preview_before_the_image(self, tmp_path, nested):
        preview = (self.normals[::2, ::2], {"subfiletype": 1, "subifds": nested})
        assert_reads(tiff_of_pages(tmp_path / "n.tif", preview, (self.normals, {})), 2.5e-5)

    def test_preview_after_the_image(self, tmp_path):
        preview = (self.normals[::2, ::2], {"subfiletype": 1})
        assert_reads(tiff_of_pages(tmp_path / "n.tif", (self.normals, {}), preview), 2.5e-5)

    @pytest.mark.parametrize("tags", [{}, {"extratags": [(SUBFILE, 4, 1, 4, True)]}], ids=["image", "transparency"])
    def test_mask_on_another_page(self, tmp_path, tags):
        path = tiff_of_pages(tmp_path / "n.tif", (self.normals, {}), (self.mask, tags))
        with pytest.raises(NormalMeshError, match=r"holds 2 images \(12×17×3, 12×17\); save the one to be read"):
            read_normal_map(path)

    def test_two_views(self, tmp_path):
        path = tiff_of_pages(tmp_path / "n.tif", (self.normals, {}), (self.normals[1:], {}))
        for read in (read_normal_map, read_mask, read_depth_map, photographs):
            with pytest.raises(NormalMeshError, match=r"holds 2 images \(12×17×3, 11×17×3\)"):
                read(path)

    def test_channels_of_imagej(self, tmp_path):
        planes = np.moveaxis(dome().astype(np.float32), 2, 0).copy()
        tifffile.imwrite(tmp_path / "n.tif", planes, imagej=True, metadata={"axes": "CYX"})
        assert_reads(tmp_path / "n.tif", 1e-6)


class TestOrientation:
    @pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
    @pytest.mark.parametrize("read", [read_normal_map, read_mask, photographs])
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_turned_images(self, tmp_path, suffix, read, order):
        path, exif = tmp_path / f"n.{suffix}", PIL.Image.Exif()
        exif.endian = order
        exif[ORIENTATION] = 6
        PIL.Image.fromarray(encode(dome(), np.uint8)).save(path, exif=exif)
        with pytest.raises(
            NormalMeshError, match=r"shown turned or mirrored \(orientation 6.*; save it as it is shown"
        ):
            read(path)

    @pytest.mark.parametrize("content", [{ORIENTATION: 1}, {ORIENTATION: 0}, {0x010E: "normals"}])
    def test_upright_images(self, tmp_path, content):
        exif = PIL.Image.Exif()
        exif.update(content)
        PIL.Image.fromarray(encode(dome(), np.uint8)).save(tmp_path / "n.png", exif=exif)
        assert_reads(tmp_path / "n.png", 0.006)

    def test_damaged_metadata(self, tmp_path):
        damaged = b"MM\0*" + struct.pack(">IHHHI", 8, 9, ORIENTATION - 1, 3, 1)
        PIL.Image.fromarray(encode(dome(), np.uint8)).save(tmp_path / "n.png", exif=damaged)
        assert_reads(tmp_path / "n.png", 0.006)


class TestColours:
    @pytest.mark.parametrize("colour", ["palette", "cielab", "separated"])
    @pytest.mark.parametrize("read", [read_mask, read_depth_map, read_normal_map, photographs])
    def test_colours_that_are_no_numbers(self, tmp_path, colour, read):
        values, options = encode(dome(), np.uint8), {}
        if colour == "palette":
            values, options = values[..., 0], {"colormap": np.zeros((3, 256), np.uint16)}
        elif colour == "separated":
            values = with_alpha(values, values[..., 0])
        tifffile.imwrite(tmp_path / "n.tif", values, photometric=colour, **options)
        with pytest.raises(NormalMeshError, match=r"is a (palette|CIELAB|CMYK) image; "):
            read(tmp_path / "n.tif")

    def test_palette_of_a_png_mask(self, tmp_path):
        image = PIL.Image.fromarray(corner_mask().astype(np.uint8)).convert("P")
        image.putpalette([255, 255, 255, 0, 0, 0])
        image.save(tmp_path / "m.png")
        np.testing.assert_array_equal(read_mask(tmp_path / "m.png"), ~corner_mask())

    def test_complex_numbers(self, tmp_path):
        tifffile.imwrite(tmp_path / "m.tif", np.ones((4, 4), np.complex64), photometric="minisblack")
        with pytest.raises(NormalMeshError, match="4×4×1 complex64; expected one image"):
            read_mask(tmp_path / "m.tif")

    def test_labels_are_no_mask(self, tmp_path):
        labels = (np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 201).astype(np.uint8)
        with pytest.warns(NormalMeshWarning, match=r"m\.png: 94 % of the mask is neither black nor white; .* labels"):
            read_mask(write_png(tmp_path / "m.png", labels))


class TestPremultipliedAlpha:
    """The outline is translucent, and colours are multiplied by alpha: soft pixels hold other normals if read as is."""

    alpha = np.ones((ROWS, COLUMNS))
    alpha[0], alpha[1:3] = 0.7, 0
    colours = (dome() + 1) / 2

    @pytest.mark.parametrize("suffix", ["tif", "png", "exr"])
    def test_is_divided(self, tmp_path, suffix):
        path = tmp_path / f"n.{suffix}"
        both = np.dstack([self.colours * self.alpha[..., None], self.alpha])
        if suffix == "exr":
            write_exr(path, layer(both, axes="RGBA"))
            with pytest.warns(NormalMeshWarning, match="2·value − 1"):
                assert_reads(path, 1e-4, self.alpha > 0)
            return
        stored = np.rint(65535 * both).astype(np.uint16)
        if suffix == "tif":
            tifffile.imwrite(path, stored, photometric="rgb", extrasamples=["assocalpha"])
        else:
            write_png(path, stored)
        assert_reads(path, 1e-4, self.alpha > 0)

    def test_plain_colours_are_not(self, tmp_path):
        stored = np.rint(65535 * np.dstack([self.colours, self.alpha])).astype(np.uint16)
        path = write_png(tmp_path / "n.png", stored)
        assert_reads(path, 2.5e-5, self.alpha > 0, alpha="mask")


class TestMissingValues:
    def write(self, path, values, text, **options):
        tag = (NODATA, 2, len(text) + 1, text, True)
        tifffile.imwrite(path, values, extratags=[tag], **options)
        return path

    @pytest.mark.parametrize(
        ("dtype", "text"), [("f4", "-9999"), ("f4", "-3.40282e+38"), ("i2", "-32768"), ("f4", "x")]
    )
    def test_depths(self, tmp_path, dtype, text):
        missing = -9999.0 if text == "x" else max(float(text), -3.4028235e38)
        values = np.where(corner_mask(), 3.0, missing).astype(dtype)
        path = self.write(tmp_path / "d.tif", values, text, photometric="minisblack")
        expected = np.full((ROWS, COLUMNS), -9999.0 if text == "x" else np.nan)
        np.testing.assert_array_equal(read_depth_map(path), np.where(corner_mask(), 3.0, expected))

    def test_normals(self, tmp_path):
        values = np.where(corner_mask()[..., None], (dome() + 1) / 2, -9999).astype(np.float32)
        path = self.write(tmp_path / "n.tif", values, "-9999", photometric="rgb")
        with pytest.warns(NormalMeshWarning, match="2·value − 1"):
            assert_reads(path, 1e-6, corner_mask())


class TestArrays:
    def test_eight_bits_in_signed_sixteen(self, tmp_path):
        np.save(tmp_path / "n.npy", encode(dome(), np.uint8).astype(np.int16))
        with pytest.raises(NormalMeshError, match="values end at 255 of 32767: 8-bit values in a wider file"):
            read_normal_map(tmp_path / "n.npy")

    @pytest.mark.parametrize("suffix", ["npz", "mat"])
    def test_mask_of_another_size(self, tmp_path, suffix):
        path, arrays = tmp_path / f"n.{suffix}", {"normals": dome(), "mask": corner_mask().T.astype(np.uint8)}
        np.savez(path, **arrays) if suffix == "npz" else scipy.io.savemat(path, arrays)
        with pytest.raises(NormalMeshError, match=rf"n\.{suffix}: mask is 17×12 but normals are 12×17"):
            read_normal_map(path)
        assert_reads(path, 1e-6, corner_mask(), mask=corner_mask())

    @pytest.mark.parametrize("suffix", ["npz", "mat"])
    def test_a_mask_is_no_depth(self, tmp_path, suffix):
        path, arrays = tmp_path / f"n.{suffix}", {"normals": dome(), "mask": corner_mask().astype(np.uint8)}
        np.savez(path, **arrays) if suffix == "npz" else scipy.io.savemat(path, arrays)
        with pytest.raises(NormalMeshError, match=r"no array besides the mask has the shape \(rows, columns\)"):
            read_depth_map(path)
        assert read_depth_map(path, "mask").shape == (ROWS, COLUMNS)

    def test_what_is_no_array_is_named(self, tmp_path):
        path = tmp_path / "n.mat"
        scipy.io.savemat(path, {"s": {"normals": dome()}, "n": dome() + 1j})
        with pytest.raises(NormalMeshError, match=r"holds: s \(no array of numbers\), n \(no array of numbers\)"):
            read_normal_map(path)
        scipy.io.savemat(path, {"normals": dome(), "mask": scipy.sparse.csc_array(corner_mask().astype(float))})
        with pytest.warns(NormalMeshWarning, match=r"n\.mat: its variable mask is no array of numbers and was ignored"):
            assert_reads(path, 1e-6)


class TestExr:
    def test_depths_of_several_parts(self, tmp_path):
        depths = {name: np.full((4, 5), distance, np.float32) for name, distance in (("left", 1), ("right", 50))}
        settings = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
        parts = [OpenEXR.Part(dict(settings), {"Z": depth}, name) for name, depth in depths.items()]
        OpenEXR.File(parts).write(str(tmp_path / "d.exr"))
        with pytest.raises(NormalMeshError, match="the channels are left/Z, right/Z; name the one"):
            read_depth_map(tmp_path / "d.exr")
        for name, depth in depths.items():
            np.testing.assert_array_equal(read_depth_map(tmp_path / "d.exr", f"{name}/Z"), depth)

    def test_luminance_of_a_colour_image_is_no_depth(self, tmp_path):
        path = write_exr(tmp_path / "d.exr", {name: np.ones((4, 4), np.float32) for name in ("Y", "RY", "BY")})
        with pytest.raises(NormalMeshError, match="the channels are BY, RY, Y; name the one"):
            read_depth_map(path)

    def test_deep_samples(self, tmp_path):
        samples = np.empty((4, 4), object)
        for place in np.ndindex(4, 4):
            samples[place] = np.array([0.1, 0.5], np.float32)
        header = {"type": OpenEXR.deepscanline, "compression": OpenEXR.ZIPS_COMPRESSION}
        OpenEXR.File(header, dict.fromkeys("RGB", samples)).write(str(tmp_path / "n.exr"))
        with pytest.raises(NormalMeshError, match="channel R holds several samples a pixel"):
            read_normal_map(tmp_path / "n.exr")


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 2\n" + bytes(16), "Radiance HDR"),
        (b"GIF89a" + bytes(200), "GIF"),
        (b"8BPS" + bytes(200), "PSD"),
    ],
)
@pytest.mark.parametrize("read", [read_normal_map, read_mask, read_depth_map, photographs])
def test_formats_that_are_not_read_are_named(tmp_path, content, name, read):
    (tmp_path / "n.png").write_bytes(content)
    with pytest.raises(NormalMeshError, match=f"is a {name} file; expected "):
        read(tmp_path / "n.png")


@pytest.mark.parametrize("read", [read_normal_map, read_depth_map])
def test_mat_of_version_7_3_says_what_to_do(tmp_path, read):
    (tmp_path / "n.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400))
    with pytest.raises(NormalMeshError, match=r"version 7\.3 \(HDF5\).*save\(\.\.\., '-v7'\)"):
        read(tmp_path / "n.mat")
