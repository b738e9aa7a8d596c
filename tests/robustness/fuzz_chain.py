"""Fuzz the whole pipeline, from the mask to the file, with unusual masks, normals, cameras and options."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import ndimage

import normalmesh as nm
from normalmesh.evaluation.rendering.triangle_model import TriangleModel

#: Largest number of rows and columns of a mask.
MAX_SIDE = 24
#: Parts of messages about internal values, which the user cannot correct.
INTERNAL = ("the matrix", "must be finite numbers", "depths of the vertices must be positive", "must have the shape")
#: Values that are invalid as a length or weight.
WRONG = (0.0, -1.0, float("nan"), float("inf"))
SUFFIXES = (".ply", ".obj", ".glb", ".stl")


@dataclass(frozen=True)
class Chain:
    """A compact description of a normal map and of the function that is applied to it.

    Attributes
    ----------
    mask
        Rows of ``#`` and ``.``, separated by slashes.
    normals
        Name of a field of normals in ``FIELDS``, and its seed.
    odd
        Indices of pixels, in row-major order, and the normals that replace theirs.
    camera
        Arguments of :class:`Orthographic` (one) or :class:`Perspective` (five).
    work
        ``"mesh"``, ``"levels"``, ``"within"`` or ``"pixels"``.
    options
        Arguments of the function that ``work`` names.
    """

    mask: str
    normals: tuple[str, int]
    odd: tuple[tuple[int, tuple[float, float, float]], ...]
    camera: tuple[float, ...]
    work: str
    options: tuple[tuple[str, Any], ...]
    suffix: str

    def normal_map(self) -> nm.NormalMap:
        """Return the normal map."""
        mask = np.array([[pixel == "#" for pixel in row] for row in self.mask.split("/")])
        normals = FIELDS[self.normals[0]](mask.shape, np.random.default_rng(self.normals[1]))
        for pixel, normal in self.odd:
            normals.reshape(-1, 3)[pixel % mask.size] = normal
        camera = nm.Orthographic(*self.camera) if len(self.camera) == 1 else nm.Perspective(*self.camera)
        return nm.NormalMap(normals, mask, camera)


def _flat(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    return np.broadcast_to(rng.normal((0, 0, 2)), (*shape, 3)).copy()


def _waves(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    v, u = np.mgrid[: shape[0], : shape[1]]
    slopes = [rng.exponential(2) * np.sin(u * rng.normal() + v * rng.normal() + rng.normal()) for _ in "xy"]
    return np.dstack([*slopes, np.ones(shape)])


def _noise(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    return rng.normal((0, 0, rng.exponential(2)), size=(*shape, 3))


def _grazing(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    angles = rng.uniform(0, 2 * np.pi) + rng.choice([0, 1, np.pi], shape)
    return np.dstack([np.cos(angles), np.sin(angles), np.full(shape, 10.0 ** -rng.integers(0, 9))])


def _checkerboard(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    v, u = np.mgrid[: shape[0], : shape[1]]
    return np.where(((u + v) % 2)[..., None], rng.normal((0, 0, 1)), rng.normal((0, 0, 1)))


def _steps(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return normals of a plane with steep walls, which are depth discontinuities."""
    wall = rng.random(shape) < 0.1
    wall[:, rng.integers(shape[1])] = True
    return np.where(wall[..., None], [10.0 * rng.normal(), rng.normal(), 1], [0.1, 0, 1])


def _tiny(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    return _waves(shape, rng) * 10.0 ** rng.integers(-320, 300)


FIELDS = {
    "flat": _flat,
    "waves": _waves,
    "noise": _noise,
    "grazing": _grazing,
    "checkerboard": _checkerboard,
    "steps": _steps,
    "tiny": _tiny,
}


def mostly(usual: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any], each: int = 20) -> st.SearchStrategy[Any]:
    """Draw one of ``each`` values from ``wrong``: with more of them, few inputs would pass the checks of arguments."""
    return st.integers(1, each).flatmap(lambda number: wrong if number == each else usual)


