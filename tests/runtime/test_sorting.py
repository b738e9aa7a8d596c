"""Sorting in buckets, compared with sorting everything at once."""

import numpy as np
import pytest

from normalmesh.runtime import sorting
from normalmesh.runtime.sorting import largest_first
from thread_counts import on_one_and_on_several


def values():
    """Return values of all kinds: distinct, with many equal ones, mostly not positive, none at all."""
    rng = np.random.default_rng(2)
    normal = rng.normal(size=1000)
    return {
        "distinct": normal,
        "equal": np.ones(1000),
        "few distinct": rng.integers(-2, 3, 1000).astype(float),
        "heavy tails": np.exp(20 * normal),
        "infinite": np.where(normal > 1, np.inf, normal),
        "few positive": np.where(np.arange(1000) % 333 == 7, 1.0, -(normal**2)),
        "not positive": -(normal**2),
        "none": np.zeros(0),
    }


@pytest.mark.parametrize("name", values())
def test_buckets_change_nothing_nor_do_threads(name, monkeypatch):
    monkeypatch.setattr(sorting, "CHUNK", 50)
    monkeypatch.setattr(sorting, "SAMPLED", 3)
    given = values()[name]
    expected = [place for place in np.argsort(-given, kind="stable") if given[place] > 0]
    for found in on_one_and_on_several(lambda: largest_first(given)):
        assert found.dtype == np.int64
        assert found.tolist() == expected
