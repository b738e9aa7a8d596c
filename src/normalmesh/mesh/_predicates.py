"""Exact orientation of three points (Shewchuk 1997, expansions), unless products of coordinates underflow."""

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


@inner
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
    zero = (0.0, 0.0, 0.0, 0.0)
    expansion = zero, zero, zero, zero
    for first, second in factors:
        for x in first:
            for y in second:
                product, rest = _two_product(x, y)
                expansion = _grown(_grown(expansion, rest), product)
    for four in expansion[::-1]:
        for part in four[::-1]:
            if part != 0.0:
                return 1 if part > 0.0 else -1
    return 0


@inner
def _grown(expansion, term):
    """Return the sum of a term and an expansion of sixteen parts, sorted by magnitude; this keeps it exact and sorted.

    The first part must be zero; it makes room for the new last one.
    """
    a, b, c, d = expansion
    term, a = _grown_part(a, term)
    term, b = _grown_part(b, term)
    term, c = _grown_part(c, term)
    term, d = _grown_part(d, term)
    return (
        (a[1], a[2], a[3], b[0]),
        (b[1], b[2], b[3], c[0]),
        (c[1], c[2], c[3], d[0]),
        (d[1], d[2], d[3], term),
    )


@inner
def _grown_part(parts, term):
    """Add a term to four parts of an expansion; return what is left for the next ones, and the four."""
    term, a = _two_sum(term, parts[0])
    term, b = _two_sum(term, parts[1])
    term, c = _two_sum(term, parts[2])
    term, d = _two_sum(term, parts[3])
    return term, (a, b, c, d)


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
