"""Photometric stereo: exact renders of exact normals give the normals back."""

import unicodedata
import warnings

import imagecodecs
import numpy as np
import pytest

from normalmesh import NormalMeshError, NormalMeshWarning, photometric_stereo, read_lights
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.runtime.memory_budget import limited_memory
from rti_files import dome

#: Eight lights 35° from the viewing direction and four at 15°.
SLANTS, TURNS = np.radians([35] * 8 + [15] * 4), np.radians([*range(0, 360, 45), *range(20, 380, 90)])
LIGHTS = np.stack([np.sin(SLANTS) * np.cos(TURNS), np.sin(SLANTS) * np.sin(TURNS), np.cos(SLANTS)], axis=1)


def shading(normals, lights=LIGHTS):
    """What a matt white surface reflects, before shadows: (K, H, W), negative where it is turned away."""
    return np.einsum("hwc,kc->khw", normals.astype(np.float64), lights)


def albedo_of(shape):
    return 0.3 + 0.5 * np.linspace(0, 1, shape[1])[None, :].repeat(shape[0], axis=0)


def angles(found, truth):
    """Radians between normals (H, W, 3) where both maps have some; arcsin is exact where arccos is not."""
    inside = found.mask & truth.mask
    cross = np.cross(found.normals[inside].astype(np.float64), truth.normals[inside].astype(np.float64))
    return np.arcsin(np.clip(np.linalg.norm(cross, axis=1), 0, 1))


@pytest.fixture(scope="module")
def medallion():
    return Medallion(96).normal_map


def test_normals_and_albedo_of_a_matt_surface_are_exact(medallion):
    albedo = albedo_of(medallion.shape)
    images = np.maximum(shading(medallion.normals), 0) * albedo
    found = photometric_stereo(images, LIGHTS, medallion.mask)
    assert np.array_equal(found.normal_map.mask, medallion.mask)
    assert angles(found.normal_map, medallion).max() < 1e-4
    np.testing.assert_allclose(found.albedo[medallion.mask], albedo[medallion.mask], rtol=1e-5)
    assert found.residual.max() < 1e-6
    assert not found.albedo[~medallion.mask].any()


def test_what_is_turned_away_from_a_light_does_not_count():
    truth = sphere(96).normal_map
    images = np.maximum(shading(truth.normals), 0)
    assert np.mean(images[:, truth.mask] == 0) > 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        found = photometric_stereo(images, LIGHTS, truth.mask)
    assert angles(found.normal_map, truth).max() < 1e-4


def test_cast_shadows_and_highlights_are_left_out(medallion):
    values = np.maximum(shading(medallion.normals), 0)
    generator = np.random.default_rng(0)
    # Three images a pixel in shadow, one with a highlight.
    order = np.argsort(generator.random(values.shape), axis=0)
    np.put_along_axis(values, order[:3], 0.1 * np.take_along_axis(values, order[:3], 0), axis=0)
    np.put_along_axis(values, order[3:4], 1.5 + np.take_along_axis(values, order[3:4], 0), axis=0)
    with pytest.warns(NormalMeshWarning, match=r"do not fit a matt surface.*48 % of the albedo.*darkest and brightest"):
        plain = photometric_stereo(values, LIGHTS, medallion.mask)
    robust = photometric_stereo(values, LIGHTS, medallion.mask, darkest=0.25, brightest=0.1)
    assert np.degrees(np.median(angles(robust.normal_map, medallion))) < 1
    assert np.degrees(np.mean(angles(robust.normal_map, medallion))) < 1
    assert np.mean(angles(plain.normal_map, medallion)) > 10 * np.mean(angles(robust.normal_map, medallion))
    assert np.median(plain.residual[medallion.mask]) > np.median(robust.residual[medallion.mask])


