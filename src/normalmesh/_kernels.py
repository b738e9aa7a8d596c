"""``kernel`` and ``inner``: the decorators of all kernels, which compile them faster than Numba on its own.

Compiling is what a first run mostly does, and most of that is not translating our code. :mod:`normalmesh._compiler`
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
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from threading import Lock
from typing import Any

import numba
from numba import njit, types
from numba.core import event
from numba.core.datamodel import models, register_default
from numba.core.typing import Signature

#: First and last release of Numba with which our compiler was tested.
TESTED = ((0, 68), (0, 68))


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel that Python calls, with options as of :func:`numba.njit`, and keep it for later runs."""
    if function is None:
        return partial(kernel, **options)
    settings: dict[str, Any] = {"cache": True, "nogil": True, **options}
    if options.get("parallel") or not _is_tested():
        return njit(**settings)(function)
    from normalmesh._compiler import KernelCache, KernelCompiler

    settings |= {"no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}
    compiled: Any = njit(**settings)(function)
    if settings["cache"]:
        compiled._cache = KernelCache(function)
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


class InnerKernel:
    """A kernel that other kernels may call. Called from Python, as tests do, it runs as plain Python.

    It is compiled once for whole numbers of all kinds, which are passed as int64: indices from arrays of int32, from
    loops, and written in the code.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # Numba would pass forceinline on to all that such a kernel calls.
        settings = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False, **options}
        if _is_tested():
            from normalmesh._compiler import InnerCompiler

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


event.register("numba:compile", _PauseCollector())
