"""The compiler of :mod:`normalmesh.runtime.kernels`, made of parts of Numba's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite.binding import Linkage, parse_assembly
from numba import types
from numba.core import errors, ir, typed_passes, typing, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, PassManager
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.datamodel import models, register_default
from numba.core.ir_utils import build_definitions
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import ConfigStack
from numba.core.typing import Signature
from numba.core.typing.templates import _OverloadFunctionTemplate


class Library(JITCodeLibrary):
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

    def _get_module_for_linking(self) -> Any:
        raise TypeError(f"{self.name} is called by another kernel, which only inner kernels may be")

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

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """For the cache: machine code and the names in it, but not what other kernels would need to call this one."""
        module = self._final_module
        named = [value.name for value in (*module.functions, *module.global_variables) if not value.is_declaration]
        names = parse_assembly("".join(f'@"{name}" = global i8 0\n' for name in named))
        return self.name, "object", (self._get_compiled_object(), names.as_bitcode())

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _InnerLibrary(Library):
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


def _bare(template: Any) -> Any:
    """A function of Numba's that is written in Python, as an inner kernel; others as they are."""
    if not (issubclass(template, _OverloadFunctionTemplate) and template._inline.is_never_inline):
        return template
    options = {**template._jit_options, "no_cfunc_wrapper": True, "pipeline_class": BorrowedCompiler}
    own = {"_jit_options": options, "_impl_cache": {}, "_compiled_overloads": {}, "_inline_overloads": {}}
    return type(template)(template.__name__, (template,), own)


class _Operator(types.Function):
    """An operator or function of Numba's that remembers what it gives on which types, whatever kernel asks."""

    flags = Flags()
    setattr(flags, "nrt", True)  # noqa: B010  # not declared where a type checker would see it

    def __init__(self, function: types.Function) -> None:
        super().__init__([_bare(template) for template in function.templates])
        self._signatures: dict[Any, Signature | None] = {}

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature | None:
        key = (tuple(args), tuple(kws.items()) if kws else ())
        if key not in self._signatures:
            with ConfigStack().enter(self.flags):
                self._signatures[key] = super().get_call_type(context, args, kws)
        return self._signatures[key]


register_default(_Operator)(models.OpaqueModel)


class _RememberingContext(typing.Context):
    """Numba's table of types and functions, with operators that remember."""

    def __init__(self, context: typing.Context) -> None:
        self.__dict__ = context.__dict__

    def _get_global_type(self, value: Any) -> Any:
        found = super()._get_global_type(value)
        return _operator(found) if type(found) is types.Function else found

    def _resolve_user_function_type(self, func: Any, *arguments: Any) -> Signature | None:
        return super()._resolve_user_function_type(self._get_global_type(func) or func, *arguments)


_operator = cache(_Operator)
_remembering = cache(_RememberingContext)


@register_pass(mutates_CFG=False, analysis_only=True)
class BorrowReferences(FunctionPass):
    """Do not count references in kernels that neither make arrays nor hand them back: their callers hold them all."""

    _name = "borrow_references"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        assigned = (statement for block in state.func_ir.blocks.values() for statement in block.find_insts(ir.Assign))
        if not _has_arrays(state.return_type) and all(_makes_nothing(each, state.typemap) for each in assigned):
            state.targetctx.enable_nrt = False
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class ReconstructSSA(untyped_passes.ReconstructSSA):
    """Without lifetimes of variables, which :class:`typed_passes.IRLegalization` finds afresh."""

    _name = "reconstruct_ssa_only"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class StripPhis(typed_passes.PreLowerStripPhis):
    """As above."""

    _name = "strip_phis_only"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


#: Kinds of values that hold no references.
PLAIN = (
    types.Number,
    types.Boolean,
    types.Literal,
    types.NoneType,
    types.Callable,
    types.Module,
    types.DType,
    types.NumberClass,
    types.RangeType,
    types.RangeIteratorType,
    types.SliceType,
    types.Pair,
    types.Omitted,
    types.UndefinedType,
    types.Poison,
)
#: Expressions whose arrays, if they give any, are parts of others.
PARTS = ("getattr", "getitem", "static_getitem", "build_tuple", "exhaust_iter", "cast", "phi")


def _makes_nothing(statement: ir.Assign, kinds: dict[str, types.Type]) -> bool:
    """Whether an assignment makes no object whose references are counted."""
    kind, value = kinds[statement.target.name], statement.value
    if not _has_arrays(kind):
        return isinstance(kind, (*PLAIN, types.BaseTuple))
    if not isinstance(value, ir.Expr):
        return True
    picks = value.op == "getitem" and _has_arrays(kinds[value.index.name])
    return value.op in PARTS and not picks


def _has_arrays(kind: types.Type) -> bool:
    """Whether a value of this kind is an array, or a tuple with one."""
    return isinstance(kind, types.Array) or any(map(_has_arrays, getattr(kind, "types", ())))


PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    ReconstructSSA,
    typed_passes.NopythonTypeInference,
    BorrowReferences,
    StripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


class _Plain:
    """Numba's colours of messages, without any."""

    def __getattr__(self, name: str) -> type[str]:
        return str


@contextmanager
def _plain_messages() -> Iterator[None]:
    """Leave messages as they are: most are never shown, and colorama sets up the terminal for each of them."""
    before = vars(errors)["_termcolor_inst"]
    vars(errors)["_termcolor_inst"] = _Plain()
    try:
        yield
    finally:
        vars(errors)["_termcolor_inst"] = before


class KernelCompiler(Compiler):
    """Compiles what Python calls."""

    library_class: type[Library] = Library

    def __init__(self, typingctx: typing.Context, *rest: Any) -> None:
        super().__init__(_remembering(typingctx), *rest)
        self.state.targetctx.typing_context = self.state.typingctx

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.library_class(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        with _plain_messages():
            return super().compile_extra(func)

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("kernel")
        for step in PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class InnerCompiler(KernelCompiler):
    """Compiles what kernels call."""

    library_class = _InnerLibrary


class BorrowedCompiler(InnerCompiler):
    """Compiles what kernels call of Numba's own, which may need all passes."""

    def define_pipelines(self) -> list[PassManager]:
        return Compiler.define_pipelines(self)
