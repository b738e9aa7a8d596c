"""Cases with true depth that are rendered here: models that hide parts of themselves, none of them a shared case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import trimesh
from numpy.typing import NDArray

from benchmarks.cases import Case
from normalmesh.evaluation.rendering.rendering import render_normal_map
from normalmesh.evaluation.synthetic.models import knot, vase

Float = NDArray[np.float64]

#: Side of the images, in pixels.
SIZE = 384


def grid_faces(along: int, around: int) -> NDArray[np.int64]:
    """Return the faces of a grid of vertices (along, around)."""
    first = (np.arange(along - 1)[:, None] * around + np.arange(around - 1)).ravel()
    return np.concatenate([first[:, None] + np.array(each) for each in ([0, around, 1], [1, around, around + 1])])


def blocks() -> trimesh.Trimesh:
    """Return three blocks on top of each other, and a cylinder that leans against them."""
    parts = []
    for extents, centre, turn in (
        ((2.0, 1.0, 1.4), (0.0, -1.0, 0.0), 20),
        ((1.3, 0.8, 1.3), (0.2, -0.1, 0.1), -35),
        ((0.8, 0.8, 0.8), (0.0, 0.7, 0.0), 10),
    ):
        matrix = trimesh.transformations.rotation_matrix(np.radians(turn), [0, 1, 0])
        matrix[:3, 3] = centre
        parts.append(trimesh.creation.box(extents, matrix))
    matrix = trimesh.transformations.rotation_matrix(np.radians(78), [1, 0.3, 0])
    matrix[:3, 3] = (0.7, -0.2, 1.1)
    parts.append(trimesh.creation.cylinder(0.35, 2.6, sections=512, transform=matrix))
    return trimesh.util.concatenate(parts)


def bust() -> trimesh.Trimesh:
    """Return a head on shoulders with ears, a nose, a brim and arms, of round parts that reach into each other."""
    parts = []
    for centre, radii in (
        ((0.0, 0.9, 0.0), (0.62, 0.8, 0.7)),
        ((0.0, 0.85, 0.68), (0.13, 0.2, 0.2)),
        ((0.0, 1.25, 0.1), (0.95, 0.12, 0.95)),
        ((-0.66, 0.85, -0.05), (0.12, 0.26, 0.2)),
        ((0.66, 0.85, -0.05), (0.12, 0.26, 0.2)),
        ((0.0, 0.1, 0.0), (0.3, 0.6, 0.3)),
        ((0.0, -0.9, -0.1), (1.2, 0.85, 0.55)),
        ((-0.75, -1.1, 0.55), (0.28, 0.75, 0.28)),
        ((0.5, -1.0, 0.65), (0.85, 0.24, 0.26)),
    ):
        sphere = trimesh.creation.icosphere(subdivisions=5)
        parts.append(trimesh.Trimesh(sphere.vertices * radii + centre, sphere.faces, process=False))
    return trimesh.util.concatenate(parts)


def cloth() -> trimesh.Trimesh:
    """Return a hanging cloth whose folds lie on each other and open downwards."""
    count = 700
    along, down = np.meshgrid(np.linspace(0, 1, count), np.linspace(0, 1, count), indexing="ij")
    angle = 2 * np.pi * 5.5 * along + 0.8 * np.sin(3 * down)
    opening = 0.15 + down
    x = 3 * along + 0.16 * opening * np.sin(2 * angle)
    z = 0.32 * opening * np.sin(angle) + 0.15 * np.cos(2.2 * along + down)
    points = np.stack([x, -2.6 * down - 0.2 * np.sin(np.pi * along), z], axis=-1)
    return trimesh.Trimesh(points.reshape(-1, 3), grid_faces(count, count), process=False)


def gear() -> trimesh.Trimesh:
    """Return a gear with sixteen teeth and a hub, seen from the side above."""
    angle = np.linspace(0, 2 * np.pi, 1025)
    teeth = 1.0 + 0.13 * np.tanh(6 * np.sin(16 * angle))
    profile = [(0.0, 0.55), (0.22, 0.55), (0.3, 0.5), (0.3, 0.14), (None, 0.2), (None, -0.2), (0.0, -0.2)]
    rings = [
        np.stack([r * np.cos(angle), r * np.sin(angle), np.full_like(angle, z)], axis=-1)
        for radius, z in profile
        for r in [teeth if radius is None else np.full_like(angle, radius)]
    ]
    return trimesh.Trimesh(np.concatenate(rings), grid_faces(len(rings), len(angle))[:, ::-1], process=False)


#: Model, turn in degrees about x and y, camera, and whether it is round.
MODELS: dict[str, tuple[Callable[[], trimesh.Trimesh], float, float, str, bool]] = {
    "made_knot": (knot, 25, 20, "orthographic", True),
    "made_knot_near": (knot, -35, 10, "perspective", True),
    "made_vase": (vase, 10, 0, "perspective", True),
    "made_blocks": (blocks, 25, 25, "orthographic", False),
    "made_blocks_near": (blocks, 35, -20, "perspective", False),
    "made_bust": (bust, 5, 20, "orthographic", True),
    "made_cloth": (cloth, 0, 15, "orthographic", True),
    "made_cloth_near": (cloth, 15, -25, "perspective", True),
    "made_gear": (gear, -50, 15, "orthographic", False),
}


def made_case(name: str) -> Case:
    """Render one of :data:`MODELS`."""
    model, tilt, turn, camera, smooth = MODELS[name]
    about_x, about_y = (
        trimesh.transformations.rotation_matrix(np.radians(each), axis)[:3, :3]
        for each, axis in ((tilt, [1, 0, 0]), (turn, [0, 1, 0]))
    )
    found = render_normal_map(model(), SIZE, camera, smooth=smooth, pose=about_x @ about_y, name=name)
    return Case(**vars(replace(found, name=name)))
