"""Test the error measures against loops over pixels and known errors."""

import numpy as np
import pytest

import naive_metrics
from meshes import bumpy_map
from normalmesh import (
    NormalMap,
    NormalMeshError,
    NormalMeshWarning,
    Orthographic,
    Perspective,
    Surface,
    decimate,
    evaluate,
    integrate,
)
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.gauges import PointGauge
from normalmesh.evaluation.metrics import angles_between, normals_of_depth
from normalmesh.evaluation.synthetic.medallion import Medallion

CAMERAS = [Orthographic(0.7), Perspective(30.0, 28.0, 12.0, 11.0)]
SHAPE = (21, 24)


def random_case(camera, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(SHAPE) > 0.35
    normal_map = bumpy_map(SHAPE, seed=seed, camera=camera, mask=mask)
    depth = rng.uniform(2, 3, SHAPE)
    depth[rng.random(SHAPE) < 0.1] = np.nan
    return Case("random", normal_map, depth)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
@pytest.mark.parametrize("seed", range(5))
class TestAgainstLoops:
    def test_depth_map(self, camera, seed):
        case = random_case(camera, seed)
        found = np.random.default_rng(seed + 100).uniform(1, 4, SHAPE)
        found[np.random.default_rng(seed + 200).random(SHAPE) < 0.2] = np.nan
        result = evaluate(found, case)
        mask = case.normal_map.mask
        rmse, made = naive_metrics.rmse_and_made(found, case.depth, mask, isinstance(camera, Orthographic))
        mae = naive_metrics.mean_angle(normals_of_depth(found, camera), case.normals, mask)
        np.testing.assert_allclose([result.rmse, result.made, result.mae], [rmse, made, mae], rtol=1e-12)
        assert result.covered == np.sum(np.isfinite(found) & mask) / mask.sum()
        assert result.spilled == np.sum(np.isfinite(found) & ~mask) / mask.sum()
        assert result.vertices == np.isfinite(found).sum()

    def test_surface(self, camera, seed):
        case = random_case(camera, seed)
        surface = integrate(decimate(case.normal_map, compression=0.5), case.normal_map, refine=0)
        result = evaluate(surface, case)
        mask = case.normal_map.mask
        rmse, made = naive_metrics.rmse_and_made(
            surface.depth_map(), case.depth, mask, isinstance(camera, Orthographic)
        )
        mae = naive_metrics.mean_angle(surface.normal_map(), case.normals, mask)
        np.testing.assert_allclose([result.rmse, result.made, result.mae], [rmse, made, mae], rtol=1e-12)
        assert result.compression == 1 - len(surface.vertices) / mask.sum()


def test_angles():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200, 3))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    b[:50] = a[:50] + 1e-9 * b[:50]  # tiny angles
    b[:50] /= np.linalg.norm(b[:50], axis=1, keepdims=True)
    expected = [naive_metrics.angle(p, q) for p, q in zip(a, b, strict=True)]
    np.testing.assert_allclose(angles_between(a, b), expected, rtol=1e-12, atol=1e-13)
    assert np.isnan(angles_between(np.zeros((1, 3)), a[:1])).all()
    np.testing.assert_allclose(angles_between(a, -a), 180)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_normals_of_a_plane_are_exact(camera):
    normal = np.array([0.2, -0.3, 0.9]) / np.linalg.norm([0.2, -0.3, 0.9])
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    if isinstance(camera, Orthographic):
        depth = -(normal[0] * camera.pixel_size * u - normal[1] * camera.pixel_size * v) / normal[2]
    else:
        depth = -5 / (camera.rays(u, v) @ normal)
    depth[3, 4:9] = np.nan
    depth[:, -1] = np.nan
    normals = normals_of_depth(depth, camera)
    known = np.isfinite(depth)
    np.testing.assert_allclose(normals[known], np.broadcast_to(normal, (known.sum(), 3)), atol=1e-12)
    assert not normals[~known].any()


def test_row_blocks_do_not_change_the_result(monkeypatch):
    depth = np.random.default_rng(0).uniform(2, 3, (40, 20))
    whole = normals_of_depth(depth, CAMERAS[1])
    monkeypatch.setattr("normalmesh.runtime.row_blocks.BLOCK", 60)
    np.testing.assert_array_equal(normals_of_depth(depth, CAMERAS[1]), whole)


