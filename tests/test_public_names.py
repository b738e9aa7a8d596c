"""The flat public API."""

import pkgutil
import subprocess
import sys
import types

import pytest

import normalmesh


@pytest.mark.parametrize("name", normalmesh.__all__)
def test_every_name_is_there_and_documented(name):
    value = getattr(normalmesh, name)
    assert not isinstance(value, types.ModuleType)
    assert value.__doc__


def test_no_module_is_named_like_a_public_name():
    """Importing such a module would put it in the name's place."""
    modules = {module.name for module in pkgutil.iter_modules(normalmesh.__path__)}
    assert not modules & set(normalmesh.__all__)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = normalmesh.nonsense


def test_import_is_light():
    code = "import normalmesh, sys; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_errors_are_value_errors():
    assert issubclass(normalmesh.NormalMeshError, ValueError)
