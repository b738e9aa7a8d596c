"""Depth and normals of networks, made from known scenes."""

import numpy as np
import pytest
from scipy import ndimage

import normalmesh as nm

SHAPE = (64, 88)
CAMERA = nm.Perspective(100.0, 96.0, 40.0, 33.0)
ROWS, COLUMNS = np.indices(SHAPE)


@pytest.fixture(scope="module")
def scene():
    """Return the true normal map and depth of two curved objects at different distances."""
    depth = np.full(SHAPE, np.nan)
    near, far = np.hypot(ROWS - 32, COLUMNS - 20) < 17, (abs(ROWS - 32) < 22) & (abs(COLUMNS - 64) < 18)
    depth[near] = (4 + 0.5 * np.sin(COLUMNS / 7) + 0.4 * np.cos(ROWS / 8) + ROWS / 60)[near]
    depth[far] = (7 + 0.7 * np.cos(COLUMNS / 6) - ROWS / 50)[far]
    return nm.from_heights(depth, camera=CAMERA), depth


def moge(normal_map, depth, batch=False):
    """Return a dictionary as MoGe-2 gives it: OpenCV axes, normalised intrinsics, infinite where masked."""
    rows, columns = SHAPE
    intrinsics = np.array(
        [
            [CAMERA.fx / columns, 0, CAMERA.cx / columns],
            [0, CAMERA.fy / rows, CAMERA.cy / rows],
            [0, 0, 1],
        ]
    )
    output = {
        "normal": (normal_map.normals * [1, -1, -1]).astype(np.float32),
        "mask": normal_map.mask,
        "intrinsics": intrinsics.astype(np.float32),
        "depth": np.where(normal_map.mask, depth, np.inf).astype(np.float32),
    }
    return {name: values[None] if batch else values for name, values in output.items()}


def assert_same(found, scene):
    normal_map, depth = scene
    np.testing.assert_array_equal(found.normal_map.mask, normal_map.mask)
    np.testing.assert_allclose(found.normal_map.normals, normal_map.normals, atol=1e-6)
    np.testing.assert_allclose(found.normal_map.camera.frame, CAMERA.frame, atol=1e-6)
    np.testing.assert_allclose(found.depth, depth, rtol=1e-6)


class TestForms:
    def test_arrays_with_and_without_batch(self, scene):
        for batch in (False, True):
            assert_same(nm.from_network(moge(*scene, batch=batch)), scene)

    def test_tensors(self, scene):
        torch = pytest.importorskip("torch")
        tensors = {name: torch.tensor(values) for name, values in moge(*scene, batch=True).items()}
        tensors["normal"] = tensors["normal"].permute(0, 3, 1, 2).requires_grad_()
        assert_same(nm.from_network(tensors), scene)
        half = nm.from_network({**tensors, "depth": tensors["depth"].bfloat16()})
        np.testing.assert_allclose(half.depth, scene[1], rtol=1e-2)

    def test_files_and_points(self, scene, tmp_path):
        output = moge(*scene)
        output["points"] = np.dstack([np.zeros((*SHAPE, 2)), output.pop("depth")])
        np.savez(tmp_path / "moge.npz", **output)
        assert_same(nm.from_network(tmp_path / "moge.npz"), scene)

    def test_a_matrix_in_pixels(self, scene):
        output = {**moge(*scene), "intrinsics": CAMERA.matrix("integer")}
        assert_same(nm.from_network(output), scene)
        assert nm.from_network(output, pixel_centre="half").normal_map.camera.cx == CAMERA.cx - 0.5

    def test_normals_alone_are_orthographic(self, scene):
        found = nm.from_network({"normal": moge(*scene)["normal"], "mask": scene[0].mask})
        assert found.normal_map.camera == nm.Orthographic()
        with pytest.raises(nm.NormalMeshError, match="no depth"):
            found.prior()

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"normal": None}, "holds no normal .*but normal, mask"),
            ({"normal": np.zeros((2, *SHAPE, 3))}, "choose one image of the batch"),
            ({"mask": np.ones((3, 4))}, "mask is 3×4 but normals are 64×88"),
            ({"intrinsics": None}, "depth but no intrinsics"),
            ({"depth": "deep"}, "depth must be an array of numbers"),
        ],
    )
    def test_refused(self, changed, message, scene):
        with pytest.raises(nm.NormalMeshError, match=message):
            nm.from_network({**moge(*scene), **changed})