def test_a_pixel_without_neighbours_has_no_normal():
    depth = np.full((3, 3), np.nan)
    depth[1, 1] = 1.0
    depth[0, 2] = depth[1, 2] = 2.0
    normals = normals_of_depth(depth, Orthographic())
    assert normals[1, 2].any()
    assert not normals[1, 1].any()  # it has only a right neighbour


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_gauge_of_each_component(camera):
    mask = np.ones(SHAPE, bool)
    mask[:, 10] = False
    normal_map = bumpy_map(SHAPE, camera=camera, mask=mask)
    truth = np.random.default_rng(1).uniform(2, 3, SHAPE)
    found = truth.copy()
    if isinstance(camera, Orthographic):
        found[:, :10] += 5
    else:
        found[:, :10] *= 5
    case = Case("two", normal_map, truth)
    apart = evaluate(found, case)
    np.testing.assert_allclose([apart.rmse, apart.made, np.nanmax(np.abs(apart.depth_error))], 0, atol=1e-12)
    assert np.isnan(apart.depth_error[:, 10]).all()
    assert evaluate(found, case, each_component=False).rmse > 0.5


def test_a_normal_map_is_a_truth():
    truth = Medallion(64)
    found = truth.height + 3 + np.where(np.arange(64) < 32, 0.1, -0.1)
    result = evaluate(found, truth.normal_map, truth.height)
    assert result.rmse == pytest.approx(0.1, abs=1e-3)
    assert result.made == pytest.approx(0.1, abs=1e-3)
    assert result.mae < 10
    without = evaluate(found, truth.normal_map)
    assert np.isnan(without.rmse)
    assert without.mae == result.mae
    assert "RMSE 0.1 px" in str(result)


def test_counted_pixels():
    truth = Medallion(64)
    wrong = truth.height.copy()
    wrong[:32] += np.random.default_rng(0).normal(size=(32, 64))
    lower = np.zeros((64, 64), bool)
    lower[33:] = True
    result = evaluate(wrong, truth.normal_map, truth.height, counted=lower)
    assert result.rmse < 1e-12
    assert result.mae < evaluate(wrong, truth.normal_map, truth.height).mae / 3
    assert np.isnan(result.angles[:33]).all()


def test_noisy_input_is_compared_with_true_normals():
    truth = Medallion(64)
    tilted = np.where(truth.normal_map.mask[..., None], truth.normal_map.normals + np.array([0.2, 0, 0]), 0)
    noisy = NormalMap(tilted / np.maximum(np.linalg.norm(tilted, axis=2, keepdims=True), 1e-9), truth.normal_map.mask)
    case = Case("noisy", noisy, truth.height, truth.normal_map.normals)
    assert evaluate(truth.height, case).mae == evaluate(truth.height, truth.normal_map).mae


def test_depth_files(tmp_path):
    truth = Medallion(48)
    expected = evaluate(truth.height, truth.normal_map, truth.height + 1)
    np.save(tmp_path / "height.npy", truth.height)
    np.savez(tmp_path / "both.npz", depth=truth.height, mask=truth.normal_map.mask)
    for name in ("height.npy", "both.npz"):
        found = evaluate(tmp_path / name, truth.normal_map, truth.height + 1)
        assert (found.rmse, found.mae) == (expected.rmse, expected.mae)
    np.save(tmp_path / "truth.npy", truth.height + 1)
    assert evaluate(truth.height, truth.normal_map, tmp_path / "truth.npy").rmse == expected.rmse


def test_units_of_errors():
    normal_map, depth = bumpy_map(SHAPE, camera=CAMERAS[1]), np.random.default_rng(0).uniform(2, 3, SHAPE)
    assert evaluate(depth, normal_map, depth).units == "units"
    metric = integrate(decimate(normal_map, compression=0.5), normal_map, refine=0, distance=2, units="mm")
    assert evaluate(metric, normal_map, depth, align="offset").units == "mm"
    assert evaluate(metric, normal_map, depth).units == "units"
    assert evaluate(Medallion(48).height, Medallion(48).normal_map).units == "px"


def test_figures_are_shown_without_arrays():
    truth = Medallion(48)
    shown = repr(evaluate(truth.height, truth.normal_map, truth.height))
    assert "rmse=0.0" in shown
    assert "covered=1.0" in shown
    assert "array" not in shown


