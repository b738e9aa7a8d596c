"""Convert the roles of docstrings, such as :func:`decimate`, to links of the API page."""

import re
from typing import Any

import griffe

import normalmesh

ROLE = re.compile(r":(?:func|class|meth|attr|data|mod|exc):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Convert the roles of every docstring when its object is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(_link, obj.docstring.value)


def _link(role: re.Match[str]) -> str:
    name = role[1].removeprefix("normalmesh.")
    public = name.split(".")[0] in normalmesh.__all__
    return f"[`{name}`][normalmesh.{name}]" if public else f"`{name}`"
