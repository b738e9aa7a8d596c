"""Relightable images: files made from photographs of a known surface give its normals back."""

from contextlib import nullcontext

import numpy as np
import pytest

from naive import naive_matt_normal
from normalmesh import NormalMeshError, NormalMeshWarning, Surface, read_normal_map, read_rti, reconstruct
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.maps.inspection import inspect_file
from normalmesh.output.textures import colour_image
from normalmesh.photometric.rti import fit_matt, virtual_lights
from normalmesh.photometric.rti_model import harmonics
from rti_files import dome, photographed, write_hsh, write_ptm

LIGHTS, COLOUR = dome(), np.array([0.8, 0.6, 0.4])
WRITERS = {
    "PTM_FORMAT_LRGB": write_ptm,
    "PTM_FORMAT_RGB": lambda *given: write_ptm(*given, "RGB", "\r\n"),
    "PTM_FORMAT_JPEG_LRGB": lambda *given: write_ptm(*given, "JPEG_LRGB"),
    "PTM_FORMAT_JPEG_RGB": lambda *given: write_ptm(*given, "JPEG_RGB"),
    "HSH": write_hsh,
}


def angles(normals, truth):
    """Degrees between normals (H, W, 3) and those of a map, in its mask."""
    cosines = (normals.astype(float) * truth.normals).sum(axis=2)[truth.mask]
    return np.degrees(np.arccos(np.clip(cosines, -1, 1)))


@pytest.fixture(scope="module")
def lopsided():
    """A quarter of a medallion, which no mirror image resembles, of 47 rows and 40 columns."""
    return Medallion(96).normal_map.window(slice(0, 47), slice(0, 40))


@pytest.mark.parametrize("name", WRITERS)
def test_normals_and_albedo_in_their_places(tmp_path, lopsided, name):
    path = WRITERS[name](tmp_path / "coin", photographed(lopsided.normals, LIGHTS, COLOUR), LIGHTS)
    found = read_rti(path)
    assert found.header.format == name
    assert found.header.shape == found.residual.shape == (47, 40)
    assert angles(found.normals, lopsided).mean() < 1
    assert angles(found.normals[::-1], lopsided).mean() > 5
    np.testing.assert_allclose(found.albedo[lopsided.mask].mean(axis=0), COLOUR, atol=0.02)
    if name in ("PTM_FORMAT_LRGB", "PTM_FORMAT_RGB"):  # others round black to dark
        assert not found.normals[~lopsided.mask].any()


def test_slopes_of_a_ball(tmp_path):
    truth = sphere(64).normal_map
    taken = photographed(truth.normals, LIGHTS)
    polynomial = read_rti(write_ptm(tmp_path / "ball.ptm", taken, LIGHTS))
    four, nine = (read_rti(write_hsh(tmp_path / f"{terms}.rti", taken, LIGHTS, terms)) for terms in (4, 9))
    steep = truth.normals[..., 2][truth.mask] < 0.5
    assert angles(polynomial.normals, truth)[~steep].max() < 3
    assert angles(nine.normals, truth)[~steep].max() < 3
    assert angles(four.normals, truth)[~steep].max() < 6
    assert np.median(nine.residual[truth.mask]) < np.median(polynomial.residual[truth.mask])


def test_a_gamma_curve_flattens_slopes(tmp_path):
    """The figures of docs/photographs.md."""
    plane = np.broadcast_to([0.5, 0.0, np.sqrt(0.75)], (8, 8, 3))
    taken = photographed(plane, LIGHTS) ** (1 / 2.2)
    paths = [write_hsh(tmp_path / f"{terms}.rti", taken, LIGHTS, terms) for terms in (4, 9)]
    for path in [write_ptm(tmp_path / "plane.ptm", taken, LIGHTS), *paths]:
        slope = np.degrees(np.arccos(read_rti(path).normals[4, 4, 2]))
        assert 20 < slope < 24


def test_the_format_states_the_axes(tmp_path):
    """Even where the data do not, as those of a plane."""
    plane = np.broadcast_to([0.28, 0.0, 0.96], (32, 32, 3))
    path = write_ptm(tmp_path / "plane.ptm", photographed(plane, LIGHTS), LIGHTS)
    assert inspect_file(path).recommendation == "read it as it is: PTM files state their axes, opengl"


def test_fit_against_a_naive_one():
    generator = np.random.default_rng(0)
    lights, values = virtual_lights(), generator.random((3, 5, 64))
    normals, albedo, residual = fit_matt(values, lights)
    for pixel in range(5):
        normal, reflected, missed = naive_matt_normal(values[:, pixel], lights)
        np.testing.assert_allclose(normals[pixel], normal, atol=1e-9)
        np.testing.assert_allclose(albedo[pixel], reflected, atol=1e-9)
        np.testing.assert_allclose(residual[pixel], missed, atol=1e-9)


