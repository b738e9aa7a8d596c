"""Compile inner kernels for graphics cards, as they are. No card is needed."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.core.typing import signature
from numba.core.untyped_passes import ExtractByteCode

from normalmesh.runtime import kernels
from normalmesh.runtime.kernel_parts import names_used
from normalmesh.runtime.kernels import InnerKernel

#: The cards that kernels are compiled for, as a compute capability.
CARDS = (8, 0)

Types = tuple[Any, ...]


def called_by(function: Any) -> dict[str, InnerKernel]:
    """Return the inner kernels that a Python function calls, by their names in it."""
    return {name: value for name, value in names_used(function) if isinstance(value, InnerKernel)}


class DeviceTwins:
    """The twins of inner kernels for graphics cards: the same Python functions, which call twins instead of kernels."""

    def __init__(self) -> None:
        # Numba's module for cards wants a name that NumPy 2.5 no longer has.
        vars(np).setdefault("row_stack", np.vstack)
        from numba import cuda

        self._jit = cuda.jit(device=True, opt=False)
        self._twins: dict[InnerKernel, Any] = {}

    def of(self, inner: InnerKernel) -> Any:
        """Return the twin of an inner kernel."""
        if inner not in self._twins:
            function = inner.py_func
            names = function.__globals__ | {name: self.of(each) for name, each in called_by(function).items()}
            parts = function.__code__, names, function.__name__, function.__defaults__, function.__closure__
            self._twins[inner] = self._jit(FunctionType(*parts))
        return self._twins[inner]

    def ptx(self, inner: InnerKernel, arguments: Types) -> str:
        """Compile an inner kernel, with those that it calls, to PTX."""
        from numba.cuda import dispatcher

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=CARDS))
            return self.of(inner).compile_device(arguments).library.get_asm_str(cc=CARDS)


def argument_types(callers: list[Any]) -> dict[Any, set[Types]]:
    """Return the types with which kernels call inner kernels, directly or not, by the dispatchers of these.

    The types of the kernels' own arguments are those of their calls so far. Nothing is compiled.
    """
    returned: dict[tuple[Any, Types], Any] = {}

    def call_type(kind: Any, _: Any, arguments: Types, keywords: Any) -> Any:
        assert not keywords
        arguments = tuple(map(kernels._widened, arguments))
        key = kind.dispatcher, arguments
        if key not in returned:
            returned[key] = return_type(kind.dispatcher.py_func, arguments)
        return signature(returned[key], *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels._InnerType, "get_call_type", call_type)
        for caller in callers:
            for arguments in caller.signatures:
                return_type(caller.py_func, arguments)
    called: dict[Any, set[Types]] = {}
    for dispatcher, arguments in returned:
        called.setdefault(dispatcher, set()).add(arguments)
    return called


def return_type(function: Any, arguments: Types) -> Any:
    """Infer what a function returns for arguments of the given types."""
    flags = Flags()
    flags.nrt = True  # kernels may return arrays
    compiler = _TypeInference(cpu_target.typing_context, cpu_target.target_context, None, arguments, None, flags, {})
    compiler.state.func_id = FunctionIdentity.from_function(function)
    ExtractByteCode().run_pass(compiler.state)
    (passes,) = compiler.define_pipelines()
    passes.run(compiler.state)
    return compiler.state.return_type


class _TypeInference(CompilerBase):
    """A compiler that only infers types."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
        passes.add_pass(NopythonTypeInference, "infer types")
        passes.finalize()
        return [passes]
