"""Sorting on several threads."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Int
from normalmesh.runtime.threads import in_parallel

#: Number of values that are divided among buckets together.
CHUNK = 2**16
#: Number of buckets that are sorted one by one, and of values for each that decide where it ends.
BUCKETS, SAMPLED = 64, 32


def largest_first(values: Float) -> Int:
    """Return the places of the positive ones among the values (N,), largest first, equal ones in their order."""
    if len(values) <= CHUNK:
        return _sorted(np.flatnonzero(values > 0), values)
    sample = values[:: -(-len(values) // (BUCKETS * SAMPLED))]
    ends = np.sort(sample[sample > 0])[SAMPLED::SAMPLED]
    parts: list[list[Int]] = [[] for _ in range(-(-len(values) // CHUNK))]
    in_parallel(_divide, len(parts), values, ends, parts, grain=1)
    buckets = [np.concatenate(each) for each in zip(*parts, strict=True)]
    in_parallel(_sort, len(buckets), values, buckets, grain=1)
    return np.concatenate(buckets[::-1])


def _divide(first: int, last: int, values: Float, ends: Float, parts: list[list[Int]]) -> None:
    """Divide the places of positive values of the chunks first … last − 1 among the buckets: a range kernel."""
    for chunk in range(first, last):
        start = chunk * CHUNK
        places = start + np.flatnonzero(values[start : start + CHUNK] > 0)
        bucket = np.searchsorted(ends, values[places], side="right").astype(np.uint8)
        counts = np.bincount(bucket, minlength=len(ends) + 1)
        parts[chunk] = np.split(places[np.argsort(bucket, kind="stable")], np.cumsum(counts)[:-1])


def _sort(first: int, last: int, values: Float, buckets: list[Int]) -> None:
    """Sort the places in the buckets first … last − 1: a range kernel."""
    for number in range(first, last):
        buckets[number] = _sorted(buckets[number], values)


def _sorted(places: Int, values: Float) -> Int:
    """Return places in the order of their values, largest first."""
    ordered: Int = places[np.argsort(-values[places], kind="stable")]
    return ordered
