"""The whole decimation: what it promises, on anything."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decimation_checks import assert_valid, bumpy, masks
from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, ScreenMesh, Step, decimate, pixel_faces
from normalmesh.decimation.collapse import collapse
from normalmesh.decimation.decimation_options import THRESHOLD_REGULARISATION
from normalmesh.decimation.quadrics import FaceRecords, Pixels
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.mesh.closed_mesh import ClosedMesh
from thread_counts import on_one_and_on_several


@settings(max_examples=40)
@given(masks, st.integers(0, 3), st.sampled_from([3, 8, 25]))
@example(np.ones((1, 1), bool), 3, 3)
def test_any_mask(mask, seed, target):
    normal_map = bumpy(mask, seed)
    mesh = decimate(normal_map, vertices=target)
    assert_valid(mesh, normal_map)
    assert len(mesh.vertices) <= max(target, len(ScreenMesh.from_mask(mask).vertices))
    assert mesh.report.target_met == (len(mesh.vertices) == target)


@settings(max_examples=20)
@given(masks, st.floats(0.01, 1e4))
def test_any_mask_and_threshold(mask, threshold):
    normal_map = bumpy(mask, camera=Perspective(60, 60, 7, 7))
    assert_valid(decimate(normal_map, threshold=threshold), normal_map)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@settings(max_examples=20)
@given(masks, st.integers(0, 2**32 - 1))
def test_any_normals(mask, seed):
    """Noise without any smoothness, steep and grazing."""
    normals = np.random.default_rng(seed).normal(size=(*mask.shape, 3))
    normals[..., 2] = np.abs(normals[..., 2]) + 1e-3
    normal_map = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), mask)
    assert_valid(decimate(normal_map, vertices=6), normal_map)


@pytest.mark.parametrize("camera", [Orthographic(), Perspective(90, 90, 30, 30)], ids=str)
@pytest.mark.parametrize("target", [40, 100, 700])
def test_targets_are_met_exactly(camera, target):
    normal_map = bumpy(np.ones((60, 60), bool), camera=camera)
    mesh = decimate(normal_map, vertices=target)
    assert len(mesh.vertices) == target
    assert mesh.report.target_met
    assert_valid(mesh, normal_map)


def test_a_rectangle_keeps_its_area_and_corners():
    mesh = decimate(bumpy(np.ones((40, 50), bool)), vertices=100)
    assert np.isclose(mesh.areas.sum(), 2000, rtol=1e-3)
    assert (pixel_faces(mesh, (40, 50)) >= 0).all()


def test_holes_and_components_set_the_fewest_vertices():
    mask = np.ones((30, 60), bool)
    mask[:, 30] = False
    mask[10:14, 8:12] = mask[20, 20] = False
    normal_map = bumpy(mask)
    mesh = decimate(normal_map, vertices=3)
    assert_valid(mesh, normal_map)
    assert not mesh.report.target_met
    assert mesh.report.target == 3
    # Two outlines of at least three vertices, two holes of three, and no more than a few that geometry needs.
    assert 12 <= len(mesh.vertices) <= 20


@pytest.mark.parametrize(
    "mask",
    [
        np.ones((1, 1), bool),
        np.ones((1, 2), bool),
        np.ones((1, 300), bool),
        np.ones((300, 1), bool),
        np.eye(40, dtype=bool),
        np.indices((30, 30)).sum(axis=0) % 2 == 0,
        np.random.default_rng(0).random((60, 60)) > 0.1,
        np.random.default_rng(0).random((60, 60)) > 0.6,
    ],
    ids=["pixel", "two", "row", "column", "diagonal", "checkerboard", "holes", "dust"],
)
def test_hard_masks(mask):
    normal_map = bumpy(mask)
    for target in (3, 50):
        assert_valid(decimate(normal_map, vertices=target), normal_map)


def test_specks_keep_their_pixels():
    """Components and holes of one or two pixels, with vertices to spare."""
    mask = np.random.default_rng(0).random((50, 50)) > 0.6
    mesh = decimate(bumpy(mask), vertices=len(ScreenMesh.from_mask(mask).vertices) * 9 // 10)
    assert np.array_equal(pixel_faces(mesh, mask.shape) >= 0, mask)


def test_compression():
    normal_map = Medallion(100).normal_map
    mesh = decimate(normal_map, compression=0.98)
    assert len(mesh.vertices) == round(0.02 * normal_map.foreground)


def test_thresholds_are_monotone_and_exhaustive(monkeypatch):
    closed = []
    from_screen = ClosedMesh.from_screen
    monkeypatch.setattr(
        ClosedMesh, "from_screen", lambda *given, **more: closed.append(from_screen(*given, **more)) or closed[-1]
    )
    normal_map = Medallion(120).normal_map
    counts = []
    for threshold in (0.1, 2, 64, 2048):
        mesh = decimate(normal_map, threshold=threshold)
        counts.append(len(mesh.vertices))
        assert mesh.report.target is None
        records = FaceRecords(closed[-1])
        pixels = Pixels(normal_map, THRESHOLD_REGULARISATION)
        records.renew(closed[-1], pixels)
        left = collapse(closed[-1], pixels, records, limit=threshold)
        assert left.collapses == 0, "an edge below the threshold was left"
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == len(counts)


@pytest.mark.parametrize("angle", [0.2, 1.1])
def test_alignment_follows_folds(angle):
    """The ablation in small: on paper folded in slanted lines, flips and moves lay the edges into the folds."""
    v, u = np.indices((100, 100)) + 0.5
    slope = 0.6 * np.sign(np.sin(2 * np.pi * (np.cos(angle) * u + np.sin(angle) * v) / 17))
    normals = np.stack([-slope * np.cos(angle), slope * np.sin(angle), np.ones_like(slope)], axis=-1)
    normal_map = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))

    def error(**options):
        """Mean angle (degrees) between the pixels and the mean normals of their faces."""
        mesh = decimate(normal_map, vertices=300, **options)
        owner = pixel_faces(mesh, normal_map.shape).ravel()
        pixels = normal_map.normals.reshape(-1, 3).astype(np.float64)
        means = np.stack([np.bincount(owner, pixels[:, k], len(mesh.faces)) for k in range(3)], axis=1)
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
        return np.degrees(np.arccos(np.clip((means[owner] * pixels).sum(axis=1), -1, 1))).mean()

    full = error()
    assert full < 0.3 * error(flips=False, moves=False)
    assert full < 0.5 * error(flips=False)


def test_locked_pixels_stay():
    normal_map = bumpy(np.ones((30, 30), bool))
    locked = np.zeros((30, 30), bool)
    locked[12, 5:9] = locked[0, 20:] = True
    mesh = decimate(normal_map, vertices=60, locked=locked)
    assert_valid(mesh, normal_map)
    rows, columns = np.nonzero(locked)
    corners = {(j + dj, i + di) for i, j in zip(rows, columns, strict=True) for di in (0, 1) for dj in (0, 1)}
    assert {tuple(corner) for corner in mesh.vertices[mesh.locked]} == corners
    sides = np.concatenate([mesh.faces[:, [k, (k + 1) % 3]] for k in range(3)])
    edges = {frozenset(map(tuple, mesh.vertices[side])) for side in sides}
    assert all(frozenset([(j, 12.0), (j + 1, 12.0)]) in edges for j in range(5, 9))


def test_locked_corners_stay():
    normal_map = bumpy(np.ones((20, 20), bool))
    mesh = decimate(normal_map, vertices=12, locked=[[7, 9], [0, 20]])
    assert {tuple(corner) for corner in mesh.vertices[mesh.locked]} == {(7.0, 9.0), (0.0, 20.0)}


def test_everything_locked_is_the_start_mesh():
    normal_map = bumpy(np.ones((8, 8), bool))
    mesh = decimate(normal_map, vertices=10, locked=np.ones((8, 8), bool))
    assert len(mesh.vertices) == 81
    assert not mesh.report.target_met


def test_any_number_of_threads():
    normal_map = Medallion(90).normal_map
    alone, together = on_one_and_on_several(lambda: decimate(normal_map, vertices=200))
    assert np.array_equal(alone.vertices, together.vertices)
    assert np.array_equal(alone.faces, together.faces)


def test_report_and_progress():
    reported = []
    normal_map = Medallion(80).normal_map
    mesh = decimate(normal_map, vertices=150, progress=reported.append)
    report = mesh.report
    assert [each.vertices for each in report.rounds] == [600, 378, 238, 150]
    assert report.collapses == len(ScreenMesh.from_mask(normal_map.mask).vertices) - 150
    assert report.flips > 0
    assert report.moves > 0
    assert report.largest_cost == report.rounds[-1].largest_cost > 0
    assert set(report.seconds) == {"start", "collapse", "evaluate", "flip", "move", "lines"}
    assert set(report.cpu_seconds) == set(report.seconds)
    shares = [step.share for step in reported]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert reported[-1] == Step(1.0, "done", 150)
    assert {step.stage for step in reported} == {"start", "collapse", "align", "done"}


def test_only_rounds_before_alignment_are_exact():
    """Large meshes are collapsed in tiles; one queue for the exact number is left out where it does not matter."""
    normal_map = Medallion(300).normal_map
    reports = [decimate(normal_map, vertices=2500, align=align).report for align in ("last", "each")]
    near, exact = ([each.vertices for each in report.rounds] for report in reports)
    assert exact == [10_000, 6_300, 3_969, 2_500]
    assert near[-1] == 2_500
    assert near[:2] != exact[:2]
    assert all(wanted <= found <= 1.1 * wanted for wanted, found in zip(exact, near, strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vertices": 9, "threshold": 2}, "not vertices and threshold"),
        ({"vertices": 2}, "vertices must be a whole number from 3 to 2147483647, not 2"),
        ({"vertices": -5}, "vertices must be"),
        ({"vertices": 10.5}, "vertices must be a whole number"),
        ({"vertices": float("nan")}, "vertices must be"),
        ({"threshold": 0}, "threshold must be a positive number"),
        ({"threshold": float("nan")}, "threshold must be a positive number"),
        ({"compression": 98}, "compression must lie between 0 and 1, such as 0.98"),
        ({"compression": "high"}, "compression must lie between"),
        ({"vertices": 9, "rounds": 0}, "rounds must be"),
        ({"vertices": 9, "passes": -1}, "passes must be"),
        ({"vertices": 9, "step": 0}, "step must be"),
        ({"vertices": 9, "regularisation": -1}, "regularisation must be"),
        ({"vertices": 9, "locked": np.ones((3, 3))}, "locked must be a pixel mask of 6×6 or pixel corners"),
        ({"vertices": 9, "locked": [[50, 1]]}, r"locked corner \[50, 1\] is not a pixel corner"),
        ({"vertices": 9, "locked": [[8, 1]]}, r"locked corner \[8, 1\] is not a pixel corner"),
        ({"vertices": 9, "locked": [[2, 2], [2.5, 2]]}, r"locked corner \[2.5, 2.0\] is not a pixel corner"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(NormalMeshError, match=message):
        decimate(bumpy(np.ones((6, 6), bool)), **options)
