"""While Numba compiles, Python's garbage collector waits: it would walk millions of objects again and again."""

from __future__ import annotations

import gc
from threading import Lock

from numba.core import event


class _PauseCollector(event.Listener):
    """Stops the collector when the first of some kernels begins to compile, and starts it again after the last."""

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


event.register("numba:compile", _PauseCollector())