def test_colours_intensities_and_integers(medallion, tmp_path):
    colours = np.array([0.9, 0.6, 0.3])
    strength = np.linspace(0.5, 0.8, 3 * len(LIGHTS)).reshape(-1, 3)
    light = np.maximum(shading(medallion.normals), 0)[..., None] * colours
    stored = np.round(65535 * light * strength[:, None, None]).astype(np.uint16)
    files = [tmp_path / f"{k:03d}.png" for k in range(len(stored))]
    for file, image in zip(files, stored, strict=True):
        file.write_bytes(imagecodecs.png_encode(image))
    np.savetxt(tmp_path / "lights.txt", LIGHTS)
    np.savetxt(tmp_path / "intensities.txt", strength)
    (tmp_path / "mask.png").write_bytes(imagecodecs.png_encode(255 * medallion.mask.astype(np.uint8)))
    found = photometric_stereo(
        files, tmp_path / "lights.txt", tmp_path / "mask.png", intensities=tmp_path / "intensities.txt"
    )
    assert angles(found.normal_map, medallion).max() < 1e-3
    np.testing.assert_allclose(found.albedo[medallion.mask], colours * np.ones((medallion.foreground, 1)), rtol=1e-3)
    again = photometric_stereo(stored, LIGHTS, medallion.mask, intensities=strength)
    assert np.array_equal(again.normal_map.normals, found.normal_map.normals)


def test_clipped_and_missing_values_do_not_count(medallion):
    values = np.maximum(shading(medallion.normals), 0)
    values[0, :40] = 1.0
    values[1, 50:] = np.nan
    found = photometric_stereo(values, LIGHTS, medallion.mask, saturation=1.0)
    assert angles(found.normal_map, medallion).max() < 1e-4
    eight_bit = np.round(255 * np.minimum(1.3 * np.maximum(shading(medallion.normals), 0), 1)).astype(np.uint8)
    assert (eight_bit[:, medallion.mask] == 255).any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)  # where too many images are clipped
        found = photometric_stereo(eight_bit, LIGHTS, medallion.mask)
    assert np.degrees(np.mean(angles(found.normal_map, medallion))) < 0.5


@pytest.mark.parametrize(("distance", "expected"), [(3, 14), (10, 4)])
def test_near_lights_bend_the_surface(distance, expected):
    """The figures of docs/photographs.md, for a plane; distance in widths of the object."""
    rows, columns = np.mgrid[:32, :32]
    places = np.stack([columns / 31 - 0.5, 0.5 - rows / 31, np.zeros((32, 32))], axis=-1)
    to_light = dome(16, 25)[:, None, None] * distance - places
    images = to_light[..., 2] / np.linalg.norm(to_light, axis=-1) ** 3
    normals = photometric_stereo(images, dome(16, 25)).normal_map.normals
    assert np.degrees(np.arccos(normals[..., 2])).mean() == pytest.approx(expected, rel=0.15)


def test_blocks_do_not_show(medallion, monkeypatch):
    images = np.maximum(shading(medallion.normals), 0)
    whole = photometric_stereo(images, LIGHTS, medallion.mask, darkest=0.2)
    monkeypatch.setattr("normalmesh.runtime.row_blocks.BLOCK", 1)
    pieces = photometric_stereo(images, LIGHTS, medallion.mask, darkest=0.2)
    np.testing.assert_allclose(pieces.normal_map.normals, whole.normal_map.normals, atol=1e-6)


def test_lights_in_other_axes(medallion):
    images = np.maximum(shading(medallion.normals), 0)
    found = photometric_stereo(images, LIGHTS * [1, -1, -1], medallion.mask, convention="opencv")
    assert angles(found.normal_map, medallion).max() < 1e-4


def test_pixels_that_too_few_lights_reach_leave_the_mask(medallion):
    images = np.maximum(shading(medallion.normals), 0)
    images[2:, 48, 48] = 0
    with pytest.warns(NormalMeshWarning, match="1 of .* pixels see fewer than three independent lights"):
        found = photometric_stereo(images, LIGHTS, medallion.mask)
    assert not found.normal_map.mask[48, 48]
    assert found.normal_map.foreground == medallion.foreground - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lights": LIGHTS * [1, 0, 1]}, "lie in one plane"),
        ({"lights": LIGHTS[:5]}, "12 images but 5 lights"),
        ({"lights": np.vstack([np.zeros((1, 3)), LIGHTS[1:]])}, "light 0 has the direction 0 0 0"),
        ({"lights": LIGHTS[:, :2]}, "lights must be finite numbers"),
        ({"images": np.ones((12, 4))}, "images must have the shape"),
        ({"images": [np.ones((4, 4))] * 11 + [np.ones((4, 5))]}, "image 11 is 4×5×1 but image 0 is 4×4×1"),
        ({"images": []}, "there are no images"),
        ({"images": "images.png"}, "no such file or folder"),
        ({"images": ["missing.png"] * 12}, "there is no such file"),
        ({"images": np.ones((2, 4, 4)), "lights": LIGHTS[:2]}, "at least three images"),
        ({"images": np.zeros((12, 4, 4))}, "no pixel is lit"),
        ({"mask": np.ones((4, 5))}, "mask is 4×5 but images are 4×4"),
        ({"intensities": np.ones(5)}, "intensities must have the shape"),
        ({"intensities": -np.ones(12)}, "positive"),
        ({"saturation": 0}, "saturation must be a positive number"),
        ({"darkest": 1.0}, "darkest must be a share"),
        ({"darkest": 0.5, "brightest": 0.5}, "leave no image"),
    ],
)
def test_what_cannot_be_used_is_refused(changes, message):
    arguments = {"images": np.ones((12, 4, 4)), "lights": LIGHTS, **changes}
    with pytest.raises(NormalMeshError, match=message):
        photometric_stereo(**arguments)


class TestDoubts:
    """Images and lights that give wrong normals, without one of them being impossible."""

    def doubt(self, images, lights=LIGHTS, truth=None, **options):
        """Return the warnings of a run on a sphere, and the mean error in degrees."""
        truth = sphere(64).normal_map if truth is None else truth
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = photometric_stereo(images, lights, truth.mask, **options)
        about_lights = (each for each in caught if "clamped" not in str(each.message))
        assert {warning.filename for warning in about_lights} <= {__file__}
        error = np.degrees(np.mean(angles(found.normal_map, truth)))
        return " ".join(str(warning.message) for warning in caught), error

    @pytest.fixture
    def images(self):
        normals = sphere(64).normal_map.normals
        return np.maximum(shading(normals), 0) * albedo_of(normals.shape[:2])

    def test_none_about_good_images(self, images):
        noisy = np.maximum(images + np.random.default_rng(0).normal(0, 0.02, images.shape), 0)
        for given in (images, noisy, np.rint(250 * images).astype(np.uint8), np.rint(30 * images).astype(np.uint8)):
            assert self.doubt(given)[0] == ""
        assert self.doubt(images[:4], LIGHTS[:4])[0].count("fewer than three") == 1
        flat = np.broadcast_to(LIGHTS[:, 2, None, None], (12, 8, 8))
        assert photometric_stereo(flat, LIGHTS).normal_map.normals == pytest.approx(
            np.array([0, 0, 1]) * np.ones((8, 8, 3))
        )

    @pytest.mark.parametrize("order", [LIGHTS[::-1], np.roll(LIGHTS, 3, axis=0)], ids=["reversed", "rotated"])
    def test_lights_in_another_order(self, images, order):
        message, error = self.doubt(images, order)
        assert error > 20
        assert "order of the images" in message

    @pytest.mark.parametrize("axes", [[1, -1, 1], [-1, 1, 1]])
    def test_lights_in_other_axes(self, images, axes):
        message, error = self.doubt(images, LIGHTS * axes)
        assert error > 20
        assert "contradict the axes of the lights" in message
        with pytest.raises(NormalMeshError, match="lights must point from the object to the lights"):
            self.doubt(images, -LIGHTS)

    def test_forgotten_intensities(self, images):
        strength = np.linspace(0.5, 2, 12)
        message, error = self.doubt(images * strength[:, None, None])
        assert error > 10
        assert "do not fit a matt surface" in message
        assert self.doubt(images * strength[:, None, None], intensities=strength)[0] == ""

    def test_gamma_curve(self, images):
        stored = np.rint(250 * (images / images.max()) ** (1 / 2.2)).astype(np.uint8)
        message, error = self.doubt(stored)
        assert error > 10
        assert "gamma curve" in message
        assert self.doubt((stored / 255) ** 2.2)[0] == ""

    def test_ambient_light(self, images):
        message, error = self.doubt(images + 0.2)
        assert error > 10
        assert "a constant seems to be added" in message

    def test_ambient_light_in_shadows(self):
        """It shows where light falls from all sides, although most pixels are turned away from some light."""
        cap, low = sphere(64).normal_map.window(slice(12, 52), slice(12, 52)), dome(24, 20)
        shaded = np.maximum(shading(cap.normals, low), 0)
        assert self.doubt(shaded, low, cap)[0] == ""
        assert "a constant seems to be added" in self.doubt(shaded + 0.05, low, cap)[0]

    @pytest.mark.parametrize(("limit", "dtype"), [(1.0, np.float64), (4095, np.uint16)])
    def test_clipped_values(self, images, limit, dtype):
        stored = np.minimum(1.5 * images / images.max() * limit, limit).astype(dtype)
        message, error = self.doubt(stored)
        assert error > 1
        assert f"clipped at {limit:g}" in message
        assert "clipped" not in self.doubt(stored, saturation=limit)[0]

    def test_lights_near_one_plane(self, images):
        lights = LIGHTS * [1, 0.01, 1]
        assert "nearly in one plane" in self.doubt(images, lights)[0]

    def test_floats_among_integers(self, images):
        with pytest.raises(NormalMeshError, match="image 6 holds float64 but image 0 uint8, whose ranges differ"):
            photometric_stereo([*np.rint(250 * images[:6]).astype(np.uint8), *images[6:]], LIGHTS)


