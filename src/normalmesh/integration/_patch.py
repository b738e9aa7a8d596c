"""Kernels that gather the pixels of a patch of faces, and evaluate triangulations of the patch by them.

The outline of a patch is the same before and after its inner vertex moves or its inner edge is flipped, and so are its
pixels. They are stored in a table, a flat array of float32: blocks of LANES pixels, each with one row of LANES numbers
for each property. Distances between rows are known when kernels are compiled, so that loops over a block can be
vectorised. Positions are relative to an origin near the patch, where float32 is exact enough.

Sums are taken in LANES interleaved partial sums, so that the compiler can vectorise them without changing the order of
additions: all compilers then give the same result. Each block holds the partial sums over the blocks before it.
"""

import math

import numpy as np

from normalmesh.mesh._raster import by_height, first_row
from normalmesh.normals._camera import RAY_U, RAY_V, TANGENT_U, TANGENT_V, frame_vector, ray, slope_weight, space_point
from normalmesh.runtime.kernels import inner

#: Pixels of a block, and partial sums of a sum. The number of pixels is padded to a multiple of it.
LANES = 32
#: Numbers in the partial sums of up to four sums, which are the first rows of a block.
SUMS = 4 * LANES
#: Numbers in a block.
BLOCK = SUMS + 11 * LANES
#: Offsets in a block of the rows for: position; unit normal; 1, or 0 for a pixel that pads the last block; slopes
#: ∂_u z, ∂_v z and ⟨r,n⟩⁻² of the pixel; the sector that it lies in; and the squared length of the chord between its
#: normal and that of the sector's face.
U, V, X, Y, Z, SHARE, SLOPE_U, SLOPE_V, INVERSE, SECTOR, CHORD = range(SUMS, BLOCK, LANES)

#: A change must lower the summed angle by this share of it,
MIN_GAIN = 1e-3
#: by this share of the contribution of noise,
NOISE_GAIN = 0.25
#: and by this many radians for each px², the resolution of float32.
MIN_ANGLE = 1e-6
#: Moves and flips make no face smaller than this (px²): the pixels do not determine such faces.
MIN_AREA = 0.3
#: They make no face longer than this many times its width: needles stand askew. A tighter limit costs accuracy.
MAX_ASPECT = 50.0
#: Areas (px²) from which on every second and every fourth pixel is used to move a vertex: the result is nearly the
#: same, in less time.
MANY_PIXELS, VERY_MANY_PIXELS = 256.0, 1024.0
#: Number of faces or vertices that share one table of pixels.
CHUNK = 64

ZERO, ONE = np.float32(0.0), np.float32(1.0)
#: 2 arcsin(c/2) = c · P(c²), to 7e-6 up to a right angle.
P0, P1, P2, P3, P4 = (np.float32(p) for p in (1.0000045, 0.04155474, 0.00511615, 0.00015248, 0.00036966))


@inner(forceinline=True)
def max_pixels(a, b, c):
    """Return an upper bound of the pixels of a face: a convex figure holds at most area + half its perimeter + 1.

    Half the perimeter is at most width + height.
    """
    bu, bv = b[0] - a[0], b[1] - a[1]
    cu, cv = c[0] - a[0], c[1] - a[1]
    width, height = max(bu, cu, 0.0) - min(bu, cu, 0.0), max(bv, cv, 0.0) - min(bv, cv, 0.0)
    return int(0.5 * abs(bv * cu - bu * cv) + width + height) + 2


@inner(forceinline=True)
def face_places(face, vertices):
    """Return the positions on the screen of the three vertices of a face."""
    a, b, c = face[0], face[1], face[2]
    return (vertices[a, 0], vertices[a, 1]), (vertices[b, 0], vertices[b, 1]), (vertices[c, 0], vertices[c, 1])


@inner(forceinline=True)
def max_face_pixels(f, mesh):
    """Return an upper bound of the pixels of face f."""
    a, b, c = face_places(mesh.faces[f], mesh.vertices)
    return max_pixels(a, b, c)


