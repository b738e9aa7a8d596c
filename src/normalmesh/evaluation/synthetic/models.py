"""Closed triangle models given by formulas, which the renderer knows by name."""

from __future__ import annotations

import numpy as np
import trimesh

from normalmesh.array_types import Float, Int


def stone(subdivisions: int = 6) -> trimesh.Trimesh:
    """Return a round stone of 20·4ⁿ faces with smooth bumps and sharp ridges, without self-occlusion from the front."""
    sphere = trimesh.creation.icosphere(subdivisions=subdivisions)
    directions = np.asarray(sphere.vertices, np.float64)
    rng = np.random.default_rng(7)
    radius = np.ones(len(directions))
    for frequency, height in ((3.0, 0.10), (6.0, 0.06), (11.0, 0.03)):
        axes = _unit(rng.normal(size=(3, 3)))
        phases = rng.uniform(0, 2 * np.pi, 3)
        radius += height * np.sin(frequency * directions @ axes.T + phases).mean(axis=1)
    for axis in _unit(rng.normal(size=(4, 3))):
        # The distance to a great circle gives a crest that is sharp on the circle and fades to both sides.
        radius += 0.035 * np.exp(-np.abs(directions @ axis) / 0.12)
    return trimesh.Trimesh(directions * [1.1, 0.9, 0.8] * radius[:, None], sphere.faces, process=False)


def knot(along: int = 1280, around: int = 128) -> trimesh.Trimesh:
    """Return a trefoil knot of a round tube, which occludes itself three times."""
    t = np.linspace(0, 2 * np.pi, along, endpoint=False)
    centre = np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    velocity = np.stack([np.cos(t) + 4 * np.cos(2 * t), -np.sin(t) + 4 * np.sin(2 * t), -3 * np.cos(3 * t)], axis=1)
    tangent = _unit(velocity)
    # The knot is never parallel to z, so that the frame defined by z is smooth and closed.
    side = _unit(np.cross(tangent, [0.0, 0.0, 1.0]))
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)[:, None]
    rings = np.cos(angle) * side[:, None] + np.sin(angle) * np.cross(tangent, side)[:, None]
    points = centre[:, None] + 0.55 * rings
    return trimesh.Trimesh(points.reshape(-1, 3), _torus_faces(along, around), process=False)


def vase(along: int = 256, around: int = 512) -> trimesh.Trimesh:
    """Return a fluted vase that leans towards the viewer, with a visible inside that the lip occludes in part.

    There are ``along`` vertices along the profile, from the foot over the lip to the inner bottom.
    """
    # The profile runs from the foot (t = 0) up to the lip (t = ½) and down inside (t = 1); fans close both ends.
    t = np.linspace(0, 1, along)
    up = np.where(t < 0.5, t, 1 - t) * 2
    wall = 0.62 + 0.3 * np.sin(2.6 * np.pi * up**0.9 + 0.4) * (1 - 0.35 * up)
    inside = t > 0.5
    radius = wall - 0.06 * np.clip((t - 0.5) / 0.02, 0, 1)
    height = 2.4 * up - 1.2 + np.where(inside, 0.08 * np.clip((t - 0.5) / 0.5, 0, 1), 0)
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)
    flutes = 1 + 0.02 * np.cos(16 * angle) * np.where(inside, 0, np.sin(np.pi * up) ** 2)[:, None]
    rings = np.stack(
        [
            radius[:, None] * flutes * np.cos(angle),
            np.broadcast_to(height[:, None], (along, around)),
            -radius[:, None] * flutes * np.sin(angle),
        ],
        axis=-1,
    )
    ends = [[0, height[0], 0], [0, height[-1], 0]]
    vertices = np.concatenate([rings.reshape(-1, 3), ends])
    ring, following = np.arange(around), (np.arange(around) + 1) % around
    foot = np.stack([np.full(around, along * around), following, ring], axis=1)
    bottom = np.stack([np.full(around, along * around + 1), ring, following], axis=1)
    bottom[:, 1:] += (along - 1) * around
    faces = np.concatenate([_torus_faces(along, around)[: -2 * around], foot, bottom])
    model = trimesh.Trimesh(vertices, faces, process=False)
    tilt = trimesh.transformations.rotation_matrix(np.radians(35), [1, 0, 0])
    model.apply_transform(tilt)
    return model


def _unit(vectors: Float) -> Float:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _torus_faces(along: int, around: int) -> Int:
    """Return the faces (2·along·around, 3) of a torus grid; the last 2·around connect the last ring to the first."""
    ring, place = np.divmod(np.arange(along * around), around)
    next_ring, next_place = (ring + 1) % along, (place + 1) % around
    a, b = ring * around + place, ring * around + next_place
    c, d = next_ring * around + next_place, next_ring * around + place
    return np.stack([a, b, c, a, c, d], axis=1).reshape(-1, 3)
