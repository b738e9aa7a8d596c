"""Finding out whether the lights are in the order of the photographs.

Photographs of a matt surface, as vectors of all lights for each pixel, lie in the space that the columns of the light
directions span. In another order of the lights they leave it. The sum of squares that remains depends only on the
Gram matrix of the photographs, so that thousands of orders cost nothing: finding the best one is a quadratic assignment
problem, in which swaps of two lights are tried from some common mistakes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float
from normalmesh.mesh.components import components
from normalmesh.photometric.matt_surface import least_shaded

#: The least number of photographs and of pixels to judge by.
PHOTOGRAPHS, PIXELS = 5, 50
#: Residual of a photograph, as a share of the brightness, up to which it has its own light.
RIGHT = 0.01
#: Share of its residual that a photograph has at most if it gets its own light.
IMPROVED = 0.65
#: Ratio of sums of squares up to which two orders fit equally well.
ALIKE = 1.2
#: Share of the lights that a common mistake moves; if so many of the moves are certain, all are.
ENOUGH = 0.3
#: Angle in degrees up to which lights may change places unnoticed: directions are seldom known better.
CLOSE = 15.0
#: Number of times that intensities and a surface are fitted in turn.
ALTERNATIONS = 5


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
    if moved.any() and after[moved].sum() < IMPROVED**2 * before[moved].sum():
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
        if far and after[cycle].sum() < IMPROVED**2 * before[cycle].sum():
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
