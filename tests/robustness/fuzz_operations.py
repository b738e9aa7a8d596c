"""Fuzz what is done to maps and surfaces: cutting, turning, filling and saving them, solids, repeating surfaces."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from fuzz_chain import FIELDS, Chain, cameras, masks, mostly
from hypothesis import strategies as st

import normalmesh as nm
from normalmesh.mesh.cut_mesh import slit_heights
from normalmesh.mesh.relief import measured_surface, normals_of_relief

#: Parts of messages about internal values, which the user cannot correct.
INTERNAL = ("the matrix", "depths of the vertices must be positive")
#: Largest angle in degrees between a normal and the one that is read again, by the bits of a channel.
ROUNDING = {8: 0.6, 16: 0.01, 32: 1e-4}


@dataclass(frozen=True)
class Operation:
    """A compact description of a map, as :class:`Chain` has it, and of what is done to it."""

    mask: str
    normals: tuple[str, int]
    camera: tuple[float, ...]
    name: str
    arguments: tuple[tuple[str, Any], ...]

    def normal_map(self) -> nm.NormalMap:
        """Return the map."""
        return Chain(self.mask, self.normals, (), self.camera, "", (), "").normal_map()


def _crop(normal_map: nm.NormalMap, rectangle: Any, margin: Any) -> None:
    part = normal_map.crop(rectangle, margin=margin)
    assert 0 < part.foreground <= normal_map.foreground
    assert rectangle is not None or part.foreground == normal_map.foreground
    _check_map(part)


def _resize(normal_map: nm.NormalMap, size: Any) -> None:
    _check_map(normal_map.resize(size))


def _rotate(normal_map: nm.NormalMap, degrees: int) -> None:
    turned = normal_map.rotated(degrees)
    _check_map(turned)
    back = turned.rotated(-degrees)
    assert np.array_equal(back.normals, normal_map.normals)
    assert np.array_equal(back.mask, normal_map.mask)
    np.testing.assert_allclose(back.camera.frame, normal_map.camera.frame, rtol=1e-12, atol=1e-9)


def _fill(normal_map: nm.NormalMap, everything: bool, largest: Any) -> None:
    filled = normal_map.filled(np.ones(normal_map.shape, np.bool_) if everything else None, largest=largest)
    _check_map(filled)
    assert (filled.mask >= normal_map.mask).all()
    assert np.array_equal(filled.normals[normal_map.mask], normal_map.normals[normal_map.mask])


def _save(normal_map: nm.NormalMap, suffix: str, bits: int | None, convention: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"map{suffix}"
        normal_map.save(path, bits=bits, convention=convention)
        read = nm.read_normal_map(path, mask=normal_map.mask, convention=convention)
    precision = ROUNDING[bits or (16 if suffix == ".png" else 32)]
    if suffix == ".npz":
        np.testing.assert_allclose(read.camera.frame, normal_map.camera.frame, rtol=1e-12, atol=1e-12)
    both = read.mask & normal_map.mask
    # Normals at right angles to the view may be clamped, which depends on the camera.
    inner = both & (normal_map.normals[..., 2] > 0.15)
    if isinstance(normal_map.camera, nm.Orthographic):
        assert (both == normal_map.mask).all()
        across = np.linalg.norm(np.cross(read.normals, normal_map.normals)[inner], axis=1)
        assert not inner.any() or np.degrees(across.max()) < precision


def _heights(normal_map: nm.NormalMap, seed: int) -> None:
    random = np.random.default_rng(seed)
    heights = random.normal(5, 10.0 ** random.integers(-9, 9), normal_map.shape)
    heights[~normal_map.mask] = random.choice([np.nan, np.inf, 0])
    _check_map(nm.from_heights(heights, camera=normal_map.camera))


def _gradients(normal_map: nm.NormalMap, seed: int, convention: str) -> None:
    random = np.random.default_rng(seed)
    p, q = random.normal(size=(2, *normal_map.shape)) * 10.0 ** random.integers(-320, 308)
    p[~normal_map.mask] = np.nan
    _check_map(nm.from_gradients(p, q, camera=normal_map.camera, convention=convention))


def _network(normal_map: nm.NormalMap, seed: int, given: tuple[str, ...]) -> None:
    random = np.random.default_rng(seed)
    depth = np.where(random.random(normal_map.shape) < 0.9, random.normal(5, random.choice([0, 1, 9])), np.nan)
    matrix = normal_map.camera.matrix()
    matrix = np.diag([1.0, 1.0, 1.0]) if matrix is None else matrix
    arrays = {
        "normal": normal_map.normals * [1, -1, -1],
        "mask": normal_map.mask,
        "depth": depth * random.uniform(0.9, 1.1, depth.shape),
        "points": np.dstack([depth, depth, depth]),
        "intrinsics": matrix,
    }
    found = nm.from_network({name: arrays[name] for name in given})
    _check_map(found.normal_map)
    if found.depth is not None:
        prior = found.prior(shift=bool(random.integers(2)))
        assert np.isfinite([prior.scale, prior.shift]).all()
        _check_surface(nm.reconstruct(found.normal_map, compression=0.9, prior=prior))


def _solid(
    normal_map: nm.NormalMap, thickness: Any, width: Any, strength: Any, flatten: str | None, jumps: Any
) -> None:
    surface = nm.reconstruct(normal_map, compression=0.9, discontinuities=jumps)
    if flatten is not None:
        flat = surface.flattened(flatten)
        scale = np.abs(surface.vertices).max()
        np.testing.assert_allclose(flat.before_flattening.vertices, surface.vertices, rtol=1e-9, atol=1e-9 * scale)
        surface = flat
    if strength is not None:
        surface = surface.exaggerated(strength)
    _check_surface(surface)
    solid = surface.solid(thickness, width)
    closed = trimesh.Trimesh(solid.vertices, solid.faces, process=False, validate=False)
    assert closed.is_watertight
    assert closed.is_winding_consistent
    assert solid.volume > 0
    assert solid.vertices[:, 2].min() == 0


def _relief(normal_map: nm.NormalMap, steps: tuple[Any, ...], tileable: Any, jumps: Any, suffix: str) -> None:
    before = nm.reconstruct(normal_map, compression=0.9, tileable=tileable, discontinuities=jumps)
    surface = before
    for step in steps:
        surface = surface.flattened(step) if isinstance(step, str) else surface.exaggerated(step)
    strength = float(np.prod([step for step in steps if not isinstance(step, str)]))
    np.testing.assert_allclose(surface.strength, strength, rtol=1e-12)
    scale = np.abs(before.vertices).max()
    np.testing.assert_allclose(measured_surface(surface).vertices, before.vertices, rtol=1e-6, atol=1e-6 * scale)
    deviations = before.uncertainty()
    np.testing.assert_allclose(surface.uncertainty(), abs(strength) * deviations, rtol=1e-3, atol=1e-6 * scale)
    if surface.discontinuities is not None:
        screen, heights = slit_heights(surface.mesh, surface.camera.depth(surface.vertices))
        np.testing.assert_array_equal(surface.discontinuities.screen, screen)
        np.testing.assert_allclose(surface.discontinuities.jumps, heights, atol=1e-9 * scale * (1 + abs(strength)))
    _check_map(normals_of_relief(surface, normal_map))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"surface{suffix}"
        if suffix in (".png", ".tif", ".npy"):
            surface.save_depth(path)
            heights, found = surface.depth_map(), nm.read_depth_map(path)
            assert np.array_equal(np.isfinite(heights), np.isfinite(found))
            np.testing.assert_allclose(found, heights, atol=1e-4 * np.ptp(surface.vertices, axis=0).max())
        else:
            surface.save(path, normals=normal_map if suffix == ".glb" else None)
            back = nm.Surface.from_mesh(path, surface.camera, surface.shape)
            far = np.abs(surface.vertices).max()
            np.testing.assert_allclose(back.vertices, surface.vertices, rtol=1e-5, atol=1e-5 * far)
        nm.write_report(Path(folder) / "report.html", surface, normal_map)


def _repeat(normal_map: nm.NormalMap, tileable: Any, compression: float, jumps: Any) -> None:
    surface = nm.reconstruct(normal_map, compression=compression, tileable=tileable, discontinuities=jumps)
    _check_surface(surface)
    if surface.repeats is None:
        return
    for pair in surface.repeats.side_pairs(normal_map.mask_window):
        near, far = (_side(surface, pair, at) for at in (0, pair.far))
        assert np.array_equal(near, far), "opposite sides differ"
    pixels = nm.integrate_pixels(normal_map, tileable=tileable)
    assert np.array_equal(np.isfinite(pixels), normal_map.mask)


def _side(surface: nm.Surface, pair: Any, at: int) -> np.ndarray:
    """Return the heights and normals (K, 5) along a side, in the order of their places."""
    along = surface.screen[:, 1 - pair.axis]
    there = (surface.screen[:, pair.axis] == at) & (along >= pair.first) & (along <= pair.last)
    rows = np.column_stack([along, surface.vertices[:, 2], surface.vertex_normals])[there]
    return rows[np.lexsort(rows.T[::-1])]


def _uncertain(normal_map: nm.NormalMap, noise: Any, tileable: Any, places: tuple[tuple[float, float], ...]) -> None:
    surface = nm.reconstruct(normal_map, compression=0.9, tileable=tileable)
    deviations = surface.uncertainty(noise)
    assert deviations.shape == (len(surface.vertices),)
    assert (deviations >= 0).all()
    assert np.isfinite(deviations).all()
    difference = surface.height_difference(*places, noise=noise)
    assert difference.standard_deviation >= 0
    assert np.isfinite(difference.value)
    assert str(difference)


def _libraries(normal_map: nm.NormalMap, library: str, shape: Any) -> None:
    surface = nm.reconstruct(normal_map, compression=0.9)
    mesh = getattr(surface, f"to_{library}")()
    back = nm.Surface.from_mesh(mesh, surface.camera, shape)
    np.testing.assert_allclose(back.vertices, surface.vertices, rtol=1e-6, atol=1e-6 * np.abs(surface.vertices).max())
    assert np.array_equal(back.faces, surface.faces)
    size = max(surface.shape)
    np.testing.assert_allclose(back.screen, surface.screen, atol=1e-3 * size)


def _display(normal_map: nm.NormalMap) -> None:
    assert normal_map._repr_html_() is not None
    assert nm.reconstruct(normal_map)._repr_html_() is not None


OPERATIONS: dict[str, Callable[..., None]] = {
    "crop": _crop,
    "resize": _resize,
    "rotate": _rotate,
    "fill": _fill,
    "save": _save,
    "heights": _heights,
    "gradients": _gradients,
    "network": _network,
    "solid": _solid,
    "relief": _relief,
    "repeat": _repeat,
    "uncertain": _uncertain,
    "libraries": _libraries,
    "display": _display,
}


def _check_map(normal_map: nm.NormalMap) -> None:
    """Check what every map has: unit normals in its mask, zero outside, facing the viewer."""
    normals, mask = normal_map.normals, normal_map.mask
    assert mask.any()
    assert normals.shape == (*mask.shape, 3)
    np.testing.assert_allclose(np.linalg.norm(normals[mask].astype(float), axis=1), 1, atol=1e-4)
    assert not normals[~mask].any()
    v, u = np.nonzero(mask)
    to_viewer = normal_map.camera.towards_viewer * normal_map.camera.rays(u + 0.5, v + 0.5)
    assert ((normals[mask] * to_viewer).sum(axis=1) > 0).all()


def _check_surface(surface: nm.Surface) -> None:
    assert np.isfinite(surface.vertices).all()
    assert surface.mesh.check().ok


def _arguments() -> dict[str, st.SearchStrategy[dict[str, Any]]]:
    """Return the arguments of each operation."""
    number, seed = st.integers(-2, 30), st.integers(0, 2**32)
    choose, build = st.sampled_from, st.fixed_dictionaries
    slices = st.tuples(*[st.builds(slice, st.none() | number, st.none() | number)] * 2)
    lengths = choose((1, 0.5, "3mm", "2px", "1e-3px", "0mm", "-1px", "mm", "1 furlong", float("nan"), 1e30, "1e-300px"))
    jumps = choose((True, False, "auto"))
    sides = choose((False, True, "x", "y", "xy", "z"))
    formats = choose(
        ((".png", None), (".png", 8), (".tif", None), (".tif", 16), (".tif", 8), (".npy", None), (".npz", None))
    )
    conventions = choose(("opengl", "directx", "opencv", "+y+x+z"))
    arrays = st.sets(choose(("mask", "depth", "points", "intrinsics")))
    return {
        "crop": build({"rectangle": st.none() | slices | st.tuples(*[number] * 4), "margin": number}),
        "resize": build({"size": st.floats(0.05, 4) | st.tuples(number, number) | st.floats()}),
        "rotate": build({"degrees": mostly(choose((0, 90, 180, 270, -90, 360, 450)), choose((45, "90")))}),
        "fill": build({"everything": st.booleans(), "largest": st.none() | number}),
        "save": st.builds(
            lambda chosen, name: {"suffix": chosen[0], "bits": chosen[1], "convention": name}, formats, conventions
        ),
        "heights": build({"seed": seed}),
        "gradients": build({"seed": seed, "convention": conventions}),
        "network": build({"seed": seed, "given": arrays.map(lambda names: ("normal", *sorted(names)))}),
        "solid": build(
            {
                "thickness": lengths,
                "width": st.none() | lengths,
                "strength": st.none() | st.floats(-5, 5) | st.floats(),
                "flatten": choose((None, "plane", "quadratic")),
                "jumps": jumps,
            }
        ),
        "relief": build(
            {
                "steps": st.lists(choose((2.0, -0.5, 1e-3, 30.0, "plane", "quadratic")), max_size=3).map(tuple),
                "tileable": mostly(st.just(False), sides, 4),
                "jumps": jumps,
                "suffix": choose((".png", ".tif", ".npy", ".glb", ".ply", ".obj")),
            }
        ),
        "repeat": build({"tileable": sides, "compression": st.floats(0.5, 0.99), "jumps": jumps}),
        "uncertain": build(
            {
                "noise": st.none() | st.floats(0, 30) | st.floats(),
                "tileable": sides,
                "places": st.tuples(*[number | st.tuples(st.floats(-1, 25), st.floats(-1, 25))] * 2),
            }
        ),
        "libraries": build(
            {"library": choose(("trimesh", "pyvista", "meshio")), "shape": st.none() | st.tuples(number, number)}
        ),
        "display": build({}),
    }


@cache
def operations() -> st.SearchStrategy[Operation]:
    field = st.tuples(st.sampled_from(sorted(FIELDS)), st.integers(0, 2**32))
    arguments = _arguments()

    def with_arguments(name: str) -> st.SearchStrategy[Operation]:
        items = arguments[name].map(lambda given: tuple(given.items()))
        return st.builds(Operation, masks(), field, cameras(), st.just(name), items)

    return st.sampled_from(sorted(OPERATIONS)).flatmap(with_arguments)


def operate(given: Operation) -> str:
    """Carry out an operation: its result must have the properties that it promises, or an error must say why not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", nm.NormalMeshWarning)
        try:
            normal_map = given.normal_map()
            OPERATIONS[given.name](normal_map, **dict(given.arguments))
        except nm.NormalMeshError as error:
            message = str(error)
        else:
            return given.name
    assert "\n" not in message, message
    assert not any(words in message for words in INTERNAL), message
    return f"refused: {message[:44]}"