def test_photographs_that_exceed_the_memory_are_refused_after_the_first(tmp_path):
    file = tmp_path / "0.png"
    file.write_bytes(imagecodecs.png_encode(np.zeros((100, 100, 3), np.uint8)))
    with limited_memory(1e6), pytest.raises(NormalMeshError, match="stereo of 40 images needs about 2 MB of memory"):
        photometric_stereo([file] + 39 * [tmp_path / "none.png"], np.eye(3)[np.arange(40) % 3])


def test_light_files(tmp_path):
    file = tmp_path / "light_directions.txt"
    file.write_text("# x y z\n0.1 0.2 0.9\n\n-0.1, 0.3, 0.8\n")
    np.testing.assert_array_equal(read_lights(file), [[0.1, 0.2, 0.9], [-0.1, 0.3, 0.8]])


def test_light_files_with_names_or_a_count(tmp_path):
    file = tmp_path / "lights.lp"
    file.write_text("2\nC:\\\\my photos\\\\coin#1.CR2 0.1 0.2 0.9\r\n../raw/2.jpg\t-0.1 0.3 0.8\n")
    np.testing.assert_array_equal(read_lights(file), [[0.1, 0.2, 0.9], [-0.1, 0.3, 0.8]])
    file.write_text(" 2 \n0.1 0.2 0.9\n-0.1 0.3 0.8\n")
    np.testing.assert_array_equal(read_lights(file), [[0.1, 0.2, 0.9], [-0.1, 0.3, 0.8]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3\na.png 0 0 1\nb.png 0 1 1\n", "says that it holds 3 lights on its first line, but has 2"),
        ("a.png 0 0 1\n0 1 1\n", "line 2 must have three numbers"),
        ("0.5 0.1 0.2 0.9\n", "line 1 must have three numbers"),
        ("2\n", "holds no lights"),
        ("a.png 0 x 1\n", "line 1"),
    ],
)
def test_named_light_files_that_cannot_be_used(tmp_path, text, message):
    (tmp_path / "lights.lp").write_text(text)
    with pytest.raises(NormalMeshError, match=message):
        read_lights(tmp_path / "lights.lp")


