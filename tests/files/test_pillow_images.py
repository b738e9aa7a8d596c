"""TGA, BMP and WebP: read as PNG is, wherever images are read."""

import numpy as np
import PIL.Image
import pytest

from normalmesh import NormalMeshError, NormalMeshWarning, photometric_stereo, read_normal_map
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.formats import file_format
from normalmesh.files.images import read_image, read_image_size
from normalmesh.files.masks import read_mask
from normalmesh.output.textures import colour_image

SUFFIXES = {"tga": "TGA", "bmp": "BMP", "webp": "WebP"}


def saved(path, array, **options):
    """Write an array as an image; WebP without loss."""
    extra = {"lossless": True, "exact": True} if path.suffix == ".webp" else {}
    PIL.Image.fromarray(array).save(path, **{**extra, **options})
    return path


@pytest.fixture(scope="module")
def coin():
    return Medallion(64).normal_map


@pytest.fixture(scope="module")
def colours(coin):
    return np.round((coin.normals + 1) / 2 * 255).astype(np.uint8)


@pytest.mark.parametrize("suffix", SUFFIXES)
class TestAllFormats:
    def test_normals_masks_textures(self, tmp_path, coin, colours, suffix):
        reference = read_normal_map(saved(tmp_path / "n.png", colours), coin.mask)
        path = saved(tmp_path / f"n.{suffix}", colours)
        mask = saved(tmp_path / f"m.{suffix}", 255 * coin.mask.astype(np.uint8))
        assert file_format(path) == SUFFIXES[suffix]
        found = read_normal_map(path, mask)
        np.testing.assert_array_equal(found.normals, reference.normals)
        np.testing.assert_array_equal(read_mask(mask), coin.mask)
        np.testing.assert_array_equal(np.asarray(colour_image(path)), colours)
        assert read_image_size(path, SUFFIXES[suffix]) == (64, 64)

    def test_alpha_is_a_mask(self, tmp_path, coin, colours, suffix):
        path = saved(tmp_path / f"n.{suffix}", np.dstack([colours, 255 * coin.mask.astype(np.uint8)]))
        if suffix == "bmp":  # Pillow, as most programs, writes the fourth byte of a BMP without a meaning
            assert read_image(path, "BMP").values.shape[2] == 3
        else:
            np.testing.assert_array_equal(read_normal_map(path).mask, coin.mask)

    def test_photographs(self, tmp_path, coin, suffix):
        lights = np.array([[0.5, 0, 0.85], [-0.4, 0.4, 0.8], [-0.3, -0.5, 0.8], [0, 0, 1.0]])
        shading = np.maximum(np.einsum("hwc,kc->khw", coin.normals, lights), 0)
        files = [
            saved(tmp_path / f"{k}.{suffix}", np.round(250 * image).astype(np.uint8)) for k, image in enumerate(shading)
        ]
        found = photometric_stereo(files, lights * np.linalg.norm(lights, axis=1, keepdims=True), coin.mask)
        assert (found.normal_map.normals * coin.normals).sum(axis=2)[coin.mask].mean() > 0.99

    def test_truncated_files_and_limits(self, tmp_path, colours, suffix):
        path = saved(tmp_path / f"n.{suffix}", colours)
        with pytest.raises(NormalMeshError, match="more than the limit of 1000"):
            read_normal_map(path, max_pixels=1000)
        content = path.read_bytes()
        for part in (len(content) // 2, 40):
            path.write_bytes(content[:part])
            with pytest.raises(NormalMeshError, match=f"cannot be read as {SUFFIXES[suffix]}; it is damaged"):
                read_normal_map(path)


@pytest.mark.parametrize("suffix", ["tga", "bmp"])
def test_palettes_are_refused_as_normals(tmp_path, colours, suffix):
    path = tmp_path / f"n.{suffix}"
    PIL.Image.fromarray(colours).quantize(16).save(path)
    with pytest.raises(NormalMeshError, match="is a palette image"):
        read_normal_map(path)


def test_run_lengths_bottom_up_and_names_of_tga(tmp_path, colours):
    path = saved(tmp_path / "n.tga", colours, compression="tga_rle")
    np.testing.assert_array_equal(read_image(path, "TGA").values, colours)
    # With its footer, a file is recognised by any name.
    renamed = path.rename(tmp_path / "n.dat")
    assert file_format(renamed) == "TGA"
    for orientation in (1, -1):  # rows from the top, or from the bottom
        saved(tmp_path / "n.tga", colours, orientation=orientation)
        np.testing.assert_array_equal(read_image(tmp_path / "n.tga", "TGA").values, colours)
    (tmp_path / "text.dat").write_text("not an image, nor anything else that could be read")
    assert file_format(tmp_path / "text.dat") is None


def test_alpha_that_a_tga_does_not_declare_is_void(tmp_path, colours):
    content = bytearray(saved(tmp_path / "n.tga", np.dstack([colours, 0 * colours[..., 0]])).read_bytes())
    content[17] &= 0xF0
    (tmp_path / "n.tga").write_bytes(bytes(content))
    np.testing.assert_array_equal(read_image(tmp_path / "n.tga", "TGA").values, colours)


def test_lossy_webp_animations_and_turned_images(tmp_path, coin, colours):
    path = tmp_path / "n.webp"
    PIL.Image.fromarray(colours).save(path, quality=90)
    with pytest.warns(NormalMeshWarning):
        found = read_normal_map(path, coin.mask)
    assert (found.normals * coin.normals).sum(axis=2)[coin.mask].mean() > 0.95
    frames = [PIL.Image.fromarray(np.roll(colours, shift, axis=1)) for shift in range(3)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    with pytest.raises(NormalMeshError, match="an animation of 3 images"):
        read_normal_map(path)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    frames[0].save(path, exif=exif)
    with pytest.raises(NormalMeshError, match=r"turned|orientation"):
        read_normal_map(path)
