"""Rules for the code itself, which make it easy to find one's way: see ARCHITECTURE.md."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "normalmesh"

#: Number of parameters beyond which arrays must travel in named tuples.
MAX_PARAMETERS = 8


def repeated(names):
    return sorted(name for name, count in Counter(names).items() if count > 1)


def kernels():
    """Yield all kernels as their file and syntax tree."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
                if decorators & {"kernel", "inner"}:
                    yield path, node


def test_kernels_take_few_parameters():
    found = {f"{path.name}:{node.name}": len(node.args.args) for path, node in kernels()}
    assert len(found) > 200
    assert {name: count for name, count in found.items() if count > MAX_PARAMETERS} == {}


def test_kernels_live_in_modules_with_an_underscore():
    assert {path.name for path, _ in kernels() if not path.name.startswith("_")} == set()


def test_names_of_kernels_are_unique():
    assert repeated(node.name for _, node in kernels()) == []


def test_names_of_modules_are_unique():
    for folder in (PACKAGE, ROOT / "tests"):
        assert repeated(path.name for path in folder.rglob("*.py") if not path.name.startswith("__")) == []


def test_tests_mirror_the_rooms():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    folders = {path.name for path in (ROOT / "tests").iterdir() if list(path.glob("test_*.py"))}
    assert folders - {"robustness", "integrations"} == rooms


def test_architecture_names_the_rooms_and_modules():
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Rooms\n")[2].partition("## Rules\n")[0]
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert {room for room in rooms if f"| `{room}` |" not in section} == set()
    modules = {path.stem for path in PACKAGE.rglob("*") if path.is_dir() or path.suffix == ".py"}
    assert set(re.findall(r"`(\w+)`", section)) - modules == set()


def test_no_test_imports_another():
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("test_"), path