class TestNames:
    """Files find their lights by name, else by their place in natural order."""

    @pytest.fixture
    def photos(self, medallion, tmp_path):
        folder = tmp_path / "photos"
        folder.mkdir()
        for number, image in enumerate(np.maximum(shading(medallion.normals), 0), start=1):
            (folder / f"Coin{number}.png").write_bytes(imagecodecs.png_encode(np.rint(60000 * image).astype(np.uint16)))
        np.savetxt(tmp_path / "lights.txt", LIGHTS)
        return folder

    @staticmethod
    def named(photos, order, name="coin{}.CR2"):
        lines = [f"{name.format(k + 1)} {LIGHTS[k][0]} {LIGHTS[k][1]} {LIGHTS[k][2]}" for k in order]
        path = photos.parent / "lights.lp"
        path.write_text("\n".join([str(len(lines)), *lines]))
        return path

    def test_patterns_and_folders_are_in_natural_order(self, photos, medallion):
        for images in (photos, str(photos), str(photos / "*.png"), [photos / f"Coin{k}.png" for k in range(1, 13)]):
            with warnings.catch_warnings():
                warnings.simplefilter("error", NormalMeshWarning)
                found = photometric_stereo(images, photos.parent / "lights.txt", medallion.mask)
            assert angles(found.normal_map, medallion).max() < 1e-3

    def test_a_list_in_the_order_of_the_alphabet_is_questioned(self, photos, medallion):
        files = sorted(photos.glob("*.png"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            photometric_stereo(files, photos.parent / "lights.txt", medallion.mask)
        expected = "with the lights in the order of the numbers in the names of the files"
        assert any(expected in str(warning.message) for warning in caught)

    @pytest.mark.parametrize("name", ["coin{}.CR2", "C:\\shots of 2024\\COIN{}.tif", "../raw/Coin{}.png", "coin{}"])
    def test_names_win_over_any_order(self, photos, medallion, name):
        lights = self.named(photos, np.random.default_rng(0).permutation(12), name)
        (photos / "mask.png").write_bytes(imagecodecs.png_encode(255 * medallion.mask.astype(np.uint8)))
        for images in (sorted(photos.glob("Coin*.png"), reverse=True), photos):
            found = photometric_stereo(images, lights, medallion.mask)
            assert angles(found.normal_map, medallion).max() < 1e-3

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
    def test_names_with_accents(self, photos, medallion, encoding):
        """As Windows writes them, and as macOS stores them."""
        lights = self.named(photos, reversed(range(12)), "C:\\Musée\\Médaille{}.CR2")
        lights.write_bytes(lights.read_text().encode(encoding))
        for file in list(photos.iterdir()):
            file.rename(file.with_name(unicodedata.normalize("NFD", file.name.replace("Coin", "Médaille"))))
        (photos / "._Médaille1.png").write_bytes(b"\0\5\x16\7")
        assert angles(photometric_stereo(photos, lights, medallion.mask).normal_map, medallion).max() < 1e-3

    def test_hidden_files_are_no_photographs(self, photos, medallion):
        (photos / "._Coin1.png").write_bytes(b"\0\5\x16\7")
        found = photometric_stereo(photos, photos.parent / "lights.txt", medallion.mask)
        assert angles(found.normal_map, medallion).max() < 1e-3

    def test_names_that_do_not_match(self, photos, medallion):
        files = [photos / f"Coin{k}.png" for k in range(1, 13)]
        with pytest.raises(NormalMeshError, match=r"no light for 2 of 12 photographs, such as .*Coin11\.png"):
            photometric_stereo(files, self.named(photos, range(10)), medallion.mask)
        with pytest.warns(NormalMeshWarning, match="2 of 12 lights have no photograph"):
            photometric_stereo(files[:10], self.named(photos, range(12)), medallion.mask)
        with pytest.warns(NormalMeshWarning, match="names other files, such as 'shot1', than the photographs"):
            photometric_stereo(files, self.named(photos, range(12), "shot{}"), medallion.mask)
        (photos / "Coin3.tif").write_bytes((photos / "Coin3.png").read_bytes())
        with pytest.raises(NormalMeshError, match=r"belongs to several photographs: .*Coin3\.png, .*Coin3\.tif"):
            photometric_stereo([*files, photos / "Coin3.tif"], self.named(photos, range(12)), medallion.mask)
        with pytest.raises(NormalMeshError, match="matches no image"):
            photometric_stereo(str(photos / "*.jpg"), LIGHTS)
        with pytest.raises(NormalMeshError, match=r"several lights for 'coin4\.CR2'; leave one line for each"):
            photometric_stereo(files, self.named(photos, [*range(12), 3]), medallion.mask)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0\n", "line 1 must have three numbers"),
        ("0,1 0,2 0,9\n", "three numbers with decimal points"),
        ("0 0 1\n0 x 1\n", "line 2"),
        ("0 nan 1\n", "line 1"),
        ("#\n", "no"),
    ],
)
def test_light_files_that_cannot_be_used(tmp_path, text, message):
    file = tmp_path / "lights.txt"
    file.write_text(text)
    with pytest.raises(NormalMeshError, match=message):
        read_lights(file)
