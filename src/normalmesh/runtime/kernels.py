"""``kernel`` and ``inner``: the decorators of all kernels, thin wrappers of :func:`numba.njit`.

Python calls *kernels*; their machine code is kept on disk for later runs. Kernels call *inner kernels*, whose code
becomes part of theirs. With ``NUMBA_DISABLE_JIT=1`` both are plain Python functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial, update_wrapper
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]  # set when Numba is imported
from numba.extending import models, register_model, typeof_impl

from normalmesh.runtime.compilation import kernels
from normalmesh.runtime.kernel_cache import KernelCache

#: Options of all kernels. Numba would pass an option that is not set on from a kernel to those that it is the first to
#: call, so that results depended on the order of compilation. Divisions by zero give inf, nan or 0, as in NumPy.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "fastmath": False, "error_model": "numpy", "forceinline": False}


def kernel(function: Callable[..., Any] | None = None, *, cache: bool = True, **options: Any) -> Any:
    """Compile a kernel that Python calls, with options of :func:`numba.njit`, and keep it on disk for later runs."""
    if function is None:
        return partial(kernel, cache=cache, **options)
    compiled = njit(**{**OPTIONS, "_nrt": True, **options})(function)
    if DISABLE_JIT:
        return np.errstate(all="ignore")(compiled)
    if cache:
        compiled._cache = KernelCache(compiled)
    kernels.add(compiled)
    return compiled


def inner(function: Callable[..., Any] | None = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a kernel that other kernels call, with options of :func:`numba.njit`.

    Set ``allocates=True`` for kernels that create arrays and for kernels to which these are returned. All others do not
    count references to arrays, which would take a sixth of the time of a reconstruction.

    Set ``forceinline=True`` for kernels that are called in one place, or so often that passing arrays takes time.

    No kernel of the package has the option ``fastmath``: releases of Numba, and copies of a kernel in its callers,
    would round differently. Sums that must be fast are written as several partial sums.
    """
    if function is None:
        return partial(inner, allocates=allocates, **options)
    compiled = njit(**{**OPTIONS, "no_cpython_wrapper": True, "_nrt": allocates, **options})(function)
    return compiled if DISABLE_JIT else InnerKernel(compiled)


class InnerKernel:
    """A kernel that other kernels call. Tests can call it from Python, too, and run the same compiled code.

    Integers of all types are passed as int64, so that the kernel is compiled once for indices from int32 arrays, loops
    and literals.
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
    """The Numba type of an inner kernel. Callers convert arguments to the types of its signature."""

    def get_call_type(self, context: Any, args: tuple[types.Type, ...], kws: Mapping[str, types.Type]) -> Any:
        return super().get_call_type(context, tuple(_widened(kind) for kind in args), kws)


register_model(_InnerType)(models.OpaqueModel)


@typeof_impl.register(InnerKernel)
def _type_of_inner(value: InnerKernel, _: Any) -> _InnerType:
    return _InnerType(value.dispatcher)


def _widened(kind: types.Type) -> types.Type:
    """Return int64 for integer types, and the type of a literal for its literal type."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind
