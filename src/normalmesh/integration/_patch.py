"""Kernels that gather the pixels of a patch of faces, and evaluate triangulations of the patch by them.

The outline of a patch is the same before and after its inner vertex moves or its inner edge is flipped, and so are its
pixels. They are stored in a table (ROWS, capacity) float32, one column for each pixel, so that simple loops over its
rows can be vectorised. Positions are relative to an origin near the patch, where float32 is exact enough.
"""

import math

import numpy as np

from normalmesh.integration._face_means import MIN_FACING
from normalmesh.mesh._closed_mesh import vertex_at
from normalmesh.mesh._raster import by_height, first_row
from normalmesh.normals._camera import RAY_U, RAY_V, TANGENT_U, frame_vector, ray, space_point
from normalmesh.runtime.kernels import inner

#: Rows of the table: position; unit normal; 1, or 0 for a column that pads the last vector; slopes ∂_u z, ∂_v z and
#: ⟨r,n⟩⁻² of the pixel; the sector that it lies in; and the squared length of the chord between its normal and that of
#: the sector's face.
U, V, X, Y, Z, SHARE, SLOPE_U, SLOPE_V, INVERSE, SECTOR, CHORD = range(11)
ROWS = 11
#: Columns that the widest loops process at once. The number of columns is padded to a multiple of it, because the
#: scalar remainder of a loop would take as long as its vectorised part.
VECTOR = 32
#: Sums may be taken in any order, which is fixed when the kernel is compiled.
FAST = {"reassoc", "contract", "nsz", "arcp"}

#: A change must lower the summed angle by this share of it,
MIN_GAIN = 1e-3
#: by this share of the contribution of noise,
NOISE_GAIN = 0.25
#: and by this many radians for each px², the resolution of float32.
MIN_ANGLE = 1e-6
#: Moves and flips make no face smaller than this (px²): the pixels do not determine such faces.
MIN_AREA = 0.3
#: Area (px²) from which on every second pixel is used to move a vertex: the result is nearly the same, in less time.
MANY_PIXELS = 256.0
#: Number of faces or vertices that share one table of pixels.
CHUNK = 64

ZERO, ONE = np.float32(0.0), np.float32(1.0)
FACING = np.float32(MIN_FACING)
#: 2 arcsin(c/2) = c · P(c²), to 7e-6 up to a right angle.
P0, P1, P2, P3, P4 = (np.float32(p) for p in (1.0000045, 0.04155474, 0.00511615, 0.00015248, 0.00036966))


@inner
def max_pixels(a, b, c):
    """Return an upper bound of the pixels of a face: a convex figure holds at most area + half its perimeter + 1."""
    bu, bv = b[0] - a[0], b[1] - a[1]
    cu, cv = c[0] - a[0], c[1] - a[1]
    perimeter = math.hypot(bu, bv) + math.hypot(cu, cv) + math.hypot(bu - cu, bv - cv)
    return int(0.5 * abs(bv * cu - bu * cv) + 0.5 * perimeter) + 2


