"""Check that all methods give the same, verified solution, and that unsolvable systems are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, coo_matrix, csr_matrix, diags
from scipy.spatial import Delaunay

import naive
from normalmesh import NormalMeshError
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers import elimination_plan, multigrid
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import PreparedSystem
from thread_counts import on_one_and_on_several

METHODS = ("cholesky", "multigrid")


@pytest.fixture(autouse=True)
def low_bottom(monkeypatch):
    """Let small systems use several levels of the multigrid, too."""
    monkeypatch.setattr(multigrid, "_BOTTOM", 20)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 10**6), st.sampled_from(METHODS))
def test_random_graphs_against_dense(n, edges, seed, method):
    """Include any number of components, isolated, fixed and floating unknowns, and stored zeros."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n, (edges, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    weights = 10 ** rng.uniform(-2, 2, len(ends)) * (rng.random(len(ends)) > 0.1)
    matrix = _laplacian(n, ends, weights)
    excess = np.where(rng.random(n) > 0.9, rng.random(n), 0)
    matrix = (matrix + diags(excess)).tocsr()
    b = matrix @ rng.normal(size=n)
    found = PreparedSystem(matrix, method=method).solve(b)
    assert found.residual <= 1e-8
    assert found.method == method
    assert found.free_constants == n - np.linalg.matrix_rank(matrix.toarray(), 1e-9)
    scale = max(np.abs(b).max(), 1e-300)
    assert np.abs(matrix @ found.x - b).max() <= 1e-7 * scale
    gauge = Gauge.of(matrix)
    np.testing.assert_allclose(gauge.centred(found.x), found.x, atol=1e-9 * max(1, np.abs(found.x).max()))
    np.testing.assert_allclose(found.x, naive.dense_solution(matrix, b), atol=1e-4 * max(1, np.abs(found.x).max()))


@pytest.mark.parametrize("system", ["cotangent", "dual"])
def test_meshes_by_every_path(system):
    matrix, places = _mesh_system(system, 3000)
    truth = np.random.default_rng(1).normal(size=len(places))
    truth -= truth.mean()
    b = matrix @ truth
    for way in ({"coordinates": places}, {}, {"method": "multigrid"}):
        found = PreparedSystem(matrix, **way).solve(b)
        np.testing.assert_allclose(found.x, truth, atol=1e-5)
        assert found.free_constants == 1


def test_factor_of_a_definite_matrix_is_exact():
    matrix, places = _mesh_system("cotangent", 2000)
    matrix = (matrix + diags(np.full(len(places), 0.3))).tocsr()
    factor = Cholesky(matrix, places)
    factor.factorise(matrix, np.zeros(len(places)))
    b = np.random.default_rng(0).normal(size=len(places))
    np.testing.assert_allclose(matrix @ factor.solve(b), b, atol=1e-11)
    assert np.array_equal(np.sort(factor.last), np.arange(len(places)))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 17, 63, 66, 130, 260, 700])
