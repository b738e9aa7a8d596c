"""``inner``: the decorator of kernels that only other kernels call.

What Numba adds to every kernel so that Python can call it, and a file of its own in the cache, takes longer to make
than a small kernel. Inner kernels have neither. They are also compiled once for whole numbers of all kinds, which are
passed as int64: indices from arrays of int32, from loops, and written in the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

from numba import njit, types
from numba.core.datamodel import models, register_default
from numba.core.typing import Signature

from normalmesh import _collector  # noqa: F401  # for whoever compiles kernels


class InnerKernel:
    """A kernel that other kernels may call. Called from Python, as tests do, it runs as plain Python."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        bare: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
        self._kernel = njit(**bare)(function)
        self.py_func = function
        #: Where Numba looks for ``inline``.
        self.targetoptions = self._kernel.targetoptions
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


def inner(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a kernel for calls from other kernels only, with options as of :func:`numba.njit`.

    ``inline="always"``, for kernels that are called in one place, saves compiling them on their own.
    """
    if function is not None:
        return InnerKernel(function, options)
    return lambda function: InnerKernel(function, options)