def test_harmonics_are_orthonormal():
    """On the hemisphere, the integral of the product of two harmonics is 1 for the same one, else 0."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    z, turn = (nodes + 1) / 2, np.arange(40) * np.pi / 20
    cos, azimuth = (each.ravel() for each in np.meshgrid(z, turn, indexing="ij"))
    sin = np.sqrt(1 - cos**2)
    values = harmonics(np.stack([sin * np.cos(azimuth), sin * np.sin(azimuth), cos], axis=1), 16)
    area = np.repeat(weights / 2, 40) * np.pi / 20
    np.testing.assert_allclose((values * area[:, None]).T @ values, np.eye(16), atol=1e-6)


def test_from_a_file_to_a_textured_surface(tmp_path, lopsided):
    path = write_ptm(tmp_path / "coin.ptm", photographed(lopsided.normals, LIGHTS, COLOUR), LIGHTS)
    with pytest.warns(NormalMeshWarning, match=r"coin\.ptm: normals are estimated from a smooth fit .*PTM_FORMAT_LRGB"):
        normal_map = read_normal_map(path)
    assert np.mean(normal_map.mask == lopsided.mask) > 0.99
    surface = reconstruct(normal_map, vertices=200)
    assert isinstance(surface, Surface)
    surface.save(tmp_path / "coin.glb", texture=path)
    colours = np.asarray(colour_image(path))
    assert colours.shape == (47, 40, 3)
    np.testing.assert_allclose(colours[lopsided.mask].mean(axis=0) / 255, COLOUR / COLOUR[0], atol=0.1)
    inspection = inspect_file(path)
    assert (inspection.format, inspection.shape) == ("PTM", (47, 40))
    assert any("smooth fit" in text for text in inspection.warnings)


HEAD = b"PTM_1.2\nPTM_FORMAT_LRGB\n4 3\n1 1 1 1 1 1\n0 0 0 0 0 0\n"
HARMONICS = b"#HSH1.2\n3\n4 3 3\n9 2 1\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD + bytes(107), "is incomplete: 107 of the 108 bytes of its 4 × 3 pixels"),
        (HEAD[:45], "cannot be read as PTM.*header"),
        (HEAD.replace(b"1.2", b"1.1") + bytes(108), r"version 'PTM_1\.1', not PTM_1\.2; save it as"),
        (HEAD.replace(b"LRGB", b"LUM") + bytes(108), "of the format 'PTM_FORMAT_LUM', not one of PTM_FORMAT_RGB"),
        (HEAD.replace(b"LRGB", b"JPEGLS_RGB") + bytes(108), "of the format 'PTM_FORMAT_JPEGLS_RGB', not one of"),
        (HEAD.replace(b"4 3", b"0 3") + bytes(108), "claims 0 × 3 pixels"),
        (HEAD.replace(b"1 1 1 1 1 1", b"1 1 e 1 1 1") + bytes(108), "cannot be read as PTM"),
        (HEAD.replace(b"1 1 1 1 1 1", b"1 1e300 1 1 1 1") + bytes(108), "cannot be read as PTM.*scale or bias"),
        (HEAD.replace(b"4 3", b"90000 90000") + bytes(108), "more than the limit of 2000000000"),
        (HEAD.replace(b"4 3", b"40000 40000") + bytes(108), "is too short for the 40000 × 40000 pixels"),
        (HEAD + bytes(108), "no pixel is foreground"),
        (HARMONICS + bytes(72 + 323), "is incomplete: 323 of the 324 bytes"),
        (HARMONICS + bytes(70), "cannot be read as RTI"),
        (HARMONICS + b"\xff\xff\x7f\x7f" * 18 + bytes(324), "cannot be read as RTI.*scale or bias"),
        (HARMONICS[:-3], "cannot be read as RTI.*header"),
        (HARMONICS.replace(b"\n3\n", b"\n2\n") + bytes(400), "of spherical harmonics, not of hemispherical"),
        (HARMONICS.replace(b"9 2 1", b"9 2 4") + bytes(400), "9 terms of 4 bytes"),
        (HARMONICS.replace(b"9 2 1", b"9 2 1 5") + bytes(400), "three numbers on the second and third line"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, message):
    path = tmp_path / "coin.rti"
    path.write_bytes(content)
    warned = pytest.warns(NormalMeshWarning) if "foreground" in message else nullcontext()
    with warned, pytest.raises(NormalMeshError, match=message):
        read_normal_map(path)


def test_orders_instead_of_numbers_of_terms(tmp_path, lopsided):
    path = write_hsh(tmp_path / "coin.rti", photographed(lopsided.normals, LIGHTS), LIGHTS, 9)
    expected = read_rti(path).normals
    path.write_bytes(path.read_bytes().replace(b"\n9 2 1", b"\n2 2 1"))
    found = read_rti(path)
    assert found.header.terms == 9
    np.testing.assert_array_equal(found.normals, expected)


def test_constant_coefficients_have_any_bias(tmp_path):
    """Programs that divide by a range of zero write the smallest integer as the bias."""
    pixels = bytes([9, 9, 9, 9, 9, 200]) * 12 + b"\xff" * 36
    head = HEAD.replace(b"1 1 1 1 1 1\n0 0 0 0 0 0", b"0 0 0 0 0 1\n%d 0 0 0 0 0")
    normals = []
    for bias in (0, -(2**31)):
        (tmp_path / "flat.ptm").write_bytes(head % bias + pixels)
        normals.append(read_rti(tmp_path / "flat.ptm").normals)
    np.testing.assert_array_equal(*normals)
    assert normals[0][..., 2].min() > 0.99


def test_motion_vectors_and_truncated_planes_are_refused(tmp_path, lopsided):
    path = write_ptm(tmp_path / "coin.ptm", photographed(lopsided.normals, LIGHTS), LIGHTS, "JPEG_LRGB")
    whole = path.read_bytes()
    path.write_bytes(whole[:-300])
    with pytest.raises(NormalMeshError, match="is incomplete: a JPEG image in it has no end"):
        read_rti(path)
    path.write_bytes(whole.replace(b"\n99\n0 1 0", b"\n99\n0 2 0"))
    with pytest.raises(NormalMeshError, match="motion vectors"):
        read_rti(path)
    with pytest.raises(NormalMeshError, match="more than the limit of 100"):
        read_rti(path, max_pixels=100)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(NormalMeshError, match="is a PNG file; expected a PTM file"):
        read_rti(path)
