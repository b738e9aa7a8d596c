"""Exact orientation of three points (Shewchuk 1997, expansions), unless products of coordinates underflow."""

import numpy as np

from normalmesh.runtime.kernels import inner


@inner
def orientation(ax, ay, bx, by, cx, cy):
    """Return the sign (+1, 0, −1) of the area of the triangle abc, +1 if it is counter-clockwise (with v down)."""
    left = (ay - cy) * (bx - cx)
    right = (ax - cx) * (by - cy)
    area = left - right
    # A bound on the rounding errors of the line above; almost every call ends here.
    if abs(area) > 3.4e-16 * (abs(left) + abs(right)):
        return 1 if area > 0.0 else -1
    return _exact_orientation(ax, ay, bx, by, cx, cy)


@inner(allocates=True)
def _exact_orientation(ax, ay, bx, by, cx, cy):
    """Return the same sign in exact arithmetic."""
    factors = (
        (_two_sum(ay, -cy), _two_sum(bx, -cx)),
        (_two_sum(-ax, cx), _two_sum(by, -cy)),
    )
    if factors[0][0][1] == factors[0][1][1] == factors[1][0][1] == factors[1][1][1] == 0.0:
        # Exact differences, as on a pixel grid: two exact products to compare.
        left, left_rest = _two_product(factors[0][0][0], factors[0][1][0])
        right, right_rest = _two_product(factors[1][0][0], factors[1][1][0])
        total = left + right if left != -right else left_rest + right_rest
        return 0 if total == 0.0 else (1 if total > 0.0 else -1)
    # In general the area is a sum of eight products, each of them exactly two doubles.
    expansion = np.zeros(16)
    size = 0
    for first, second in factors:
        for x in first:
            for y in second:
                product, rest = _two_product(x, y)
                for term in (rest, product):
                    # Adding a term to an expansion keeps it exact and sorted by magnitude.
                    for k in range(size):
                        term, expansion[k] = _two_sum(term, expansion[k])
                    expansion[size] = term
                    size += 1
    for k in range(size - 1, -1, -1):
        if expansion[k] != 0.0:
            return 1 if expansion[k] > 0.0 else -1
    return 0


@inner
def _two_sum(a, b):
    """Return a + b as a rounded sum and its exact error."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


@inner
def _two_product(a, b):
    """Return a · b as a rounded product and its exact error."""
    product = a * b
    a_high = 134217729.0 * a - (134217729.0 * a - a)
    b_high = 134217729.0 * b - (134217729.0 * b - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
