"""What happens while Numba compiles kernels: progress is reported, time counted, references to arrays are checked.

The garbage collector and Ctrl-C wait meanwhile.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, current_thread, main_thread
from typing import Any
from weakref import WeakSet

from numba import types
from numba.core import event

from normalmesh.runtime.kernel_cache import KernelCache
from normalmesh.runtime.kernel_parts import names_used

#: The kernels of all modules that are imported.
kernels: WeakSet[Any] = WeakSet()


@contextmanager
def compilation_reported(report: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``report(number, total)`` whenever the compilation of a kernel starts within the block, from number 1.

    The total counts the kernels of all modules imported so far that are not in the cache; some may not be needed.
    """

    class Counter(event.Listener):
        number = 0

        def on_start(self, event: event.Event) -> None:
            if event.data["dispatcher"] in kernels:
                self.number += 1
                report(self.number, self.number - 1 + max(1, sum(map(_is_missing, list(kernels)))))

        def on_end(self, event: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Counter()):
        yield


def _is_missing(dispatcher: Any) -> bool:
    """Return whether no compiled version of a kernel is in memory or in the cache."""
    cache = dispatcher._cache
    return not dispatcher.signatures and not (isinstance(cache, KernelCache) and cache.was_filled)


class _Clock(event.Listener):
    """Counts the seconds in which kernels compile, in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._compiling, self._began, self._seconds = 0, 0.0, 0.0

    def on_start(self, event: event.Event) -> None:
        with self._lock:
            self._compiling += 1
            if self._compiling == 1:
                self._began = time.monotonic()

    def on_end(self, event: event.Event) -> None:
        with self._lock:
            self._compiling -= 1
            if self._compiling == 0:
                self._seconds += time.monotonic() - self._began

    @property
    def is_running(self) -> bool:
        return self._compiling > 0

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._seconds + (time.monotonic() - self._began if self._compiling else 0.0)


_clock = _Clock()


def compilation_seconds() -> float:
    """Return the seconds in which this process has compiled kernels."""
    return _clock.seconds


def is_compiling() -> bool:
    """Return whether a kernel is being compiled."""
    return _clock.is_running


class _CheckReferences(event.Listener):
    """Raise TypeError if an array is returned from a kernel that counts references to one that does not, or vice versa.

    Such an array would never be released, or twice. Numba itself refuses to create arrays in kernels that do not count.
    """

    def on_start(self, event: event.Event) -> None:
        pass

    def on_end(self, event: event.Event) -> None:
        caller = event.data["dispatcher"]
        for name, value in names_used(caller.py_func):
            called = getattr(value, "dispatcher", None)  # of an inner kernel
            if called is None or _counts_references(called) == _counts_references(caller):
                continue
            if any(_has_arrays(signature.return_type) for signature in called.nopython_signatures):
                raise TypeError(
                    f"{name} returns arrays to {caller.__qualname__}: only one of them has the option allocates=True"
                )


def _counts_references(dispatcher: Any) -> bool:
    """Return whether a kernel counts references to arrays."""
    return bool(dispatcher.targetoptions.get("_nrt", True))


def _has_arrays(kind: types.Type) -> bool:
    """Return whether a type is an array, or a tuple that contains one."""
    return isinstance(kind, types.Array) or any(map(_has_arrays, getattr(kind, "types", ())))


class _PauseCollector(event.Listener):
    """Pause Python's garbage collector while kernels compile: it would traverse millions of objects repeatedly."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._compiling = 0
        self._was_on = False

    def on_start(self, event: event.Event) -> None:
        with self._lock:
            if self._compiling == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._compiling += 1

    def on_end(self, event: event.Event) -> None:
        with self._lock:
            self._compiling -= 1
            if self._compiling == 0 and self._was_on:
                gc.enable()


class _HoldInterrupts(event.Listener):
    """Delay Ctrl-C until a kernel is compiled: LLVM calls Python meanwhile, and the exception would be lost."""

    def __init__(self) -> None:
        self._compiling = 0
        self._handler: Any = None
        self._held = False

    def on_start(self, event: event.Event) -> None:
        if current_thread() is not main_thread():
            return
        self._compiling += 1
        if self._compiling == 1 and callable(handler := signal.getsignal(signal.SIGINT)):
            self._handler = handler
            signal.signal(signal.SIGINT, self._hold)

    def on_end(self, event: event.Event) -> None:
        if current_thread() is not main_thread():
            return
        self._compiling -= 1
        if self._compiling == 0 and self._handler is not None:
            handler, held = self._handler, self._held
            self._handler, self._held = None, False
            signal.signal(signal.SIGINT, handler)
            if held:
                signal.raise_signal(signal.SIGINT)

    def _hold(self, *_: object) -> None:
        self._held = True


event.register("numba:compile", _PauseCollector())
event.register("numba:compile", _HoldInterrupts())
event.register("numba:compile", _clock)
# Registered last: if it raises an error, listeners after it are not notified of the end.
event.register("numba:compile", _CheckReferences())
