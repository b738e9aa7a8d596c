"""Counts of the package: what is a line of code, an import, and a function that a run crosses."""

from benchmarks import house

import normalmesh as nm

TEXT = '''"""Docstring
of two lines."""

# A comment.
from typing import TYPE_CHECKING

import normalmesh.errors  # a comment beside code
from normalmesh.mesh import surface
from normalmesh.mesh.surface import Surface

if TYPE_CHECKING:
    from normalmesh.mesh import relief


def function():
    """Docstring."""
    from normalmesh import arguments

    return """a text
of two lines"""
'''


def test_code_is_neither_docstring_nor_comment():
    assert house.code_lines(TEXT) == {5, 7, 8, 9, 11, 12, 15, 17, 19, 20}


def test_imports_are_distinct_and_not_for_type_checkers(tmp_path):
    (tmp_path / "module.py").write_text(TEXT)
    names = {f"normalmesh.{name}" for name in ("errors", "arguments", "mesh", "mesh.surface", "mesh.relief")}
    imported = {"normalmesh.errors", "normalmesh.arguments", "normalmesh.mesh.surface"}
    assert house.imports(tmp_path / "module.py", names) == imported


def test_rooms_add_up_to_the_house():
    house_counts, rooms = house.text_counts(), house.room_counts()
    for name in ("lines", "modules"):
        assert sum(count for room, count in rooms.items() if room.endswith(f": {name}")) == house_counts[name]
    assert house_counts["lines of code"] < house_counts["lines"]


def test_a_run_crosses_functions_of_the_package():
    crossed = {code.co_qualname for code in house.functions_crossed(lambda: nm.Orthographic(2.0).describe())}
    assert {"Orthographic.__post_init__", "Orthographic.describe", "checked_positive"} <= crossed
    assert all("<" not in name for name in crossed)


def test_both_counts_and_the_change_are_printed():
    lines = [line.split() for line in house.table({"lines": 90, "new": 1}, {"lines": 100, "old": 2})]
    assert lines[1:] == [["lines", "100", "90", "-10"], ["old", "2", "–"], ["new", "–", "1"]]