def test_dense_matrices(n):
    """Include fronts of all sizes: less than a strip, several packed blocks."""
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    matrix = csr_matrix(root @ root.T + n * np.eye(n))
    factor = Cholesky(matrix, rng.random((n, 2)))
    b = rng.normal(size=n)
    for extra in (np.zeros(n), rng.random(n)):
        factor.factorise(matrix, extra)
        np.testing.assert_allclose(factor.solve(b), np.linalg.solve(matrix.toarray() + np.diag(extra), b), atol=1e-12)
    with pytest.raises(NormalMeshError, match="not positive definite: the pivot of unknown"):
        factor.factorise(matrix, np.where(np.arange(n) == n // 2, -1e6, 0))
    factor.factorise(matrix, np.zeros(n))
    np.testing.assert_allclose(matrix @ factor.solve(b), b, atol=1e-10)


def test_consecutive_systems_share_a_workspace():
    """They do so also if the next one is larger."""
    workspace, used = Workspace(), []
    for count in (300, 200, 900):
        matrix, places = _mesh_system("dual", count)
        x = np.random.default_rng(count).normal(size=len(places))
        x -= x.mean()
        found = PreparedSystem(matrix, coordinates=places, workspace=workspace).solve(matrix @ x)
        np.testing.assert_allclose(found.x, x, atol=1e-6 * np.abs(x).max())
        used.append(workspace.reserve(1))
    assert np.shares_memory(used[0], used[1])
    assert not np.shares_memory(used[1], used[2])


@pytest.mark.parametrize("method", METHODS)
def test_many_right_sides(method):
    matrix, places = _mesh_system("dual", 1500)
    prepared, rng = PreparedSystem(matrix, coordinates=places, method=method), np.random.default_rng(2)
    for _ in range(3):
        b = matrix @ rng.normal(size=len(places))
        assert np.linalg.norm(matrix @ prepared.solve(b).x - b) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
def test_many_components(method):
    parts = [_mesh_system("cotangent", n)[0] for n in (300, 40, 500)] + [csr_matrix((1, 1)), csr_matrix([[2.0]])]
    matrix = block_diag(parts, format="csr")
    b = matrix @ np.random.default_rng(3).normal(size=matrix.shape[0])
    found = PreparedSystem(matrix, method=method).solve(b)
    assert found.free_constants == 4
    assert found.x[-2] == 0
    assert found.x[-1] == pytest.approx(b[-1] / 2)
    assert not PreparedSystem(matrix, method=method).solve(0 * b).x.any()


@pytest.mark.parametrize("method", METHODS)
def test_the_error_is_that_of_the_worst_unknown(method):
    """A component that hardly counts in the residual is solved as well as the others, and the estimate holds."""
    parts = [_mesh_system("dual", n)[0] for n in (60, 1500)]
    matrix, size = block_diag(parts, format="csr"), parts[0].shape[0]
    truth = Gauge.of(matrix).centred(np.random.default_rng(3).normal(size=matrix.shape[0]))
    truth[:size] *= 1e8
    system = PreparedSystem(matrix, method=method)
    assert np.isnan(system.solve(matrix @ truth).error)
    found = system.solve(matrix @ truth, max_error=1e-5)
    assert found.error <= 1e-5
    assert np.abs(found.x - truth).max() <= 2 * found.error + 1e-7
    exact = system.solve(matrix @ truth, max_error=0.0)
    assert np.abs(exact.x - truth).max() <= 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_unsolvable_systems_are_refused(method):
    path = _laplacian(4, np.array([[0, 1], [1, 2], [2, 3]]), np.ones(3))

    def refuses(matrix, right_side, match):
        with pytest.raises(NormalMeshError, match=match):
            PreparedSystem(csr_matrix(matrix), method=method).solve(np.array(right_side, np.float64))

    refuses(path, [1, 0, 0, 0], "no solution")
    refuses(csr_matrix((4, 4)), [1, 0, 0, 0], "no solution")
    refuses(path, [np.nan, 0, 0, 0], "no solution")
    indefinite = path.toarray()
    indefinite[0, 3] = indefinite[3, 0] = 40.0
    refuses(indefinite, [1.0, 2.0, 3.0, -1.0], "positive definite")


def test_multigrid_takes_over_when_the_factor_does_not_fit(monkeypatch):
    matrix, places = _mesh_system("cotangent", 200)
    monkeypatch.setattr("normalmesh.solvers.sparse_system.installed_memory", lambda: 1000)
    assert PreparedSystem(matrix, coordinates=places).method == "multigrid"


def test_degenerate_coordinates():
    matrix, places = _mesh_system("dual", 400)
    b = matrix @ np.random.default_rng(0).normal(size=len(places))
    for coordinates in (np.zeros_like(places), np.round(places * 3), places * [1, 0]):
        assert PreparedSystem(matrix, coordinates=coordinates).solve(b).residual <= 1e-8


@pytest.mark.parametrize("method", METHODS)
def test_the_same_for_any_number_of_threads(method, monkeypatch):
    monkeypatch.setattr(elimination_plan, "_FACTORISED", 0)
    monkeypatch.setattr(elimination_plan, "_SUBSTITUTED", 0)
    monkeypatch.setattr(elimination_plan, "_PARALLEL_FROM", 0)
    matrix, places = _mesh_system("cotangent", 3000)
    b = matrix @ np.random.default_rng(5).normal(size=len(places))
    assert np.array_equal(
        *on_one_and_on_several(lambda: PreparedSystem(matrix, coordinates=places, method=method).solve(b).x)
    )


@pytest.mark.parametrize("system", ["cotangent", "dual"])
def test_a_factor_in_single_precision_gives_the_same_solution(system):
    matrix, places = _mesh_system(system, 3000)
    truth = np.random.default_rng(1).normal(size=len(places))
    truth -= truth.mean()
    gauge, workspace = Gauge.of(matrix), Workspace()

    def solution():
        prepared = PreparedSystem(matrix, coordinates=places, gauge=gauge, workspace=workspace, single=True)
        return prepared.solve(matrix @ truth, max_error=1e-9)

    found = solution()
    assert 1 < found.iterations <= 6
    np.testing.assert_allclose(found.x, truth, atol=1e-8)
    assert workspace.reserve(1).base.nbytes <= 1.3 * Cholesky(matrix, places, kind=np.float32).bytes
    assert np.array_equal(*on_one_and_on_several(lambda: solution().x))


def test_single_precision_gives_way_where_it_does_not_suffice():
    """Stiff parts that are loosely coupled lose their coupling in single precision."""
    n = 400
    ends = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    weights = np.where(np.arange(n - 1) % 20 == 19, 1e-9, 1.0)
    matrix = _laplacian(n, ends, weights)
    truth = np.random.default_rng(0).normal(size=n)
    found = PreparedSystem(matrix, single=True).solve(matrix @ truth, max_error=1e-3)
    np.testing.assert_allclose(found.x, truth - truth.mean(), atol=1e-3)


def _laplacian(n, ends, weights):
    """Return the graph Laplacian (n, n) of edges (m, 2)."""
    a, b = ends.T
    rows, columns = np.concatenate([a, b, a, b]), np.concatenate([b, a, a, b])
    values = np.concatenate([-weights, -weights, weights, weights])
    return coo_matrix((values, (rows, columns)), (n, n)).tocsr()


def _mesh_system(system, n):
    """Return the Laplacian of the vertices (cotangents) or faces (edge lengths) of a triangulation, and positions."""
    points = np.random.default_rng(n).random((n, 2))
    faces = Delaunay(points).simplices
    if system == "cotangent":
        matrix = csr_matrix((n, n))
        for k in range(3):
            a, b, c = faces[:, k], faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
            e, f = points[b] - points[a], points[c] - points[a]
            cotangent = (e * f).sum(axis=1) / np.abs(e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0])
            # Slivers on the hull have cotangents beyond all those of decimated meshes.
            matrix = matrix + _laplacian(n, np.stack([b, c], axis=1), np.clip(cotangent, 0.02, 50))
        return matrix.tocsr(), points
    owner: dict[tuple[int, int], int] = {}
    pairs, lengths = [], []
    for f, face in enumerate(faces):
        for k in range(3):
            edge = tuple(sorted((int(face[k]), int(face[(k + 1) % 3]))))
            if edge in owner:
                pairs.append((owner[edge], f))
                lengths.append(np.linalg.norm(points[edge[0]] - points[edge[1]]))
            owner[edge] = f
    return _laplacian(len(faces), np.array(pairs), np.array(lengths)), points[faces].mean(axis=1)
