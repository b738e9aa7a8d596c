"""Doubts about photometric stereo: images and lights that give wrong normals without being impossible.

Whether the lights are in the order of the photographs: those of a matt surface, as vectors of all lights for each
pixel, lie in the space that the columns of the light directions span. In another order of the lights they leave it. The
sum of squares that remains depends only on the Gram matrix of the photographs, so that thousands of orders cost
nothing: finding the best one is a quadratic assignment problem, in which swaps of two lights are tried from some common
mistakes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Float32
from normalmesh.mesh.components import components
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import diagnose
from normalmesh.normals.normal_map import NormalMap
from normalmesh.photometric.matt_surface import PhotographedSurface, fit, least_shaded

#: Number of values of the photographs that are sampled, and the least number of pixels or values to judge by.
SAMPLED, LEAST = 1 << 20, 20
#: Lights that are nearly in one plane multiply errors of the images by more than this; lights from all sides by 1.7.
AMPLIFIED = 20.0
#: Median residual, as a share of the albedo, above which images and lights do not fit, and below which they do well.
MISFIT, WELL = 0.1, 0.01
#: Usual exponent of a gamma curve. Without such a curve, or a constant, the residual is at most this share of it.
GAMMA, IMPROVED = 2.2, 0.5
#: Clipped values are lower than the other images predict by more than this factor.
CLIPPED = 1.02

#: The least number of photographs and of pixels to judge by.
PHOTOGRAPHS, PIXELS = 5, 50
#: Residual of a photograph, as a share of the brightness, up to which it has its own light.
RIGHT = 0.01
#: Share of its residual that a photograph has at most if it gets its own light.
REORDERED = 0.65
#: Ratio of sums of squares up to which two orders fit equally well.
ALIKE = 1.2
#: Share of the lights that a common mistake moves; if so many of the moves are certain, all are.
ENOUGH = 0.3
#: Angle in degrees up to which lights may change places unnoticed: directions are seldom known better.
CLOSE = 15.0
#: Number of times that intensities and a surface are fitted in turn.
ALTERNATIONS = 5


def doubts_about_lights(lights: Float) -> Iterator[str]:
    """Yield a warning if unit directions (K, 3) are near one plane."""
    amplified = math.sqrt(len(lights)) / np.linalg.svd(lights, compute_uv=False)[-1]
    if amplified > AMPLIFIED:
        yield (
            f"the lights lie nearly in one plane, which multiplies errors of the images by up to {amplified:.0f}; "
            "add an image with a light outside that plane"
        )


def doubts_about_images(given: PhotographedSurface) -> Iterator[str]:
    """Yield warnings of a gamma curve, an added constant, another order, and clipped values, judging by some pixels."""
    rows, columns = given.foreground.shape
    step = max(1, math.isqrt(rows * columns * len(given.taken) // SAMPLED))
    every = (slice(None, None, step), slice(None, None, step))
    values, usable = given.observations(every)
    grey = values.mean(axis=2)[:, usable.all(axis=0)]
    yield from _doubts_about_response(grey, given.lights)
    yield from doubts_about_order(grey, given.lights, given.natural)
    stored = values * given.strength[:, None, :]
    top = stored.max(initial=0.0)
    exceeded = _excess_at_top(values, usable, (stored >= top).any(axis=2) & usable, given.lights)
    if exceeded > CLIPPED:
        limit = top * (given.taken[0].maximum or 1)
        yield (
            f"values seem to be clipped at {limit:.6g}, where the other images predict {100 * (exceeded - 1):.0f} % "
            f"more; saturation={limit:.6g} leaves them out"
        )


def _doubts_about_response(grey: Float, lights: Float) -> Iterator[str]:
    """Yield a warning if values (K, P) fit far better when a gamma curve is undone, or a constant is subtracted."""
    count, pixels = grey.shape
    if count < 4 or pixels < LEAST:
        return
    # If a constant is added, pixels in shadow look lit: only pixels that all lights reach can tell.
    grey = least_shaded(grey)
    if (linear := _misfit(grey, lights)) <= WELL:
        return
    if (undone := _misfit((grey / grey.max()) ** GAMMA, lights)) < IMPROVED * linear:
        yield (
            f"the images seem to have a gamma curve: without it, the median residual is {100 * undone:.1f} % of the "
            f"albedo instead of {100 * linear:.1f} %; take raw images, or undo the curve (for sRGB, about value^2.2)"
        )
    elif count > 5 and (above := _misfit(grey, np.column_stack([lights, np.ones(count)]))) < min(
        IMPROVED * linear, WELL
    ):
        yield (
            f"a constant seems to be added to the images, as by ambient light or a black level: without it, the median "
            f"residual is {100 * above:.1f} % of the albedo instead of {100 * linear:.1f} %; subtract an image that "
            "was taken without the lights"
        )


def _misfit(grey: Float, columns: Float) -> float:
    """Return the median residual of values (K, P) that depend linearly on columns (K, 3 or 4), as a share of |ρn|.

    The residual is divided by the degrees of freedom, so that another column alone makes it no smaller.
    """
    found = np.linalg.pinv(columns) @ grey
    squares = ((grey - columns @ found) ** 2).sum(axis=0) / (len(grey) - columns.shape[1])
    return float(np.median(np.sqrt(squares) / np.maximum(np.linalg.norm(found[:3], axis=0), 1e-300)))


def _excess_at_top(values: Float, usable: Bool, at_top: Bool, lights: Float) -> float:
    """Return how much more than their value the other images predict for the largest observations (K, P); 1 if open."""
    pixels = at_top.any(axis=0)
    values, usable, at_top = values[:, pixels], usable[:, pixels], at_top[:, pixels]
    normals, albedo, _ = fit(values, usable & ~at_top, lights)
    predicted = (lights @ normals.T) * albedo.mean(axis=1)
    judged = at_top & normals.any(axis=1)
    if np.count_nonzero(judged) < LEAST:
        return 1.0
    return float(np.median(predicted[judged] / values.mean(axis=2)[judged]))


def doubts_about_fit(normal_map: NormalMap, albedo: Float32, residual: Float32) -> Iterator[str]:
    """Yield warnings if the images do not fit the lights, or the normals are those of no surface in these axes."""
    inside = normal_map.mask
    share = float(np.median(residual[inside] / np.maximum(albedo[inside].mean(axis=1), 1e-30)))
    if share > MISFIT:
        yield (
            f"the images do not fit a matt surface under these lights: the median residual is {100 * share:.0f} % of "
            "the albedo; check that lights and intensities are in the order of the images, or leave out shadows and "
            "highlights by darkest and brightest"
        )
    if diagnose(normal_map).strongly_excludes(Convention.parse("opengl")):
        yield (
            "the normals contradict the axes of the lights: no surface has them; check the convention, and that the "
            "lights are in the order of the images"
        )


def doubts_about_order(grey: Float, lights: Float, natural: Sequence[int] | None = None) -> Iterator[str]:
    """Yield a warning if photographs (K, P) fit far better to the lights (K, 3) in another order.

    ``natural`` is the order of the photographs by the numbers in their names, where it is known and another one.
    """
    count = len(lights)
    if count < PHOTOGRAPHS or (gram := _gram(grey)) is None:
        return
    # What other intensities explain is no sign of another order.
    before = _scaled_residuals(gram, lights)
    if np.sqrt(before.max()) <= RIGHT:
        return
    mistakes = _common_mistakes(count, natural)
    order = _suspected_order(gram, lights, mistakes)
    moved = order != np.arange(count)
    after = _scaled_residuals(gram, lights[order])
    if moved.any() and after[moved].sum() < REORDERED**2 * before[moved].sum():
        known = _name(order, mistakes)
        yield (
            "photographs and lights seem to be in different orders: with "
            f"{f'the lights {known}' if known else _described(order)}, the residual is "
            f"{100 * np.sqrt(after.mean()):.1f} % of the brightness instead of {100 * np.sqrt(before.mean()):.1f} %; "
            "check the order of the images"
        )


def _common_mistakes(count: int, natural: Sequence[int] | None) -> dict[str, NDArray[np.intp]]:
    """Return orders of lights that undo common mistakes, by name, the most common first."""
    places = np.arange(count)
    # Photograph natural[k] is the k-th by the numbers in its name, and belongs to light k.
    numbers = {} if natural is None else {"in the order of the numbers in the names of the files": np.argsort(natural)}
    return {**numbers, "in reverse": places[::-1], **{f"shifted by {k}": np.roll(places, k) for k in range(1, count)}}


def _name(order: NDArray[np.intp], mistakes: dict[str, NDArray[np.intp]]) -> str | None:
    """Return the name of the mistake that an order undoes, if it is a common one."""
    return next((name for name, mistake in mistakes.items() if np.array_equal(mistake, order)), None)


def _suspected_order(gram: Float, lights: Float, mistakes: dict[str, NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the best order as a whole if it undoes a common mistake, else what is certain of it."""
    best = _best_order(gram, lights, mistakes)
    certain = _certain(gram, lights, best)
    whole = _name(best, mistakes) is not None and _moves(certain) >= ENOUGH * _moves(best)
    return best if whole else certain