class TestMeshFiles:
    @pytest.fixture(autouse=True)
    def needs_ray_casting(self):
        pytest.importorskip("embreex")

    @pytest.mark.parametrize("suffix", ["ply", "obj", "glb", "stl"])
    @pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(90.0, 90.0, 24.0, 24.0)], ids=str)
    def test_as_the_surface(self, suffix, camera, tmp_path):
        normal_map = bumpy_map((48, 48), camera=camera, mask=Medallion(48).normal_map.mask)
        surface = integrate(decimate(normal_map, compression=0.9), normal_map, refine=0)
        depth = np.random.default_rng(0).uniform(2, 3, (48, 48))
        surface.save(tmp_path / f"surface.{suffix}")
        expected = evaluate(surface, normal_map, depth)
        found = evaluate(tmp_path / f"surface.{suffix}", normal_map, depth)
        assert found.vertices == expected.vertices
        assert found.covered == pytest.approx(expected.covered, abs=0.01)  # centres exactly on the outline
        assert found.mae == pytest.approx(expected.mae, rel=1e-2)
        assert found.rmse == pytest.approx(expected.rmse, rel=1e-2)

    def test_faces_may_have_either_orientation(self, tmp_path):
        normal_map = Medallion(48).normal_map
        surface = integrate(decimate(normal_map, compression=0.9), normal_map, refine=0)
        turned = Surface(surface.vertices, surface.faces[:, ::-1], surface.screen, surface.camera, surface.shape)
        surface.save(tmp_path / "a.ply")
        turned.save(tmp_path / "b.ply")
        both = [evaluate(tmp_path / name, normal_map).mae for name in ("a.ply", "b.ply")]
        assert both[0] == pytest.approx(both[1], rel=1e-6)


def test_number_of_pixels_compared():
    truth = Medallion(48)
    result, depth = truth.height.copy(), truth.height.copy()
    result[:, :24], depth[:16] = np.nan, np.nan
    result[20, 40] = np.nan
    found = evaluate(result, truth.normal_map, depth)
    assert found.normals_compared == np.sum(np.isfinite(result) & truth.normal_map.mask)
    assert found.depths_compared == np.sum(np.isfinite(result) & np.isfinite(depth) & truth.normal_map.mask)
    assert f"MADE 0 px ({found.depths_compared} pixels)" in str(found)


class TestDoubts:
    """Comparisons whose figures are right but mean nothing."""

    truth = Medallion(32)

    def test_other_units(self):
        flat = self.truth.height + np.random.default_rng(0).normal(0, 0.02, (32, 32))
        with pytest.warns(NormalMeshWarning, match=r"the truth is 25\.\d+ times the result.*check the units"):
            evaluate(flat, self.truth.normal_map, 25.4 * self.truth.height)
        evaluate(flat, self.truth.normal_map, self.truth.height)
        evaluate(np.random.default_rng(1).normal(size=(32, 32)), self.truth.normal_map, self.truth.height)

    def test_a_scale_does_not_align_the_level_of_heights(self):
        raised, normal_map = 2 * self.truth.height + 7, self.truth.normal_map
        with pytest.warns(NormalMeshWarning, match='a constant explains nearly all .*"similarity"'):
            assert evaluate(raised, normal_map, self.truth.height, align="scale").rmse > 0.5
        evaluate(2 * self.truth.height, normal_map, self.truth.height, align="scale")
        distances = 40 + self.truth.height
        central = NormalMap(normal_map.normals, normal_map.mask, Perspective.centred(90, (32, 32)))
        evaluate(distances + 7, central, distances, align="scale")

    def test_opposite_directions_in_each_component(self):
        mask = self.truth.normal_map.mask.copy()
        mask[:, 16] = False
        normal_map = NormalMap(self.truth.normal_map.normals, mask)
        apart = np.where(np.arange(32) < 16, 0, 100)
        with pytest.warns(NormalMeshWarning, match="opposite directions: negate the truth"):
            evaluate(self.truth.height + apart, normal_map, apart - self.truth.height)

    def test_no_true_depth(self):
        depth = np.full((32, 32), np.nan)
        with pytest.warns(NormalMeshWarning, match="none of the .* pixels to compare has a true depth"):
            found = evaluate(self.truth.height, self.truth.normal_map, depth)
        assert np.isnan(found.rmse)
        assert found.depths_compared == 0

    @pytest.mark.parametrize("change", [lambda depth: -depth, lambda depth: 0 * depth, lambda depth: depth - 2.5])
    def test_distances_that_are_not_positive(self, change):
        """A scale of −1 or 0 would align them with any result, without an error."""
        normal_map = bumpy_map(SHAPE, camera=CAMERAS[1])
        depth = np.random.default_rng(0).uniform(2, 3, SHAPE)
        with pytest.raises(NormalMeshError, match=r"true depths, which are NaN where .* must be positive distances"):
            evaluate(depth, normal_map, change(depth))

    def test_surface_of_another_camera(self):
        surface = integrate(decimate(self.truth.normal_map, compression=0.9), self.truth.normal_map, refine=0)
        for camera in (Perspective.centred(40, (32, 32)), Orthographic(0.1)):
            other = NormalMap(self.truth.normal_map.normals, self.truth.normal_map.mask, camera)
            with pytest.raises(NormalMeshError, match="reconstruct the surface with the camera of the truth"):
                evaluate(surface, other)

    def test_depths_too_large_to_square(self):
        with pytest.raises(NormalMeshError, match=r"true depths must be at most 3e\+38"):
            evaluate(self.truth.height, self.truth.normal_map, self.truth.height * 1e300)

    @pytest.mark.parametrize(("counted", "message"), [(0.0, "leaves no pixel"), (np.nan, "not NaN")])
    def test_nothing_counted(self, counted, message):
        with pytest.raises(NormalMeshError, match=message):
            evaluate(self.truth.height, self.truth.normal_map, counted=np.full((32, 32), counted))


