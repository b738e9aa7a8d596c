"""Memory budget: the limit that work must stay within, and the error before it is exceeded.

What work will need is known from counts, such as the vertices of a mesh, before it is allocated. So the checks do not
depend on what else the process does meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Real

from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.runtime.memory import available_memory, bytes_text

#: Bytes that no machine has.
UNLIMITED = 2.0**60


@dataclass
class _Budget:
    """A limit in bytes, None if it is unknown; whether a caller set it; and the bytes of it that are in use."""

    limit: float | None
    is_given: bool
    held: float = 0.0


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited_memory(limit: float | None) -> Iterator[None]:
    """Limit the memory (bytes) of all work inside, beside what is in use now.

    None stands for what a limit around this one leaves, or for what is available now.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Real) or not limit > 0):
        raise NormalMeshError(
            f"memory_limit must be a positive number of bytes, or math.inf, not {repr_for_error(limit)}"
        )
    around = _budget.get()
    if limit is not None:
        budget = _Budget(limit, True)
    else:
        budget = _Budget(available_memory(), False) if around is None else replace(around)
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def hold_memory(count: float) -> None:
    """Count bytes that stay in use until the innermost limit ends."""
    budget = _budget.get()
    if budget is not None:
        budget.held += count


def memory_left() -> float | None:
    """Return the bytes that work may still use: within the limit, without one those available; None if unknown."""
    budget = _budget.get() or _Budget(available_memory(), False)
    return None if budget.limit is None else max(min(budget.limit, UNLIMITED) - budget.held, 0.0)


def require_memory(count: float, task: str, remedy: str) -> None:
    """Raise an error if a task needs more bytes, beside those held, than the limit; without one, than are available.

    ``task`` is the subject of the message, ``remedy`` says what to do.
    """
    budget = _budget.get() or _Budget(available_memory(), False)
    needed = budget.held + count
    if budget.limit is None or needed <= budget.limit:
        return
    which = "are allowed (memory_limit)" if budget.is_given else "are available"
    raise NormalMeshError(
        f"{task} needs about {bytes_text(needed)} of memory but {bytes_text(budget.limit)} {which}; {remedy}; "
        "a larger memory_limit (--memory-limit) lets it try"
    )
