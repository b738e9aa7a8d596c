"""Conventions: names, axes, and the way into the project's frame and back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normalmesh import Convention, NormalMeshError

ALL_AXES = [
    "".join(sign + axis for sign, axis in zip(signs, order, strict=True))
    for order in itertools.permutations("xyz")
    for signs in itertools.product("+-", repeat=3)
]


def test_there_are_forty_eight():
    assert len(set(ALL_AXES)) == 48


@pytest.mark.parametrize("axes", ALL_AXES)
def test_round_trip(axes):
    convention = Convention.parse(axes)
    normals = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    channels = convention.from_project(normals)
    assert channels.dtype == normals.dtype
    np.testing.assert_array_equal(convention.to_project(channels), normals)
    np.testing.assert_array_equal(convention.from_project(convention.to_project(normals)), normals)


@pytest.mark.parametrize("axes", ALL_AXES)
def test_channels_hold_what_the_text_says(axes):
    normal = np.array([0.1, 0.2, 0.3])
    components = dict(zip("xyz", normal, strict=True))
    expected = [float(f"{sign}1") * components[axis] for sign, axis in zip(axes[0::2], axes[1::2], strict=True)]
    np.testing.assert_array_equal(Convention(axes).from_project(normal), expected)


@pytest.mark.parametrize(
    ("name", "channels"), [("opengl", (1, 2, 3)), ("directx", (1, -2, 3)), ("opencv", (1, -2, -3))]
)
def test_names(name, channels):
    convention = Convention.parse(name)
    assert convention.name == name
    np.testing.assert_array_equal(convention.to_project(np.array(channels, float)), (1, 2, 3))


def test_parsing():
    convention = Convention.parse(" DirectX ")
    assert convention == Convention.parse("+X-Y+Z") == Convention("+x-y+z")
    assert Convention.parse(convention) is convention
    assert Convention.parse("-y+z+x").name == "-y+z+x"
    assert Convention.parse("-y+z+x").order == (1, 2, 0)
    assert Convention.parse("-y+z+x").signs == (-1, 1, 1)


@pytest.mark.parametrize("text", ["", "vulkan", "xyz", "+x+y", "+x+x+z", "+x+y+z+x", "auto"])
def test_unknown(text):
    with pytest.raises(
        NormalMeshError, match=f"unknown convention '{text}'; use opengl, directx, opencv".replace("+", r"\+")
    ):
        Convention.parse(text)
