"""Memory budgets: limits of work, one inside another, and what is in use."""

import math

import pytest

from normalmesh import NormalMeshError
from normalmesh.runtime import memory_budget
from normalmesh.runtime.memory_budget import hold_memory, limited_memory, require_memory

MB = 1_000_000


def test_what_is_held_counts():
    with limited_memory(10 * MB):
        require_memory(10 * MB, "all", "do less")
        hold_memory(4 * MB)
        require_memory(6 * MB, "the rest", "do less")
        message = r"^more needs about 11 MB of memory but 10 MB are allowed \(memory_limit\); do less; a larger"
        with pytest.raises(NormalMeshError, match=message):
            require_memory(7 * MB, "more", "do less")
        with limited_memory(None):
            hold_memory(6 * MB)
            with pytest.raises(NormalMeshError):
                require_memory(1 * MB, "more", "do less")
        require_memory(6 * MB, "the rest", "do less")
        with limited_memory(math.inf):
            require_memory(10**15, "anything", "do less")


def test_the_limit_is_what_is_available_at_the_beginning(monkeypatch):
    monkeypatch.setattr(memory_budget, "available_memory", lambda: 5 * MB)
    with pytest.raises(NormalMeshError, match="but 5 MB are available"):
        require_memory(6 * MB, "it", "do less")
    with limited_memory(None):
        monkeypatch.setattr(memory_budget, "available_memory", lambda: 1 * MB)
        require_memory(5 * MB, "it", "do less")
    monkeypatch.setattr(memory_budget, "available_memory", lambda: None)
    require_memory(10**15, "it", "do less")