@inner(forceinline=True)
def table_size(count):
    """Return the numbers in a table for ``count`` pixels, and one more block for the sums over all of them."""
    return (count // LANES + 2) * BLOCK


@inner(forceinline=True)
def larger_size(pixels, count):
    """Return 0 if the table can hold ``count`` pixels, else the size of one that a kernel should replace it by."""
    return 0 if pixels.size >= table_size(count) else table_size(count + count // 2)


@inner(forceinline=True)
def place_of(i):
    """Return where pixel i lies in the table; the rows' offsets are to be added. Unsigned indices are not checked."""
    i, lanes = np.uint64(i), np.uint64(LANES)
    return i // lanes * np.uint64(BLOCK) + i % lanes


@inner(forceinline=True)
def blocks(count):
    """Return where the blocks of ``count`` pixels, a multiple of LANES, begin in the table."""
    return range(0, count // LANES * BLOCK, BLOCK)


@inner(forceinline=True)
def total_of(k, pixels, count):
    """Return sum k over ``count`` pixels: add its partial sums, always in the same order."""
    start = count // LANES * BLOCK + k * LANES
    lanes = pixels[start : start + LANES]
    p = q = r = s = ZERO
    for i in range(0, LANES, 4):
        p, q, r, s = p + lanes[i], q + lanes[i + 1], r + lanes[i + 2], s + lanes[i + 3]
    return np.float64((p + q) + (r + s))


@inner
def gather_face(a, b, c, origin, stride, normals, pixels, count):
    """Append the foreground pixels of the face abc to the first ``count`` pixels of the table; return the new count.

    A ``stride`` of 1 takes all; 2 takes every second row of them, and 4 also every second column, as on a chessboard.
    Pixel centres within rounding errors of an edge go to either face, but to one of them.
    """
    rows = normals.shape[0]
    top, middle, bottom = by_height(a, b, c)
    first, second, last = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    side = (top, bottom)
    count = _gather_rows((first, second), side, (top, middle), origin, stride, normals, pixels, count)
    return _gather_rows((second, last), side, (middle, bottom), origin, stride, normals, pixels, count)


@inner(forceinline=True)
def _gather_rows(rows, side, other_side, origin, stride, normals, pixels, count):
    """Append the pixels between two sides of a face in rows first … last − 1; return the new count."""
    first, last = rows
    (top, bottom), (other_top, other_bottom) = side, other_side
    origin_u, origin_v = origin
    columns = normals.shape[1]
    slope = (bottom[0] - top[0]) / (bottom[1] - top[1])
    other_slope = (other_bottom[0] - other_top[0]) / (other_bottom[1] - other_top[1])
    # Numba does not check unsigned indices for counting from the end.
    to = np.uint64(count)
    down, across = 1 if stride == 1 else 2, 2 if stride == 4 else 1
    for row in range(first + (first & (down - 1)), last, down):
        height = row + 0.5
        one = top[0] + (height - top[1]) * slope - 0.5
        other = other_top[0] + (height - other_top[1]) * other_slope - 0.5
        start = int(math.ceil(max(min(one, other), 0.0)))
        start += (start + (row >> 1)) & (across - 1)
        end = int(math.ceil(min(max(one, other), float(columns))))
        u, v = np.float32(start + 0.5 - origin_u), np.float32(height - origin_v)
        # The boundary of the mesh may lie outside the map, so that a row ends before it begins.
        at, column, stop = np.uint64(row), np.uint64(start), np.uint64(max(end, 0))
        while column < stop:
            # Written in any case and counted afterwards, without a branch.
            place = place_of(to)
            x, y, z = normals[at, column, 0], normals[at, column, 1], normals[at, column, 2]
            pixels[place + np.uint64(U)], pixels[place + np.uint64(V)] = u, v
            pixels[place + np.uint64(X)], pixels[place + np.uint64(Y)], pixels[place + np.uint64(Z)] = x, y, z
            # Normals are zero outside the mask.
            to += np.uint64(abs(x) + abs(y) + abs(z) > ZERO)
            u += np.float32(across)
            column += np.uint64(across)
    return np.int64(to)


@inner
def pad_block(pixels, count):
    """Pad the last block with pixels whose SHARE is zero, and return the padded number of pixels.

    The partial sums before the first block become zero, and stay so.
    """
    end = -(-count // LANES) * LANES
    for k in range(SUMS):
        pixels[k] = ZERO
    for at in blocks(end):
        block = pixels[at : at + BLOCK]
        for k in range(LANES):
            block[SHARE + k] = ONE
    last = place_of(count - 1)
    for i in range(count, end):
        place = place_of(i)
        for row in range(U, SHARE, LANES):
            pixels[place + np.uint64(row)] = pixels[last + np.uint64(row)]
        pixels[place + np.uint64(SHARE)] = ZERO
    return end


@inner
def mark_sector(sector, pixels, begin, end):
    """Set the sector of pixels begin … end − 1."""
    for i in range(begin, end):
        pixels[place_of(i) + np.uint64(SECTOR)] = sector


@inner(forceinline=True)
def as_float32(vector):
    """Return three numbers as float32."""
    return np.float32(vector[0]), np.float32(vector[1]), np.float32(vector[2])


@inner
def fill_slopes(origin, camera, pixels, count):
    """Fill slopes and ⟨r,n⟩⁻² of the pixels from their normals."""
    rx, ry, rz = as_float32(ray(origin[0], origin[1], camera))
    rux, ruy, ruz = as_float32(frame_vector(RAY_U, camera))
    rvx, rvy, rvz = as_float32(frame_vector(RAY_V, camera))
    tux, tuy, tuz = as_float32(frame_vector(TANGENT_U, camera))
    tvx, tvy, tvz = as_float32(frame_vector(TANGENT_V, camera))
    for at in blocks(count):
        block = pixels[at : at + BLOCK]
        for k in range(LANES):
            u, v, x, y, z = block[U + k], block[V + k], block[X + k], block[Y + k], block[Z + k]
            w = x * (rx + u * rux + v * rvx) + y * (ry + u * ruy + v * rvy) + z * (rz + u * ruz + v * rvz)
            inverse = ONE / w
            block[SLOPE_U + k] = -(x * tux + y * tuy + z * tuz) * inverse
            block[SLOPE_V + k] = -(x * tvx + y * tvy + z * tvz) * inverse
            block[INVERSE + k] = inverse * inverse


@inner
def sector_sums(sector, place, b, c, camera, pixels, count):
    """Set the sector of the pixels between the rays from a place to b and c; sum 1, the slopes and ⟨r,n⟩⁻² over them.

    b and c are relative to the place, all others to the origin. Slopes are those at the centroid of the face.
    """
    (u, v), (bu, bv), (cu, cv) = place, b, c
    centre_u, centre_v = np.float32(u + (bu + cu) / 3.0), np.float32(v + (bv + cv) / 3.0)
    past_b, past_c = np.float32(bv * u - bu * v), np.float32(cv * u - cu * v)
    bu, bv, cu, cv = np.float32(bu), np.float32(bv), np.float32(cu), np.float32(cv)
    sector = np.float32(sector)
    for at in blocks(count):
        block = pixels[at : at + BLOCK + SUMS]
        for k in range(LANES):
            at_u, at_v = block[U + k], block[V + k]
            inside = (bv * at_u - bu * at_v >= past_b) & (cv * at_u - cu * at_v < past_c)
            before = block[SECTOR + k]
            block[SECTOR + k] = sector if inside else before
            share = block[SHARE + k]
            share = share if inside else ZERO
            block[BLOCK + k] = block[k] + share
            block[BLOCK + LANES + k] = block[LANES + k] + share * block[INVERSE + k]
            slope_u, slope_v = block[SLOPE_U + k], block[SLOPE_V + k]
            share = slope_weight(share, slope_u, slope_v, centre_u - at_u, centre_v - at_v, camera)
            block[BLOCK + 2 * LANES + k] = block[2 * LANES + k] + share * slope_u
            block[BLOCK + 3 * LANES + k] = block[3 * LANES + k] + share * slope_v
    number, inverse = total_of(0, pixels, count), total_of(1, pixels, count)
    return number, total_of(2, pixels, count), total_of(3, pixels, count), inverse


@inner
def fill_chords(first, p, q, r, pixels, count):
    """Fill the chords between the normals of the pixels of three sectors and the normals p, q, r of their faces.

    The sectors are ``first`` and the next two. The chords of later sectors are overwritten by later calls.
    """
    rx, ry, rz = np.float32(r[0]), np.float32(r[1]), np.float32(r[2])
    # If the loop selected normals instead of differences, LLVM would select float64 and round them in each iteration.
    px, py, pz = np.float32(p[0]) - rx, np.float32(p[1]) - ry, np.float32(p[2]) - rz
    qx, qy, qz = np.float32(q[0]) - rx, np.float32(q[1]) - ry, np.float32(q[2]) - rz
    first, second = np.float32(first), np.float32(first + 1)
    for at in blocks(count):
        block = pixels[at : at + BLOCK]
        for k in range(LANES):
            sector = block[SECTOR + k]
            in_p, in_q = ONE if sector == first else ZERO, ONE if sector == second else ZERO
            x = block[X + k] - rx - in_p * px - in_q * qx
            y = block[Y + k] - ry - in_p * py - in_q * qy
            z = block[Z + k] - rz - in_p * pz - in_q * qz
            # Loaded in any case: a branch would prevent vectorisation.
            before = block[CHORD + k]
            block[CHORD + k] = x * x + y * y + z * z if sector >= first else before


@inner
def _angle(chord):
    """Return the angle (radians) of a squared chord. An arccos would lose small angles to rounding."""
    return math.sqrt(chord) * (P0 + chord * (P1 + chord * (P2 + chord * (P3 + chord * P4))))


@inner
def sum_of_chords(pixels, count):
    """Return the sum of the angles (radians) of all chords."""
    for at in blocks(count):
        block = pixels[at : at + BLOCK + SUMS]
        for k in range(LANES):
            block[BLOCK + k] = block[k] + block[SHARE + k] * _angle(block[CHORD + k])
    return total_of(0, pixels, count)


@inner
def sum_of_angles(start, direction, left, right, pixels, count):
    """Return the sum of the angles (radians) between the pixels' normals and those of two faces.

    ``left`` and ``right`` are the normals on the two sides of the line through ``start`` along ``direction``. Return
    also the number of pixels, and of those on the left.
    """
    (u, v), (du, dv) = start, direction
    past = np.float32(dv * u - du * v)
    du, dv = np.float32(du), np.float32(dv)
    rx, ry, rz = np.float32(right[0]), np.float32(right[1]), np.float32(right[2])
    # Differences of normals for the same reason as in fill_chords.
    lx, ly, lz = np.float32(left[0]) - rx, np.float32(left[1]) - ry, np.float32(left[2]) - rz
    for at in blocks(count):
        block = pixels[at : at + BLOCK + SUMS]
        for k in range(LANES):
            is_left = ONE if dv * block[U + k] - du * block[V + k] >= past else ZERO
            x = block[X + k] - rx - is_left * lx
            y = block[Y + k] - ry - is_left * ly
            z = block[Z + k] - rz - is_left * lz
            block[CHORD + k] = x * x + y * y + z * z
            share = block[SHARE + k]
            block[BLOCK + LANES + k] = block[LANES + k] + share
            block[BLOCK + 2 * LANES + k] = block[2 * LANES + k] + share * is_left
    return sum_of_chords(pixels, count), total_of(1, pixels, count), total_of(2, pixels, count)


@inner
def sum_of_normals(pixels, count):
    """Return the sum of the normals of the pixels, as three numbers."""
    for at in blocks(count):
        block = pixels[at : at + BLOCK + SUMS]
        for k in range(LANES):
            share = block[SHARE + k]
            block[BLOCK + k] = block[k] + share * block[X + k]
            block[BLOCK + LANES + k] = block[LANES + k] + share * block[Y + k]
            block[BLOCK + 2 * LANES + k] = block[2 * LANES + k] + share * block[Z + k]
    return total_of(0, pixels, count), total_of(1, pixels, count), total_of(2, pixels, count)


@inner
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
def is_fit(bu, bv, cu, cv):
    """Return whether a face with the sides (bu, bv) and (cu, cv), counter-clockwise, is neither small nor a needle."""
    double_area = bv * cu - bu * cv
    longest_squared = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
    # Written so that NaN does not pass.
    return double_area >= 2.0 * MIN_AREA and MAX_ASPECT * double_area >= longest_squared


@inner(forceinline=True)
def vertex_point(vertex, mesh, unknown, camera):
    """Return the point in space of a vertex."""
    return space_point(mesh.vertices[vertex, 0], mesh.vertices[vertex, 1], unknown[vertex], camera)