@inner(allocates=True)
def reserve(pixels, count):
    """Return the table if it can hold ``count`` pixels, else a new and larger one."""
    return pixels if pixels.shape[1] >= count + VECTOR else np.empty((ROWS, count + count // 2 + VECTOR), np.float32)


@inner(error_model="numpy")
def gather_face(a, b, c, origin, stride, normals, pixels, count):
    """Append the foreground pixels of the face abc to the first ``count`` columns of the table; return the new count.

    A ``stride`` of 2 takes half of them, as on a chessboard; 1 takes all. Pixel centres within rounding errors of an
    edge go to either face, but to one of them.
    """
    rows = normals.shape[0]
    top, middle, bottom = by_height(a, b, c)
    first, second, last = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    side = (top, bottom)
    count = _gather_rows((first, second), side, (top, middle), origin, stride, normals, pixels, count)
    return _gather_rows((second, last), side, (middle, bottom), origin, stride, normals, pixels, count)


@inner(error_model="numpy", forceinline=True)
def _gather_rows(rows, side, other_side, origin, stride, normals, pixels, count):
    """Append the pixels between two sides of a face in rows first … last − 1; return the new count."""
    first, last = rows
    (top, bottom), (other_top, other_bottom) = side, other_side
    origin_u, origin_v = origin
    columns = normals.shape[1]
    slope = (bottom[0] - top[0]) / (bottom[1] - top[1])
    other_slope = (other_bottom[0] - other_top[0]) / (other_bottom[1] - other_top[1])
    us, vs, xs, ys, zs = pixels[U], pixels[V], pixels[X], pixels[Y], pixels[Z]
    # Numba does not check unsigned indices for counting from the end.
    to = np.uint64(count)
    for row in range(first, last):
        height = row + 0.5
        one = top[0] + (height - top[1]) * slope - 0.5
        other = other_top[0] + (height - other_top[1]) * other_slope - 0.5
        start = math.ceil(max(min(one, other), 0.0))
        start += (start + row) & (stride - 1)
        end = math.ceil(min(max(one, other), float(columns)))
        u, v = np.float32(start + 0.5 - origin_u), np.float32(height - origin_v)
        # The boundary of the mesh may lie outside the map, so that a row ends before it begins.
        at, column, stop = np.uint64(row), np.uint64(start), np.uint64(max(end, 0))
        while column < stop:
            # Written in any case and counted afterwards, without a branch.
            us[to], vs[to] = u, v
            x, y, z = normals[at, column, 0], normals[at, column, 1], normals[at, column, 2]
            xs[to], ys[to], zs[to] = x, y, z
            # Normals are zero outside the mask.
            to += np.uint64(abs(x) + abs(y) + abs(z) > ZERO)
            u += np.float32(stride)
            column += np.uint64(stride)
    return np.int64(to)


@inner
def pad_columns(pixels, count):
    """Pad the last vector with columns whose SHARE is zero, and return the padded number of columns."""
    shares = pixels[SHARE]
    for i in range(count):
        shares[i] = ONE
    end = -(-count // VECTOR) * VECTOR
    for i in range(count, end):
        shares[i] = ZERO
        for row in range(SHARE):
            pixels[row, i] = pixels[row, count - 1]
    return end


@inner
def mark_sector(sector, pixels, begin, end):
    """Set the sector of columns begin … end − 1."""
    sectors = pixels[SECTOR]
    for i in range(end - begin):
        sectors[begin + i] = sector


@inner(forceinline=True)
def as_float32(vector):
    """Return three numbers as float32."""
    return np.float32(vector[0]), np.float32(vector[1]), np.float32(vector[2])


@inner(error_model="numpy", fastmath=FAST, forceinline=True)
def fill_slopes(origin, camera, pixels, count):
    """Fill slopes and ⟨r,n⟩⁻² of the pixels from their normals."""
    frame = camera.frame
    rx, ry, rz = as_float32(ray(origin[0], origin[1], frame))
    rux, ruy, ruz = as_float32(frame_vector(RAY_U, frame))
    rvx, rvy, rvz = as_float32(frame_vector(RAY_V, frame))
    xs, ys, zs, inverses = pixels[X], pixels[Y], pixels[Z], pixels[INVERSE]
    for i in range(count):
        u, v = pixels[U, i], pixels[V, i]
        w = xs[i] * (rx + u * rux + v * rvx) + ys[i] * (ry + u * ruy + v * rvy) + zs[i] * (rz + u * ruz + v * rvz)
        inverses[i] = ONE / w
    for k in range(2):
        tx, ty, tz = as_float32(frame_vector(TANGENT_U + k, frame))
        slopes = pixels[SLOPE_U + k]
        for i in range(count):
            slopes[i] = -(xs[i] * tx + ys[i] * ty + zs[i] * tz) * inverses[i]
    for i in range(count):
        inverses[i] = inverses[i] * inverses[i]


@inner(error_model="numpy", fastmath=FAST, forceinline=True)
def sector_sums(sector, place, b, c, central, pixels, count):
    """Set the sector of the pixels between the rays from a place to b and c; sum 1, the slopes and ⟨r,n⟩⁻² over them.

    b and c are relative to the place, all other positions to the origin. For a central camera, slopes are those at
    the centroid of the face: along a plane in space, slope/(1 − slope·δu).
    """
    (u, v), (bu, bv), (cu, cv) = place, b, c
    centre_u, centre_v = np.float32(u + (bu + cu) / 3.0), np.float32(v + (bv + cv) / 3.0)
    past_b, past_c = np.float32(bv * u - bu * v), np.float32(cv * u - cu * v)
    bu, bv, cu, cv = np.float32(bu), np.float32(bv), np.float32(cu), np.float32(cv)
    sector = np.float32(sector)
    number = slope_u = slope_v = inverse = ZERO
    sectors = pixels[SECTOR]
    for i in range(count):
        at_u, at_v = pixels[U, i], pixels[V, i]
        inside = (bv * at_u - bu * at_v >= past_b) & (cv * at_u - cu * at_v < past_c)
        before = sectors[i]
        sectors[i] = sector if inside else before
        share = pixels[SHARE, i] if inside else ZERO
        number += share
        inverse += share * pixels[INVERSE, i]
        if central:
            left = ONE - pixels[SLOPE_U, i] * (centre_u - at_u) - pixels[SLOPE_V, i] * (centre_v - at_v)
            share = share / (left if left >= FACING else ONE)
        slope_u += share * pixels[SLOPE_U, i]
        slope_v += share * pixels[SLOPE_V, i]
    return np.float64(number), np.float64(slope_u), np.float64(slope_v), np.float64(inverse)


@inner(error_model="numpy", fastmath=FAST, forceinline=True)
def fill_chords(first, p, q, r, pixels, count):
    """Fill the chords between the normals of the pixels of three sectors and the normals p, q, r of their faces.

    The sectors are ``first`` and the next two. The chords of later sectors are overwritten by later calls.
    """
    rx, ry, rz = np.float32(r[0]), np.float32(r[1]), np.float32(r[2])
    # If the loop selected normals instead of differences, LLVM would select float64 and round them in each iteration.
    px, py, pz = np.float32(p[0]) - rx, np.float32(p[1]) - ry, np.float32(p[2]) - rz
    qx, qy, qz = np.float32(q[0]) - rx, np.float32(q[1]) - ry, np.float32(q[2]) - rz
    first, second = np.float32(first), np.float32(first + 1)
    xs, ys, zs, sectors, chords = pixels[X], pixels[Y], pixels[Z], pixels[SECTOR], pixels[CHORD]
    # Only with unsigned indices LLVM recognises that iterations are independent, and vectorises the loop.
    for i in range(np.uint64(count)):
        sector = sectors[i]
        in_p, in_q = ONE if sector == first else ZERO, ONE if sector == second else ZERO
        x = xs[i] - rx - in_p * px - in_q * qx
        y = ys[i] - ry - in_p * py - in_q * qy
        z = zs[i] - rz - in_p * pz - in_q * qz
        # Loaded in any case: a branch would prevent vectorisation.
        before = chords[i]
        chords[i] = x * x + y * y + z * z if sector >= first else before


@inner(error_model="numpy", fastmath=FAST, forceinline=True)
def _angle(chord):
    """Return the angle (radians) of a squared chord. An arccos would lose small angles to rounding."""
    return math.sqrt(chord) * (P0 + chord * (P1 + chord * (P2 + chord * (P3 + chord * P4))))


@inner(error_model="numpy", fastmath=FAST, forceinline=True)
def sum_of_chords(pixels, count):
    """Return the sum of the angles (radians) of all chords."""
    total = ZERO
    for i in range(count):
        total += pixels[SHARE, i] * _angle(pixels[CHORD, i])
    return np.float64(total)


@inner(error_model="numpy", fastmath=FAST, forceinline=True)
def sum_of_angles(start, direction, left, right, pixels, count):
    """Return the sum of the angles (radians) between the pixels' normals and those of two faces.

    ``left`` and ``right`` are the normals on the two sides of the line through ``start`` along ``direction``.
    """
    (u, v), (du, dv) = start, direction
    past = np.float32(dv * u - du * v)
    du, dv = np.float32(du), np.float32(dv)
    rx, ry, rz = np.float32(right[0]), np.float32(right[1]), np.float32(right[2])
    # Differences of normals for the same reason as in fill_chords.
    lx, ly, lz = np.float32(left[0]) - rx, np.float32(left[1]) - ry, np.float32(left[2]) - rz
    total = ZERO
    for i in range(count):
        is_left = ONE if dv * pixels[U, i] - du * pixels[V, i] >= past else ZERO
        x, y, z = pixels[X, i] - rx - is_left * lx, pixels[Y, i] - ry - is_left * ly, pixels[Z, i] - rz - is_left * lz
        total += pixels[SHARE, i] * _angle(x * x + y * y + z * z)
    return np.float64(total)


@inner(error_model="numpy")
def unit_normal(p, q, r):
    """Return the unit normal of a face in space, NaN if it is degenerate."""
    ux, uy, uz = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    vx, vy, vz = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    scale = 1.0 / length if length > 0.0 else np.nan
    return nx * scale, ny * scale, nz * scale


@inner
def goal(angle, area, noise):
    """Return the summed angle (radians) that a change must reach.

    ``angle`` is the present sum. Noise of the deviation ``noise`` (radians) contributes noise · √pixels to it.
    """
    return (1.0 - MIN_GAIN) * angle - NOISE_GAIN * noise * math.sqrt(area) - MIN_ANGLE * area


@inner(forceinline=True)
def corner_point(corner, mesh, unknown, camera):
    """Return the point in space of a corner."""
    vertex = vertex_at(corner, mesh.faces)
    return space_point(mesh.vertices[vertex, 0], mesh.vertices[vertex, 1], unknown[corner], camera)