class TestRefused:
    def test_sizes(self):
        truth = Medallion(32)
        with pytest.raises(NormalMeshError, match="the depth map is 31×32 but normals are 32×32"):
            evaluate(truth.height[1:], truth.normal_map)
        with pytest.raises(NormalMeshError, match="depth is 31×32 but normals are 32×32"):
            evaluate(truth.height, truth.normal_map, truth.height[1:])
        with pytest.raises(NormalMeshError, match="counted is 31×32"):
            evaluate(truth.height, truth.normal_map, counted=np.ones((31, 32)))
        other = Medallion(48).normal_map
        with pytest.raises(NormalMeshError, match="the surface has 48×48 pixels but the truth has 32×32"):
            evaluate(integrate(decimate(other, compression=0.9), other, refine=0), truth.normal_map)
        with pytest.raises(NormalMeshError, match="true normals are 32×32"):
            Case("bad", truth.normal_map, normals=truth.height)

    def test_depth_with_a_case_is_rejected(self):
        truth = Medallion(32)
        with pytest.raises(NormalMeshError, match="has its own depth"):
            evaluate(truth.height, Case("a", truth.normal_map, truth.height), truth.height)


class TestAlignment:
    @pytest.mark.parametrize("camera", CAMERAS, ids=str)
    @pytest.mark.parametrize("align", ["rigid", "similarity"])
    def test_naive_twin_of_two_components(self, camera, align):
        rng = np.random.default_rng(3)
        mask = np.ones(SHAPE, bool)
        mask[:, 10] = False
        case = Case("two", bumpy_map(SHAPE, camera=camera, mask=mask), rng.uniform(2, 3, SHAPE))
        found = case.depth + rng.normal(0, 0.1, SHAPE)
        result = evaluate(found, case, align=align)
        angles = normals_of_depth(found, camera)
        rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
        screen = np.stack([columns, rows], axis=-1) + 0.5
        points, true = (camera.points(screen, camera.unknown_of_depth(each)) for each in (found, case.depth))
        for side in (slice(0, 10), slice(11, None)):
            p, q = points[:, side].reshape(-1, 3), true[:, side].reshape(-1, 3)
            scale, rotation, translation = naive_metrics.motion(p, q, align == "similarity")
            moved = scale * p @ rotation.T + translation
            np.testing.assert_allclose(
                result.depth_error[:, side].ravel(), camera.depth(moved) - camera.depth(q), atol=1e-12
            )
            angles[:, side] = angles[:, side] @ rotation.T
        assert result.rmse == pytest.approx(np.sqrt(np.nanmean(result.depth_error**2)))
        assert result.mae == pytest.approx(naive_metrics.mean_angle(angles, case.normals, mask), rel=1e-9)
        assert result.align == align

    def test_a_motion_is_found_again(self):
        """Of a tilted and scaled copy, only the alignment that has both is exact."""
        points, tilt = np.random.default_rng(0).normal(size=(50, 3)), np.radians(4)
        turn = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
        moved, component = 1.7 * points @ turn.T + 5, np.zeros(50, int)
        similar, rigid = (PointGauge(points, moved, component, CAMERAS[1], scaled) for scaled in (True, False))
        np.testing.assert_allclose(similar.motions.rotation[0], turn, atol=1e-12)
        np.testing.assert_allclose(similar.motions.scale, 1.7)
        np.testing.assert_allclose(similar.squares(), 0, atol=1e-12)
        assert np.abs(rigid.squares()).max() > 0.5

    @pytest.mark.parametrize("camera", CAMERAS, ids=str)
    def test_offset_and_scale_whatever_the_camera(self, camera):
        case = random_case(camera, 1)
        for align, found in (("offset", case.depth + 3), ("scale", 2.5 * case.depth)):
            assert evaluate(found, case, align=align).rmse == pytest.approx(0, abs=1e-12)
        with pytest.raises(NormalMeshError, match="offset, scale, similarity, rigid"):
            evaluate(case.depth, case, align="affine")

    def test_points_on_a_line_are_not_turned(self):
        line = np.outer(np.arange(5.0), [1, 2, 0.5])
        gauge = PointGauge(line, line + np.array([0, 0, 3.0]), np.zeros(5, int), CAMERAS[0], False)
        np.testing.assert_array_equal(gauge.motions.rotation[0], np.eye(3))