def _best_order(gram: Float, lights: Float, mistakes: dict[str, NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the order with the smallest residual that is found; a common mistake if it is nearly as good.

    Of others that are nearly as good, as those of symmetric lights are, the one that moves the fewest lights is taken.
    """
    basis = np.linalg.qr(lights)[0]

    def squares(order: NDArray[np.intp]) -> float:
        return max(float(np.trace(gram) - ((gram @ basis[order]) * basis[order]).sum()), 0.0)

    starts = [np.arange(len(lights)), *sorted(mistakes.values(), key=squares)[:2]]
    found = [_improved(gram, basis, start) for start in starts]
    limit = ALIKE * min(map(squares, found))
    named = [order for order in mistakes.values() if squares(order) <= limit]
    alike = [order for order in found if squares(order) <= limit]
    return named[0] if named else min(alike, key=_moves)


def _moves(order: NDArray[np.intp]) -> int:
    return int(np.count_nonzero(order != np.arange(len(order))))


def _gram(grey: Float) -> Float | None:
    """Return the mean product (K, K) of photographs over the pixels that are lit best, scaled to unit brightness."""
    lit = grey[:, grey.min(axis=0) > 0]
    if lit.shape[1] < PIXELS:
        return None
    kept = least_shaded(lit)
    kept = kept / np.linalg.norm(kept, axis=0)
    return np.asarray(kept @ kept.T / kept.shape[1])


def _residuals(gram: Float, lights: Float) -> Float:
    """Return the mean square residual (K,) of each photograph, as a share of the brightness, by degrees of freedom."""
    outside = np.eye(len(lights)) - lights @ np.linalg.pinv(lights)
    squares = np.maximum(((outside @ gram) * outside).sum(axis=1), 0)
    return np.asarray(squares * len(lights) ** 2 / (np.trace(gram) * (len(lights) - 3)))


def _scaled_residuals(gram: Float, lights: Float) -> Float:
    """Return the mean square residual (K,) of photographs that are scaled each to fit the lights best."""
    inside = lights @ np.linalg.pinv(lights)
    for _ in range(ALTERNATIONS):
        product = inside @ gram
        predicted = np.maximum((product * inside).sum(axis=1), 1e-30)
        gains = predicted / np.maximum(np.abs(np.diagonal(product)), 1e-30)
        gains /= np.sqrt(np.mean(gains**2))
        gram = gains[:, None] * gram * gains[None, :]
    return _residuals(gram, lights)


def _improved(gram: Float, basis: Float, start: NDArray[np.intp]) -> NDArray[np.intp]:
    """Swap lights, the best pair first, as long as the sum of squares becomes smaller."""
    # The sum of squares is a constant minus Σ gram ∘ basis basisᵀ, of which swaps permute rows and columns.
    order = start.copy()
    for _ in range(2 * len(basis)):
        gain = _gains(gram, basis[order])
        first, second = np.unravel_index(np.argmax(gain), gain.shape)
        if gain[first, second] <= 1e-9:
            break
        order[[first, second]] = order[[second, first]]
    return order


def _gains(gram: Float, basis: Float) -> Float:
    """Return by how much Σ gram ∘ projector grows if lights k and l swap places, for all pairs (K, K).

    ``basis`` holds orthonormal columns (K, 3) of what the lights span; the projector is ``basis @ basis.T``.
    """
    # Rows k and l of the projector change places in all columns but k and l; twice, since both are symmetric.
    products, projector = (gram @ basis) @ basis.T, basis @ basis.T
    own = np.diagonal(products)
    gain = 2 * (products + products.T - own[:, None] - own[None, :])
    # The columns k and l themselves are treated wrongly above.
    g, p = np.diagonal(gram), np.diagonal(projector)
    gain += 2 * (g[:, None] - gram) * (p[:, None] - projector) + 2 * (g[None, :] - gram) * (p[None, :] - projector)
    gain += (g[:, None] - g[None, :]) * (p[None, :] - p[:, None])
    return np.asarray(gain)


def _certain(gram: Float, lights: Float, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the order with those of its cycles only that make the residuals of their photographs far smaller."""
    before, after = _scaled_residuals(gram, lights), _scaled_residuals(gram, lights[order])
    cosines = (lights * lights[order]).sum(axis=1)
    certain = np.arange(len(order))
    for cycle in _cycles(order):
        far = cosines[cycle].min() < np.cos(np.radians(CLOSE))
        if far and after[cycle].sum() < REORDERED**2 * before[cycle].sum():
            certain[cycle] = order[cycle]
    return certain


def _cycles(order: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the cycles of a permutation that are longer than one."""
    cycle = components(np.column_stack([np.arange(len(order)), order]), len(order))
    return [np.flatnonzero(cycle == label) for label in np.flatnonzero(np.bincount(cycle) > 1)]


def _described(order: NDArray[np.intp]) -> str:
    """Return which lights change places, counted from one."""
    cycles = _cycles(order)
    if all(len(cycle) == 2 for cycle in cycles) and len(cycles) <= 3:
        pairs = " and ".join(f"{first + 1} and {second + 1}" for first, second in cycles)
        return f"the lights {pairs} swapped"
    return f"{sum(len(cycle) for cycle in cycles)} of {len(order)} lights in other places"
