"""Check, whenever a kernel is compiled, that it and those that it calls count references to arrays, or neither does."""

from numba import types
from numba.core import event

import normalmesh.runtime.compilation  # noqa: F401  # its listener must end before this one raises
from normalmesh.runtime.kernel_parts import names_used


class ReferenceChecks(event.Listener):
    """Raise TypeError if an array is returned from a kernel that counts references to one that does not, or vice versa.

    Such an array would never be released, or twice. Numba itself refuses to create arrays in kernels that do not count.
    """

    def on_start(self, event):
        pass

    def on_end(self, event):
        caller = event.data["dispatcher"]
        for name, value in names_used(caller.py_func):
            called = getattr(value, "dispatcher", None)  # of an inner kernel
            if called is None or counts_references(called) == counts_references(caller):
                continue
            if any(has_arrays(signature.return_type) for signature in called.nopython_signatures):
                raise TypeError(
                    f"{name} returns arrays to {caller.__qualname__}: only one of them has the option allocates=True"
                )


def counts_references(dispatcher):
    """Return whether a kernel counts references to arrays."""
    return bool(dispatcher.targetoptions.get("_nrt", True))


def has_arrays(kind):
    """Return whether a type is an array, or a tuple that contains one."""
    return isinstance(kind, types.Array) or any(map(has_arrays, getattr(kind, "types", ())))


event.register("numba:compile", ReferenceChecks())
