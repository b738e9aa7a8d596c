"""``kernel`` and ``inner``: the decorators of all kernels, thin wrappers of :func:`numba.njit`.

Python calls *kernels*; their machine code is kept on disk for later runs. Kernels call *inner kernels*, whose code
becomes part of theirs.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial, update_wrapper
from threading import Lock, current_thread, main_thread
from typing import Any
from weakref import WeakSet

from numba import njit, types
from numba.core import event
from numba.extending import models, register_model, typeof_impl

from normalmesh.runtime.kernel_cache import KernelCache, cache_of, names_used

#: Defaults of all kernels. Numba hands an option that is not set on from a kernel to those that it is the first to
#: call; results would depend on the order of compilation.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "fastmath": False, "error_model": "python", "forceinline": False}

#: All kernels of modules that are imported.
_kernels: WeakSet[Any] = WeakSet()


def kernel(function: Callable[..., Any] | None = None, *, cache: bool = True, **options: Any) -> Any:
    """Compile a kernel that Python calls, with options of :func:`numba.njit`, and keep it on disk for later runs."""
    if function is None:
        return partial(kernel, cache=cache, **options)
    compiled = njit(**{**OPTIONS, "_nrt": True, **options})(function)
    if cache:
        compiled._cache = cache_of(compiled)
    _kernels.add(compiled)
    return compiled


def inner(function: Callable[..., Any] | None = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a kernel for calls from other kernels, with options as of :func:`numba.njit`.

    ``allocates=True`` is for kernels that make arrays, and for those to which they return them. Others do not count
    references to the arrays that they are given, which would take a sixth of the time of a reconstruction.

    ``forceinline=True``, for kernels that are called in one place, or so often that handing over arrays matters, makes
    them part of their callers.

    No kernel of the package has the option ``fastmath``: releases of Numba, and copies of a kernel in its callers,
    would round differently. Sums that must be fast are written as several partial sums.
    """
    if function is None:
        return partial(inner, allocates=allocates, **options)
    return InnerKernel(njit(**{**OPTIONS, "no_cpython_wrapper": True, "_nrt": allocates, **options})(function))


class InnerKernel:
    """A kernel that other kernels call. Tests may call it from Python, too, and run the same compiled code.

    It is compiled once for whole numbers of all kinds, which are passed as int64: indices from arrays of int32, from
    loops, and written in the code.

    Attributes
    ----------
    py_func
        The function as it is written, not compiled.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher, self.py_func = dispatcher, dispatcher.py_func
        update_wrapper(self, self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        return self._called_from_python(*arguments)

    @cached_property
    def _called_from_python(self) -> Any:
        @njit
        def call(*arguments: Any) -> Any:
            return self(*arguments)

        return call


class _InnerType(types.Dispatcher):
    """What kernels see of an inner kernel; they convert arguments to the types of the signature."""

    def get_call_type(self, context: Any, args: tuple[types.Type, ...], kws: Mapping[str, types.Type]) -> Any:
        return super().get_call_type(context, tuple(_widened(kind) for kind in args), kws)


register_model(_InnerType)(models.OpaqueModel)


@typeof_impl.register(InnerKernel)
def _type_of_inner(value: InnerKernel, _: Any) -> _InnerType:
    return _InnerType(value.dispatcher)


def _widened(kind: types.Type) -> types.Type:
    """int64 for whole numbers, and no type that stands for one value only."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind


@contextmanager
def compilation_reported(report: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``report(number, total)`` when a kernel inside begins to be compiled, the first with number 1.

    The total counts the kernels of all modules imported so far that are not in the cache; some may not be needed.
    """

    class Counter(event.Listener):
        number = 0

        def on_start(self, event: event.Event) -> None:
            if event.data["dispatcher"] in _kernels:
                self.number += 1
                report(self.number, self.number - 1 + max(1, sum(map(_is_missing, list(_kernels)))))

        def on_end(self, event: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Counter()):
        yield


def _is_missing(dispatcher: Any) -> bool:
    """Whether no compiled version of a kernel is in memory or in the cache."""
    cache = dispatcher._cache
    return not dispatcher.signatures and not (isinstance(cache, KernelCache) and cache.was_filled)


class _CheckReferences(event.Listener):
    """Arrays are returned only between kernels that count references, or between kernels that do not.

    Else an array would never be released, or twice. Numba itself refuses to make arrays where nothing is counted.
    """

    def on_start(self, event: event.Event) -> None:
        pass

    def on_end(self, event: event.Event) -> None:
        caller = event.data["dispatcher"]
        for _, called in names_used(caller.py_func):
            if isinstance(called, InnerKernel) and _counts(called.dispatcher) != _counts(caller):
                compiled = called.dispatcher.overloads.values()
                if any(_has_arrays(each.signature.return_type) for each in compiled):
                    raise TypeError(
                        f"{called.__qualname__} returns arrays to {caller.__qualname__}: "
                        "only one of them has the option allocates=True"
                    )


def _counts(dispatcher: Any) -> bool:
    """Whether a kernel counts references."""
    return dispatcher.targetoptions.get("_nrt", True)


def _has_arrays(kind: types.Type) -> bool:
    """Whether a value of this kind is an array, or a tuple with one."""
    return isinstance(kind, types.Array) or any(map(_has_arrays, getattr(kind, "types", ())))


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
event.register("numba:compile", _CheckReferences())
event.register("numba:compile", _HoldInterrupts())
