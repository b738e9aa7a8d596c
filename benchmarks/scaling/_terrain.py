"""Kernels of benchmarks.scaling.terrain: heights and slopes of a window, normals, and holes."""

import math

from numba import njit

#: Slope of teeth, and parts of their cell: start, width, middle and half of the height.
RISE, START, WIDTH, MIDDLE, HALF = 0.55, 0.2, 0.4, 0.5, 0.42
GOLDEN = (3 - math.sqrt(5)) / 2
#: Radius (px) of the circle along which the rim of a tooth turns down, and the part of its quarter that is seen.
RIM, SEEN = 12.0, 0.92
#: Distance (px) from a jump up to which errors are those of its place: one pixel beside it, heights differ by its drop.
AT_JUMP = 4.0
#: Side (px) of the cells of holes: at most one hole in each, with a border, so that the ground is in one piece.
HOLE_CELL = 96


@njit(cache=True, nogil=True, fastmath=True)
def add_waves(top, left, waves, tables, heights, slopes):
    """Add waves (K, 5), each as frequency along u and v, phase, amplitude and softness, to a window (H, W).

    Softness 0 is a sine, above 0 a ridge √(sin² + softness²). ``tables`` (2, W) is for sines and cosines of columns:
    with those of a row, sums of angles need no further ones.
    """
    rows, columns = heights.shape
    for k in range(len(waves)):
        along_u, along_v, phase, amplitude, softness = waves[k]
        for j in range(columns):
            angle = along_u * (left + j + 0.5) + phase
            tables[0, j], tables[1, j] = math.sin(angle), math.cos(angle)
        for i in range(rows):
            angle = along_v * (top + i + 0.5)
            sine, cosine = math.sin(angle), math.cos(angle)
            for j in range(columns):
                s = tables[0, j] * cosine + tables[1, j] * sine
                c = tables[1, j] * cosine - tables[0, j] * sine
                if softness > 0:
                    ridge = math.sqrt(s * s + softness * softness)
                    c *= s / ridge
                    s = ridge
                heights[i, j] += amplitude * s
                slopes[0, i, j] += amplitude * c * along_u
                slopes[1, i, j] += amplitude * c * along_v


@njit(cache=True, nogil=True)
def add_teeth(top, left, cell, heights, slopes, clear):
    """Add a tooth to each cell of cell × cell pixels: it rises to the right, and drops from a round rim.

    Its height fades out above and below, so that normals determine the jump. ``clear`` (H, W) becomes False at jumps.
    """
    rows, columns = heights.shape
    end = (START + WIDTH) * cell
    for i in range(rows):
        v = top + i + 0.5
        number = math.floor(v / cell)
        t = (v - (number + MIDDLE) * cell) / (HALF * cell)
        if abs(t) >= 1:
            continue
        fade = (1 - t * t) ** 2
        drop = RISE * WIDTH * cell * fade - (1 - math.sqrt(1 - SEEN * SEEN)) * RIM
        change = -4 * t * (1 - t * t) / (HALF * cell)
        # Rows of teeth are shifted by the golden section, so that seams do not run along rims.
        shift = GOLDEN * number % 1 * cell
        for j in range(columns):
            u = left + j + 0.5 + shift
            u -= math.floor(u / cell) * cell
            if drop > 0 and abs(u - end) < AT_JUMP:
                clear[i, j] = False
            across = u - START * cell
            if across < 0 or u >= end:
                continue
            turned = SEEN * max(RIM - (end - u), 0.0)
            depth = math.sqrt(RIM * RIM - turned * turned)
            height = RISE * across * fade - (RIM - depth)
            if height > 0:
                heights[i, j] += height
                slopes[0, i, j] += RISE * fade - SEEN * turned / depth
                slopes[1, i, j] += RISE * across * change


@njit(cache=True, nogil=True)
def write_normals(top, left, slopes, frame, towards, normals):
    """Write normals (H, W, 3) float32, perpendicular to τ_u + ∂_u z r and τ_v + ∂_v z r, of slopes (2, H, W) of z."""
    rows, columns = normals.shape[:2]
    for i in range(rows):
        for j in range(columns):
            u, v = left + j + 0.5, top + i + 0.5
            du, dv = slopes[0, i, j], slopes[1, i, j]
            rx = frame[2, 0] + u * frame[3, 0] + v * frame[4, 0]
            ry = frame[2, 1] + u * frame[3, 1] + v * frame[4, 1]
            rz = frame[2, 2] + u * frame[3, 2] + v * frame[4, 2]
            ax, ay, az = frame[0, 0] + du * rx, frame[0, 1] + du * ry, frame[0, 2] + du * rz
            bx, by, bz = frame[1, 0] + dv * rx, frame[1, 1] + dv * ry, frame[1, 2] + dv * rz
            x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
            length = math.sqrt(x * x + y * y + z * z)
            if towards * (x * rx + y * ry + z * rz) < 0:
                length = -length
            normals[i, j, 0], normals[i, j, 1], normals[i, j, 2] = x / length, y / length, z / length


@njit(cache=True, nogil=True)
def cut_holes(top, left, holes, mask):
    """Remove round holes from a mask (H, W). ``holes`` (P, Q, 3), centre in the cell and radius, repeats."""
    rows, columns = mask.shape
    for i in range(rows):
        row, v = divmod(top + i, HOLE_CELL)
        for j in range(columns):
            column, u = divmod(left + j, HOLE_CELL)
            centre_u, centre_v, radius = holes[row % holes.shape[0], column % holes.shape[1]]
            if (u + 0.5 - centre_u) ** 2 + (v + 0.5 - centre_v) ** 2 < radius * radius:
                mask[i, j] = False
