"""``kernel`` and ``inner``: the decorators of all kernels, which compile them faster than Numba on its own.

Compiling is what a first run mostly does, and most of that is not translating our code. :mod:`.compiler`
leaves out, with the same machine code in the end:

- What lets Python call a kernel, a file of its own in the cache, machine code and optimisation of its own, for *inner*
  kernels, which only other kernels call and which are optimised within those; for Numba's own functions, too.
- Passes for closures, generators, objects and array expressions, of which our kernels have none.
- Counting references to arrays in kernels that only work on those they are given.
- Optimising in several rounds, made for code that counts references in loops.
- Finding out again for each ``+`` and each ``[]`` which one belongs to these types.
- In later runs, importing all that compiling needs.

This relies on parts of Numba that are not documented. With releases where it was not tested, Numba compiles alone.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Mapping
from functools import cached_property, partial, update_wrapper
from threading import Lock, current_thread, main_thread
from typing import Any

import numba
from numba import njit, types
from numba.core import event
from numba.core.datamodel import models, register_default
from numba.core.typing import Signature
from numba.np.ufunc import parallel

from normalmesh.runtime.kernel_cache import cache_of

#: First and last release of Numba with which our compiler was tested.
TESTED = ((0, 68), (0, 68))


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel that Python calls, with options as of :func:`numba.njit`, and keep it for later runs."""
    if function is None:
        return partial(kernel, **options)
    if options.get("parallel"):
        return ParallelKernel(function, options)
    settings = {"nogil": True, "no_cfunc_wrapper": True, **options}
    if _is_tested():
        from normalmesh.runtime.compiler import KernelCompiler

        settings["pipeline_class"] = KernelCompiler
    return _kept(function, settings)


def _kept(function: Callable[..., Any], settings: dict[str, Any]) -> Any:
    """Compile as :func:`numba.njit`, but with our cache on disk."""
    compiled = njit(**{**settings, "cache": False})(function)
    if settings.get("cache", True):
        ours = "pipeline_class" in settings
        compiled._cache = cache_of(function, ".parallel" if settings.get("parallel") else "", complete=ours)
    return compiled


def inner(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel for calls from other kernels only, with options as of :func:`numba.njit`.

    ``forceinline=True``, for kernels that are called in one place, or so often that handing over arrays matters, makes
    them part of their callers.
    """
    return partial(inner, **options) if function is None else InnerKernel(function, options)


def _is_tested() -> bool:
    release = tuple(int(part) for part in numba.__version__.split(".")[:2])
    return TESTED[0] <= release <= TESTED[1]


class ParallelKernel:
    """A kernel with parallel loops of Numba, for any thread and any process; kernels must not call it.

    Numba's threads abort the process where they are used after a fork, or, by the layer called workqueue, from two
    Python threads at once. So loops of a forked process run on one thread, and those of workqueue one after another.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._options = {"nogil": True, **options}
        self._parallel = _kept(function, self._options)
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if _numba_threads.lost:
            return self._alone(*arguments)
        if _numba_threads.shareable:
            return self._parallel(*arguments)
        with _numba_threads.lock:
            return self._parallel(*arguments)

    @cached_property
    def _alone(self) -> Any:
        return _kept(self.__wrapped__, {**self._options, "parallel": False})  # type: ignore[attr-defined]


class _NumbaThreads:
    """Whether a fork has left Numba's threads behind, and how several callers may use them."""

    def __init__(self) -> None:
        self.lost = False
        self.lock = Lock()

    @property
    def shareable(self) -> bool:
        try:
            return numba.threading_layer() in ("omp", "tbb")
        except ValueError:  # nobody has used them yet
            return False

    def forked(self) -> None:
        self.lock = Lock()
        self.lost = self.lost or getattr(parallel, "_is_initialized", True)


_numba_threads = _NumbaThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_numba_threads.forked)


class InnerKernel:
    """A kernel that other kernels may call. Called from Python, as tests do, it runs as plain Python.

    It is compiled once for whole numbers of all kinds, which are passed as int64: indices from arrays of int32, from
    loops, and written in the code.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # Numba would pass forceinline on to all that such a kernel calls.
        settings = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False, **options}
        if _is_tested():
            from normalmesh.runtime.compiler import InnerCompiler

            settings["pipeline_class"] = InnerCompiler
        self._kernel = njit(**settings)(function)
        self.py_func = function
        update_wrapper(self, function)

    @property
    def _numba_type_(self) -> types.Dispatcher:
        return _InnerType(self._kernel)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


class _InnerType(types.Dispatcher):
    """What kernels see of an inner kernel; they convert arguments to the types of the signature."""

    def get_call_type(
        self, context: Any, args: tuple[types.Type, ...], kws: Mapping[str, types.Type]
    ) -> Signature | None:
        return super().get_call_type(context, tuple(_widened(kind) for kind in args), kws)


register_default(_InnerType)(models.OpaqueModel)


def _widened(kind: types.Type) -> types.Type:
    """int64 for whole numbers, and no type that stands for one value only."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind


class _PauseCollector(event.Listener):
    """Python's garbage collector waits while kernels compile: it would walk millions of objects again and again."""

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
    """Ctrl-C waits until a kernel is compiled: LLVM calls Python there, and the exception would be lost."""

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