@st.composite
def masks(draw: st.DrawFn) -> str:
    """Draw full, dense, sparse and thin masks, rings and checkerboards."""
    rows, columns = draw(st.tuples(st.integers(1, MAX_SIDE), st.integers(1, MAX_SIDE)))
    fill = draw(st.sampled_from(("full", "and", "or", "plain", "ring", "checkerboard")))
    count = -(-rows * columns // 8)
    mask = np.ones((rows, columns), np.bool_)
    if fill in ("and", "or", "plain"):
        first, second = (np.frombuffer(draw(st.binary(min_size=count, max_size=count)), np.uint8) for _ in range(2))
        bits = {"and": first & second, "or": first | second, "plain": first}[fill]
        mask = np.unpackbits(bits)[: rows * columns].reshape(rows, columns) > 0
    elif fill == "ring":
        mask[1:-1, 1:-1] = False
    elif fill == "checkerboard":
        mask = np.indices((rows, columns)).sum(axis=0) % 2 == 0
    return "/".join("".join(".#"[int(pixel)] for pixel in row) for row in mask)


def cameras() -> st.SearchStrategy[tuple[float, ...]]:
    size = st.floats(1e-6, 1e6)
    centre = st.floats(-20, 40)
    # From a very wide angle to nearly parallel rays.
    focal = st.floats(4, 1e5)
    usual = st.tuples(size) | st.tuples(focal, focal, centre, centre, st.sampled_from((0.0, 0.0, 1.5)))
    wrong = st.sampled_from((*WRONG, 12.0)) | st.floats()
    return mostly(usual, st.tuples(wrong) | st.tuples(*[wrong] * 5))


def _optional(options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def _stops() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries({"vertices": mostly(st.integers(3, 700), st.integers(-2, 12))}),
        st.fixed_dictionaries({"compression": mostly(st.floats(0.5, 0.999), st.floats())}),
        st.fixed_dictionaries({"threshold": mostly(st.floats(1e-9, 1e9), st.floats())}),
    )


def _decimation() -> st.SearchStrategy[dict[str, Any]]:
    return _optional(
        {
            "start": st.sampled_from(("pixels", "adaptive")),
            "rounds": st.integers(1, 5),
            "passes": st.integers(0, 4),
            "align": st.sampled_from(("last", "each")),
            "flips": st.booleans(),
            "moves": st.booleans(),
            "step": mostly(st.floats(0.01, 1), st.floats()),
            "regularisation": mostly(st.floats(0, 10), st.floats()),
            "in_plane": st.booleans(),
        }
    )


def _integration() -> st.SearchStrategy[dict[str, Any]]:
    point = st.tuples(st.floats(-2, 26), st.floats(-2, 26), st.floats(-100, 100) | st.floats(1e-3, 10))
    weight = mostly(st.floats(1e-6, 1e6), st.sampled_from(WRONG) | st.floats())
    return _optional(
        {
            "formulation": st.sampled_from(("facets", "facets", "vertices")),
            "discontinuities": st.booleans(),
            "noise": mostly(st.floats(0, 60), st.floats()),
            "refine": st.integers(0, 5),
            "prior": st.lists(point, min_size=1, max_size=4).map(tuple) | st.just("depth map"),
            "prior_weight": weight,
            "distance": _distances(),
            "parameters": st.sampled_from(("gradient", "tight")),
            "metric": st.sampled_from(("screen", "surface")),
        }
    )


def _distances() -> st.SearchStrategy[float]:
    return mostly(st.floats(1e-3, 1e3), st.sampled_from(WRONG) | st.floats())


def _work() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    meshing = st.tuples(_stops(), st.fixed_dictionaries({"decimation": _decimation()}), _integration())
    merged = meshing.map(lambda parts: {**parts[0], **parts[1], **parts[2]})
    levels = st.lists(st.integers(1, 400), max_size=4).map(lambda counts: tuple(sorted(counts, reverse=True)))
    bounds = {
        "max_angle": mostly(st.floats(0.1, 90), st.floats()),
        "max_error": mostly(st.floats(1e-3, 10), st.floats()),
    }
    within = st.sampled_from((*bounds, *bounds, "")).flatmap(
        lambda name: st.fixed_dictionaries({name: bounds[name]} if name else bounds)
    )
    return st.one_of(
        st.tuples(st.just("mesh"), merged),
        st.tuples(st.just("mesh"), merged),
        st.tuples(st.just("mesh"), merged.map(lambda options: {**options, "preset": "paper"})),
        st.tuples(st.just("levels"), st.fixed_dictionaries({"vertices": levels})),
        st.tuples(st.just("within"), within),
        st.tuples(st.just("pixels"), _optional({"discontinuities": st.booleans(), "distance": _distances()})),
    )


@cache
def chains() -> st.SearchStrategy[Chain]:
    anything = st.floats(width=32)
    odd = st.lists(st.tuples(st.integers(0, MAX_SIDE**2), st.tuples(*[anything] * 3)), max_size=4).map(tuple)
    field = st.tuples(st.sampled_from(sorted(FIELDS)), st.integers(0, 2**32))

    def chain(mask: str, normals: Any, odd: Any, camera: Any, work: tuple[str, dict], suffix: str) -> Chain:
        return Chain(mask, normals, odd, camera, work[0], tuple(work[1].items()), suffix)

    return st.builds(chain, masks(), field, odd, cameras(), _work(), st.sampled_from(SUFFIXES))


def reconstruct_anything(given: Chain) -> str:
    """Reconstruct, write and read surfaces: they must be valid, or an error must say what the user can do.

    Return the kind of work, or the beginning of the error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nm.NormalMeshWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            normal_map = given.normal_map()
            made = _reconstructed(given.work, normal_map, dict(given.options))
        except nm.NormalMeshError as error:
            message = str(error)
        else:
            for result in made:
                if isinstance(result, nm.Surface):
                    check_surface(result, normal_map)
                    check_file(result, normal_map, given.suffix)
                else:
                    assert np.array_equal(np.isfinite(result), normal_map.mask)
            return given.work
    assert "\n" not in message, message
    assert not any(words in message for words in INTERNAL), message
    return f"refused: {message[:44]}"


def _reconstructed(work: str, normal_map: nm.NormalMap, options: dict[str, Any]) -> list[Any]:
    """Return a list of surfaces, or of one depth map."""
    if options.get("prior") == "depth map":
        options["prior"] = np.where(normal_map.mask, np.linspace(1, 2, normal_map.shape[1]), np.nan)
    if work == "pixels":
        return [nm.integrate_pixels(normal_map, **options)]
    if work == "levels":
        return nm.reconstruct_levels(normal_map, **options)
    if work == "within":
        return [nm.reconstruct_within(normal_map, **options)]
    return [nm.reconstruct(normal_map, **options)]


def check_surface(surface: nm.Surface, normal_map: nm.NormalMap) -> None:
    """Check that a surface is finite, manifold and not inverted, and that it has all components of the mask."""
    assert np.isfinite(surface.vertices).all()
    check = surface.mesh.check()
    assert check.ok, str(check)
    to_viewer = surface.camera.towards_viewer * surface.camera.rays(*surface.screen[surface.faces].mean(axis=1).T)
    assert (np.sum(surface.face_normals * to_viewer, axis=1) >= 0).all(), "a face is turned away from the viewer"
    # Pixels that share only a corner are separate components, and cuts may add more.
    assert surface.components.max() + 1 >= ndimage.label(normal_map.mask)[1], "a component of the mask is lost"


def check_file(surface: nm.Surface, normal_map: nm.NormalMap, suffix: str) -> None:
    """Check that the written file can be read and has the same number of faces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"surface{suffix}"
        surface.save(path, normals=normal_map if suffix == ".glb" else None)
        assert len(TriangleModel.of(path).faces) == len(surface.faces)
