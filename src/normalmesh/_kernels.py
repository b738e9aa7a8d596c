"""``kernel`` and ``inner``: the decorators of all kernels, which compile them faster than Numba on its own.

Compiling is what a first run mostly does, and most of that is not translating our code. Left out here, with the same
machine code in the end:

- What lets Python call a kernel, a file of its own in the cache, machine code and optimisation of its own, for *inner*
  kernels, which only other kernels call and which are optimised within those.
- Passes for closures, generators, objects and array expressions, of which our kernels have none.
- Optimising in several rounds, made for code that counts references in loops.
- Finding out again for each ``+`` and each ``[]`` which one belongs to these types.

This relies on parts of Numba that are not documented. With releases where it was not tested, Numba compiles alone.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, update_wrapper
from threading import Lock, current_thread, main_thread
from typing import Any

import numba
from llvmlite.binding import Linkage
from numba import njit, types
from numba.core import event, typed_passes, typing, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, PassManager
from numba.core.datamodel import models, register_default
from numba.core.typing import Signature
from numba.np.ufunc import parallel

from normalmesh._kernelcache import cache_of

#: First and last release of Numba with which our compiler was tested.
TESTED = ((0, 68), (0, 68))
PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel that Python calls, with options as of :func:`numba.njit`, and keep it for later runs."""
    if function is None:
        return lambda function: kernel(function, **options)
    if options.get("parallel"):
        return ParallelKernel(function, options)
    settings = {"nogil": True, "no_cfunc_wrapper": True, **_compiled_by(KernelCompiler), **options}
    return _kept(function, settings)


def _kept(function: Callable[..., Any], settings: dict[str, Any]) -> Any:
    """Compile as :func:`numba.njit`, but with our cache on disk."""
    compiled = njit(**{**settings, "cache": False})(function)
    if settings.get("cache", True):
        compiled._cache = cache_of(function, ".parallel" if settings.get("parallel") else "")
    return compiled


def inner(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel for calls from other kernels only, with options as of :func:`numba.njit`.

    ``forceinline=True``, for kernels that are called in one place, or so often that handing over arrays matters, makes
    them part of their callers.
    """
    if function is not None:
        return InnerKernel(function, options)
    return lambda function: InnerKernel(function, options)


def _compiled_by(compiler: type[Compiler]) -> dict[str, Any]:
    release = tuple(int(part) for part in numba.__version__.split(".")[:2])
    return {"pipeline_class": compiler} if TESTED[0] <= release <= TESTED[1] else {}


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
        bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False}
        self._kernel = njit(**{**bare, **_compiled_by(InnerCompiler), **options})(function)
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


class _Library(JITCodeLibrary):
    """The code of a kernel and of all that it calls, optimised once, when it is complete."""

    def finalize(self) -> None:
        reached = self.reached()
        self._link(self._final_module, reached)
        # So that Numba does not link them again.
        self._linking_libraries = []
        super().finalize()
        for library in reached:
            if isinstance(library, _InnerLibrary):
                self.codegen.set_env(*library.environment)

    def _link(self, module: Any, libraries: Iterable[Any]) -> None:
        """Add the code of libraries to a module."""
        for library in libraries:
            self._reload_init.update(library._reload_init)
            own = isinstance(library, _InnerLibrary)
            module.link_in(library._final_module if own else library._get_module_for_linking(), preserve=True)

    def reached(self) -> dict[Any, None]:
        """The libraries of all kernels that this one calls, directly or not."""
        found: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library not in found:
                found[library] = None
                if isinstance(library, _InnerLibrary):
                    waiting += library._linking_libraries
        return found

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _InnerLibrary(_Library):
    """The code of an inner kernel alone, for the libraries of its callers. It is never run from here.

    Attributes
    ----------
    environment
        Name, and where Numba keeps a kernel's constant objects; set in the caller's code.
    """

    environment: tuple[str, Any]

    @property
    def codegen(self) -> _InnerLibrary:
        """Numba asks it for :meth:`set_env` only."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        self.environment = (name, environment)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        # Many callers may bring a copy of the same code.
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """For callers that Numba compiles alone, such as parallel loops: all that this kernel calls, too."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            self._link(self._shared_module, self.reached())
        return self._shared_module


class _RememberingContext(typing.Context):
    """Numba's table of types and functions, which also remembers what an operator or function gives on some types."""

    signatures: dict[Any, Signature] = {}  # noqa: RUF012  # one for all

    def __init__(self, context: typing.Context) -> None:
        self.__dict__ = context.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Signature | None:
        on_values = isinstance(func, str)  # such as an index written in the code
        if on_values or (isinstance(func, types.Callable) and not isinstance(func, types.Function)):
            return super().resolve_function_type(func, args, kws)
        key = (func, tuple(args), tuple(kws.items()) if kws else ())
        signature = self.signatures.get(key)
        if signature is None:
            signature = super().resolve_function_type(func, args, kws)
            if signature is not None:
                self.signatures[key] = signature
        return signature


class KernelCompiler(Compiler):
    library_class: type[_Library] = _Library

    def __init__(self, typingctx: typing.Context, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(_RememberingContext(typingctx), targetctx, library, *rest)

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.library_class(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("kernel")
        for step in PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class InnerCompiler(KernelCompiler):
    library_class = _InnerLibrary


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
