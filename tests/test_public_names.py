"""The flat public API."""

import inspect
import pkgutil
import subprocess
import sys
import types
from dataclasses import fields
from typing import get_type_hints

import pytest

import normalmesh
from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.integration.integration_options import IntegrationKeywords, IntegrationOptions


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


@pytest.mark.parametrize(
    ("function", "options", "keywords"),
    [
        (normalmesh.decimate, DecimationOptions, DecimationKeywords),
        (normalmesh.integrate, IntegrationOptions, IntegrationKeywords),
    ],
)
def test_functions_take_the_options_of_their_stage(function, options, keywords):
    """Names, order, types and defaults agree: functions pass their options on by position."""
    own = {"mesh", "normal_map", "vertices", "threshold", "compression", "detail", "jumps", "threads", "progress"}
    taken = [each for name, each in inspect.signature(function).parameters.items() if name not in own]
    known = [(each.name, each.type, each.default) for each in fields(options)]
    assert [(each.name, each.annotation, each.default) for each in taken] == known
    assert get_type_hints(keywords) == get_type_hints(options)
