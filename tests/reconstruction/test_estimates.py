"""Estimates of memory and time, and the error for what does not fit."""

import math

import pytest

from normalmesh import NormalMeshError, estimate_memory, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.reconstruction import estimates
from normalmesh.reconstruction.estimates import estimate_seconds


def test_memory_is_positive_and_grows():
    for pixels, foreground, vertices in ((1, 1, 3), (10**6, 5 * 10**5, 10**4), (64 * 10**6, 64 * 10**6, 10**6)):
        estimate = estimate_memory(pixels, foreground, vertices)
        assert 0 < estimate <= estimate_memory(pixels, foreground, 2 * vertices)
        assert estimate < estimate_memory(2 * pixels, foreground, vertices)
        assert estimate < estimate_memory(2 * pixels, 2 * foreground, vertices)
    assert estimate_memory(10**6, 10**6, 5 * 10**5) > estimate_memory(10**6, 10**6, 10**4)


def test_seconds_grow():
    decimation, integration = estimate_seconds(10**6, 10**4)
    assert decimation > 0
    assert integration > 0
    assert sum(estimate_seconds(2 * 10**6, 10**4)) > decimation + integration
    assert estimate_seconds(10**6, 10**5)[1] > integration


def test_too_large_is_refused_before_work_begins():
    normal_map = Medallion(64).normal_map
    reported = []
    with pytest.raises(NormalMeshError, match=r"needs about \d+ MB of memory but 5 MB are allowed \(memory_limit\); "):
        reconstruct(normal_map, vertices=100, memory_limit=5e6, progress=reported.append)
    assert reported == []


def test_what_is_available_is_the_limit(monkeypatch):
    normal_map = Medallion(48).normal_map
    monkeypatch.setattr(estimates, "available_memory", lambda: 1000)
    with pytest.raises(NormalMeshError, match="1 MB are available"):
        reconstruct(normal_map, compression=0.9)
    assert len(reconstruct(normal_map, vertices=100, memory_limit=math.inf).vertices) == 100
    monkeypatch.setattr(estimates, "available_memory", lambda: None)
    assert len(reconstruct(normal_map, vertices=100).vertices) == 100
