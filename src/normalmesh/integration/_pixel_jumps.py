"""Kernels of pixel integration with depth discontinuities. Arrays are (H, W), lengths are in pixels.

All kernels that Python calls are range kernels over rows of pixels.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.integration._pixel_integration import FROM_LEFT, FROM_TOP, TO_BOTTOM, TO_RIGHT
from normalmesh.normals._camera import ray
from normalmesh.runtime.kernels import inner, kernel


class PixelValues(NamedTuple):
    """Pixels and their values.

    Attributes
    ----------
    mask : (H, W) bool
    upright : (H, W) float64
        ν: cosine between normal and viewing ray.
    z : (H, W) float64
        The unknown in pixels.
    half_steps : (H, W, 4) float64
        Change of the unknown in half a step on the plane of a pixel.
    """

    mask: NDArray[np.bool_]
    upright: NDArray[np.float64]
    z: NDArray[np.float64]
    half_steps: NDArray[np.float64]


class Preference(NamedTuple):
    """The softmax by which each pixel distributes its weight among its edges.

    Attributes
    ----------
    sharpness : float
        Factor of the squared steps to the neighbours, px⁻².
    minimum : float
        Least weight of an edge.
    highest, factor : (H, W) float64
        The largest exponent of each pixel, and half its number of edges over the sum of the exponentials.
    """

    sharpness: float
    minimum: float
    highest: NDArray[np.float64]
    factor: NDArray[np.float64]


@kernel
def uprightness(first, last, mobility, mask, frame, upright):
    """Fill ν, the cosine between normal and viewing ray, from mobility = ⟨n, r⟩²; 1 outside the mask."""
    for i in range(first, last):
        for j in range(mask.shape[1]):
            rx, ry, rz = ray(j + 0.5, i + 0.5, frame)
            squared = rx * rx + ry * ry + rz * rz
            upright[i, j] = np.sqrt(mobility[i, j] / squared) if mask[i, j] else 1.0


@inner(forceinline=True)
def _exponent(upright, before, after, sharpness):
    """Return the exponent of the softmax for a step from one depth to another."""
    step = upright * (after - before)
    return -sharpness * step * step


@kernel
def normalise_preferences(first, last, pixels, preference):
    """Fill the largest exponents and the factors of the softmax."""
    mask, upright, z = pixels.mask, pixels.upright, pixels.z
    rows, columns = mask.shape
    exponents = np.empty(4)
    for i in range(first, last):
        for j in range(columns):
            if not mask[i, j]:
                continue
            count = 0
            for k in range(4):
                y, x = i + (k == 2) - (k == 3), j + (k == 0) - (k == 1)
                if 0 <= y < rows and 0 <= x < columns and mask[y, x]:
                    exponents[count] = _exponent(upright[i, j], z[i, j], z[y, x], preference.sharpness)
                    count += 1
            if count == 0:
                continue
            largest, total = exponents[:count].max(), 0.0
            for k in range(count):
                total += np.exp(exponents[k] - largest)
            preference.highest[i, j] = largest
            preference.factor[i, j] = 0.5 * count / total


@inner(forceinline=True)
def _preferred_weight(p, q, pixels, preference):
    """Return the contribution of pixel p to the weight of its edge to q."""
    exponent = _exponent(pixels.upright[p], pixels.z[p], pixels.z[q], preference.sharpness)
    share = preference.factor[p] * np.exp(exponent - preference.highest[p])
    return max(share, preference.minimum) * pixels.upright[p] ** 2


@kernel
def preferred_weights(first, last, pixels, preference, edges):
    """Fill the weights of edges: each pixel distributes its weight by the softmax."""
    mask = pixels.mask
    rows, columns = mask.shape
    for i in range(first, last):
        for j in range(columns):
            if not mask[i, j]:
                continue
            p = i, j
            if j + 1 < columns and mask[i, j + 1]:
                q = i, j + 1
                there = _preferred_weight(q, p, pixels, preference)
                edges.right[p] = _preferred_weight(p, q, pixels, preference) + there
            if i + 1 < rows and mask[i + 1, j]:
                q = i + 1, j
                there = _preferred_weight(q, p, pixels, preference)
                edges.down[p] = _preferred_weight(p, q, pixels, preference) + there


@inner(forceinline=True)
def _misfit(pixels, p, q, leaving, entering):
    """Return the gap between the planes of pixels p and q at their common side, by the columns of the half steps."""
    z, half_steps = pixels.z, pixels.half_steps
    return z[q] - z[p] - half_steps[p[0], p[1], leaving] - half_steps[q[0], q[1], entering]


@inner(forceinline=True)
def _cauchy(upright, misfit, width):
    """Return the weight of an edge by Cauchy's loss."""
    return upright**2 / ((upright * misfit) ** 2 + width**2)


@kernel
def cauchy_weights(first, last, pixels, width, edges):
    """Fill the weights of edges: beyond a width, they fall with the square of the misfit."""
    mask, upright = pixels.mask, pixels.upright
    rows, columns = mask.shape
    for i in range(first, last):
        for j in range(columns):
            if not mask[i, j]:
                continue
            if j + 1 < columns and mask[i, j + 1]:
                misfit = _misfit(pixels, (i, j), (i, j + 1), TO_RIGHT, FROM_LEFT)
                edges.right[i, j] = _cauchy(min(upright[i, j], upright[i, j + 1]), misfit, width)
            if i + 1 < rows and mask[i + 1, j]:
                misfit = _misfit(pixels, (i, j), (i + 1, j), TO_BOTTOM, FROM_TOP)
                edges.down[i, j] = _cauchy(min(upright[i, j], upright[i + 1, j]), misfit, width)


@kernel
def misfit_energies(first, last, pixels, edges, energies, weights):
    """Fill Σ weight · misfit² and Σ weight (H,) over the edges of each row."""
    right, down = edges
    rows, columns = right.shape
    for i in range(first, last):
        energy, total = 0.0, 0.0
        for j in range(columns):
            if j + 1 < columns:
                misfit = _misfit(pixels, (i, j), (i, j + 1), TO_RIGHT, FROM_LEFT)
                energy += right[i, j] * misfit**2
                total += right[i, j]
            if i + 1 < rows:
                misfit = _misfit(pixels, (i, j), (i + 1, j), TO_BOTTOM, FROM_TOP)
                energy += down[i, j] * misfit**2
                total += down[i, j]
        energies[i], weights[i] = energy, total


@kernel
def squared_changes(first, last, pixels, before, squares, counts):
    """Fill, for each row, the sum of the squared changes of steps times the smaller ν, and the number of edges."""
    mask, upright, after = pixels.mask, pixels.upright, pixels.z
    rows, columns = mask.shape
    for i in range(first, last):
        total, count = 0.0, 0
        for j in range(columns):
            if not mask[i, j]:
                continue
            here = after[i, j] - before[i, j]
            if j + 1 < columns and mask[i, j + 1]:
                change = after[i, j + 1] - before[i, j + 1] - here
                total += (min(upright[i, j], upright[i, j + 1]) * change) ** 2
                count += 1
            if i + 1 < rows and mask[i + 1, j]:
                change = after[i + 1, j] - before[i + 1, j] - here
                total += (min(upright[i, j], upright[i + 1, j]) * change) ** 2
                count += 1
        squares[i], counts[i] = total, count
