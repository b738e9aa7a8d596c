"""What happens while Numba compiles kernels: progress is reported, time counted.

The garbage collector and Ctrl-C wait meanwhile.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from typing import Any
from weakref import WeakSet

from numba.core import event

#: The kernels of all modules that are imported.
kernels: WeakSet[Any] = WeakSet()


class _Compilation(event.Listener):
    """Told of the beginning and the end of each compilation.

    Compilations are nested, as a kernel compiles those that it calls; Numba lets only one thread compile at a time.
    """

    def __init__(self) -> None:
        # Called when the compilation of a kernel that Python calls begins.
        self.observers: list[Callable[[], None]] = []
        self.depth, self.began, self.seconds = 0, 0.0, 0.0
        self._outermost = ExitStack()

    def on_start(self, event: event.Event) -> None:
        self.depth += 1
        if self.depth == 1:
            self.began = time.monotonic()
            self._outermost.enter_context(_collector_paused())
            self._outermost.enter_context(_interrupts_held())
        if event.data["dispatcher"] in kernels:
            for observer in self.observers:
                observer()

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.monotonic() - self.began
            self._outermost.close()


_compilation = _Compilation()
event.register("numba:compile", _compilation)


def compilation_seconds() -> float:
    """Return the seconds in which this process has compiled kernels; those of the current compilation are included."""
    return _compilation.seconds + (time.monotonic() - _compilation.began if _compilation.depth else 0.0)


def is_compiling() -> bool:
    """Return whether a kernel is being compiled."""
    return _compilation.depth > 0


@contextmanager
def compilation_reported(report: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``report(number, total)`` whenever the compilation of a kernel starts within the block, from number 1.

    The total counts the kernels of all modules imported so far that are not in the cache; some may not be needed.
    """
    number = 0

    def count() -> None:
        nonlocal number
        number += 1
        report(number, number - 1 + max(1, sum(map(_is_missing, list(kernels)))))

    _compilation.observers.append(count)
    try:
        yield
    finally:
        _compilation.observers.remove(count)


def _is_missing(dispatcher: Any) -> bool:
    """Return whether no compiled version of a kernel is in memory or in the cache."""
    return not dispatcher.signatures and not getattr(dispatcher._cache, "was_filled", False)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector: it would traverse the millions of objects of the compiler repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C until the end: LLVM calls Python while it compiles, and the exception would be lost."""
    handler = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(handler):
        yield
        return
    held: list[object] = []
    signal.signal(signal.SIGINT, lambda *_: held.append(_))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
