"""Alpha channels of normal maps: some are masks, others hold a height, a roughness or nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text, repr_for_error
from normalmesh.files.formats import unusable
from normalmesh.files.masks import MARGIN, SOFT, reaches_half, share_between

#: How to take an alpha channel: as a mask where it looks like one, always, or never.
Alpha = Literal["auto", "mask", "ignore"]
#: Least overlap, of the union, between the zeros of an alpha channel and the background that they match.
MATCH = 0.95


def checked_alpha(alpha: Alpha) -> Alpha:
    """Return how to take an alpha channel, or raise :class:`NormalMeshError`."""
    if isinstance(alpha, str) and alpha in get_args(Alpha):
        return alpha
    raise NormalMeshError(f"alpha must be 'auto', 'mask' or 'ignore', not {repr_for_error(alpha)}")


def alpha_mask(
    path: Path,
    alpha: NDArray[np.generic] | None,
    maximum: int | None,
    use: Alpha,
    foreground: Callable[[], Bool],
) -> Bool | None:
    """Return the mask (H, W) that an alpha channel holds, or None; warn if it is ignored because it looks like none.

    Parameters
    ----------
    path
        The file, for messages.
    alpha
        (H, W), None if the file has none.
    maximum
        The value of opaque pixels; None for floats, where it is 1.
    use
        How to take it.
    foreground
        Find the foreground (H, W) of the file without its alpha channel.
    """
    if use == "ignore" or alpha is None:
        if use == "mask":
            raise missing_alpha(path)
        return None
    mask = reaches_half(alpha, maximum)
    if use == "mask" or _has_two_values(alpha, mask):
        return mask
    lowest, highest = np.min(alpha), np.max(alpha)
    opaque = opaque_value(maximum)
    if lowest == highest == opaque:
        return None
    visible = is_visible(alpha, opaque)
    if not visible.all() and _overlap(~visible, ~foreground()) >= MATCH:
        return visible
    warn_of_ignored(path, lowest, highest)
    return None


def opaque_value(maximum: int | None) -> int:
    """Return the value of opaque pixels."""
    return 1 if maximum is None else maximum


def is_visible(alpha: NDArray[np.generic], opaque: int) -> Bool:
    """Return where an alpha channel is not zero, up to a margin."""
    visible: Bool = np.greater(alpha, MARGIN * opaque)
    return visible


def missing_alpha(path: Path) -> NormalMeshError:
    """Return the error for a file without the alpha channel that was asked for."""
    return unusable(path, "has no alpha channel that could be the mask")


def warn_of_ignored(path: Path, lowest: object, highest: object) -> None:
    """Warn that an alpha channel was ignored."""
    warnings.warn(
        f"{path_text(path)}: the alpha channel, from {lowest:g} to {highest:g}, does not look like a mask and was "
        "ignored; alpha='mask' takes it as one",
        NormalMeshWarning,
        stacklevel=5,
    )


def _has_two_values(alpha: NDArray[np.generic], mask: Bool) -> bool:
    """Return whether nearly all pixels have the lowest or the highest value, one of them outside the mask."""
    if mask.all() or not mask.any():
        return False
    return share_between(alpha) <= SOFT


def _overlap(first: Bool, second: Bool) -> float:
    """Return how many pixels are in both sets, as a share of those in one of them."""
    union = np.count_nonzero(first | second)
    return np.count_nonzero(first & second) / union if union else 0.0