class TestFittedPrior:
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_a_factor_and_a_shift_end_right(self, noise, scene):
        """Without a fit, the wrong shift bends both objects, and puts them at wrong distances."""
        normal_map, depth = scene
        wrong = 2.5 * depth + 3 + np.random.default_rng(0).normal(0, noise, SHAPE)
        wrong[30:33, 50:60] = 90.0  # smeared depths are left out
        output = nm.from_network(moge(normal_map, wrong))
        prior = output.prior(shift=True)
        assert prior.shift == pytest.approx(-3, abs=0.15)
        assert prior.outliers == 30
        surface = nm.reconstruct(output.normal_map, compression=0.8, prior=prior)
        together = nm.evaluate(surface.depth_map(), normal_map, depth, each_component=False)
        assert together.rmse < 0.02
        unfitted = nm.reconstruct(output.normal_map, compression=0.8, prior=output.prior())
        assert nm.evaluate(unfitted.depth_map(), normal_map, depth, each_component=False).rmse > 0.1
        # The unit is that of the network.
        assert np.nanmedian(surface.depth_map() / depth) == pytest.approx(2.5, rel=0.03)

    def test_edges_of_the_depth_separate_what_normals_do_not(self):
        """A disc before a wall: its outline is invisible in the normals, so that it seems to contradict the wall."""
        wall, disc = 6 + 0.3 * np.sin(COLUMNS / 9) + 0.02 * COLUMNS, np.hypot(ROWS - 32, COLUMNS - 44) < 16
        depth = np.where(disc, wall - 3, wall)
        normals = np.where(
            disc[..., None],
            nm.from_heights(wall - 3, camera=CAMERA).normals,
            nm.from_heights(wall, camera=CAMERA).normals,
        )
        found = nm.from_network(moge(nm.NormalMap(normals, camera=CAMERA), 0.5 * depth - 0.4))
        assert str(found).endswith("with depth)")
        with pytest.warns(nm.NormalMeshWarning, match=r"[0-9]+ of 5632 depths contradict the normals.*find_jumps"):
            found.prior(shift=True)
        edges = ndimage.maximum_filter(found.depth, 3) - ndimage.minimum_filter(found.depth, 3) > 0.5
        jumps = nm.find_jumps(found.normal_map, edges)
        prior = found.prior(shift=True, jumps=jumps)
        assert prior.shift == pytest.approx(0.4, abs=0.02)
        assert prior.outliers < 50
        assert "array" not in repr(prior)
        surface = nm.reconstruct(found.normal_map, compression=0.9, prior=prior, jumps=jumps)
        error = surface.depth_map() / (0.5 * depth) - 1
        assert np.nanmedian(abs(error)) < 0.005

    def test_a_scale_alone_needs_no_fit(self, scene):
        normal_map, depth = scene
        prior = nm.fit_prior(1.3 * depth, normal_map)
        assert (prior.scale, prior.shift, prior.outliers) == (1, 0, 0)
        np.testing.assert_allclose(prior, 1.3 * depth)

    def test_heights_of_any_unit(self, scene):
        """The noise is on the heights: a regression on them would make the scale too small."""
        height = -20 * scene[1]
        normal_map = nm.from_heights(height)
        given = height / 8 + 5 + np.random.default_rng(1).normal(0, 0.4, SHAPE)
        assert nm.fit_prior(given, normal_map).scale == pytest.approx(8, rel=0.03)
        with pytest.raises(nm.NormalMeshError, match="negate it"):
            nm.fit_prior(-given, normal_map)

    def test_a_constant_distance_tells_no_shift(self):
        camera = nm.Perspective.centred(200.0, (40, 40))
        wall = nm.from_heights(np.full((40, 40), 5.0), camera=camera)
        with pytest.warns(nm.NormalMeshWarning, match="too little to tell the shift"):
            assert nm.fit_prior(np.full((40, 40), 7.0), wall, shift=True).shift == 0

    def test_refused(self, scene):
        with pytest.raises(nm.NormalMeshError, match="3×3 but normals are 64×88"):
            nm.fit_prior(np.ones((3, 3)), scene[0])
        with pytest.raises(nm.NormalMeshError, match="fewer than three"):
            nm.fit_prior(np.full(SHAPE, np.nan), scene[0])

    @pytest.mark.parametrize("wrong", [lambda depth: -depth, lambda depth: 1 / depth, lambda depth: 0 * depth + 5])
    def test_depths_that_contradict_the_normals_are_refused(self, wrong, scene):
        normal_map, depth = scene
        with pytest.raises(nm.NormalMeshError, match="contradict the normals"):
            nm.fit_prior(wrong(depth), normal_map, shift=True)

    def test_an_array_without_a_copy_is_not_converted(self, scene):
        prior = nm.fit_prior(scene[1], scene[0])
        assert np.shares_memory(np.asarray(prior), prior.depth)
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            with pytest.raises(ValueError, match="avoid copy"):
                np.array(prior, np.float32, copy=False)
