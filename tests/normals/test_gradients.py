"""Normal maps of gradients."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, from_gradients, integrate_pixels

#: x right, y up, in px, and the heights of a saddle that has all second derivatives.
Y, X = np.mgrid[10:-11:-1, -12:13].astype(float)
HEIGHTS = 0.02 * X**2 - 0.015 * Y**2 + 0.01 * X * Y + 0.1 * Y
P, Q = 0.04 * X + 0.01 * Y, -0.03 * Y + 0.01 * X + 0.1


@pytest.mark.parametrize(
    ("convention", "p", "q"),
    [("opengl", P, Q), ("directx", P, -Q), ("opencv", -P, Q), ("-x+y+z", -P, Q), ("+y+x+z", Q, P)],
)
def test_heights_come_back_in_every_convention(convention, p, q):
    """Axes of p and q: x right or left, y up or down, z towards the viewer or away, in any order of x and y."""
    found = integrate_pixels(from_gradients(p, q, convention=convention))
    np.testing.assert_allclose(found - found.mean(), HEIGHTS - HEIGHTS.mean(), atol=1e-4)


def test_numpy_gradient():
    q, p = np.gradient(HEIGHTS)
    inner = np.s_[1:-1, 1:-1]
    normals = from_gradients(p, q, convention="directx").normals[inner]
    np.testing.assert_allclose(normals, from_gradients(P, Q).normals[inner], atol=1e-5)


def test_unknown_slopes_are_background():
    p = P.copy()
    p[:, :8] = np.nan
    assert not from_gradients(p, Q).mask[:, :8].any()
    with pytest.warns(UserWarning, match="neighbours"):
        assert from_gradients(p, Q, mask=np.ones(P.shape, bool)).mask[:, 4:].all()


@pytest.mark.parametrize(
    ("p", "q", "options", "message"),
    [
        (P, Q[:3], {}, "21×25 and 3×25"),
        (P.astype(int), Q, {}, "p must be an array of floats"),
        (P, Q, {"convention": "+x+z+y"}, "third axis must be z"),
    ],
)
def test_refused(p, q, options, message):
    with pytest.raises(NormalMeshError, match=message):
        from_gradients(p, q, **options)
