"""Test the pages: Python blocks run, commands have the options shown, and everything that the pages name exists."""

import doctest
import re
import shlex
import warnings
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

import normalmesh
from normalmesh.cli import normalmesh as command_line
from normalmesh.evaluation.synthetic.medallion import Medallion

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PACKAGE = ROOT / "src" / "normalmesh"
ROOMS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
#: Code blocks; blocks marked ``py`` instead of ``python`` need data that is not available here.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: Characters of code in a line of the site that are about as wide as its column; the rest must be scrolled to.
COLUMNS = 84


def blocks(page, language):
    text = page.read_text("utf-8")
    return [
        (text.count("\n", 0, found.start()) + 1, found[2]) for found in BLOCK.finditer(text) if found[1] == language
    ]


def png(path, values):
    Path(path).write_bytes(imagecodecs.png_encode(values))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write the files that the pages use to a temporary current folder, and return it."""
    monkeypatch.chdir(tmp_path)
    truth = Medallion(96).normal_map
    encoded = np.round((truth.normals + 1) / 2 * 65535).astype(np.uint16)
    png("normals.png", np.dstack([encoded, np.where(truth.mask, 65535, 0).astype(np.uint16)]))
    png("mask.png", 255 * truth.mask.astype(np.uint8))
    png("colours.png", np.full((96, 96, 3), 200, np.uint8))
    np.savetxt("K.txt", [[800, 0, 47.5], [0, 800, 47.5], [0, 0, 1]])
    lights = np.array([[0.5, 0, 0.8], [-0.4, 0.4, 0.8], [-0.3, -0.5, 0.8], [0, 0, 1]])
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    np.savetxt("light_directions.txt", lights)
    Path("photographs").mkdir()
    for number, light in enumerate(lights):
        shaded = np.maximum(truth.normals @ light, 0.02)
        png(f"photographs/{number}.png", np.round(60000 * shaded).astype(np.uint16))
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_in_order(page, folder, capsys):
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", normalmesh.NormalMeshWarning)  # some pages show what causes warnings
        for line, code in blocks(page, "python"):
            exec(compile("\n" * line + code, str(page), "exec"), names)


def test_examples_of_docstrings_run(folder):
    names = {"nm": normalmesh, "np": np}
    ran = 0
    for name in normalmesh.__all__:
        for test in doctest.DocTestFinder().find(getattr(normalmesh, name), name, module=False, globs=names):
            found = doctest.DocTestRunner().run(test)
            assert found.failed == 0, test.name
            ran += found.attempted
    assert ran > 10


def commands():
    for page in PAGES:
        for line, block in blocks(page, "sh"):
            for command in block.replace("\\\n", "").splitlines():
                if command.startswith("normalmesh "):
                    yield pytest.param(command, id=f"{page.name}:{line}: {command.split('#')[0].strip()}")


@pytest.mark.parametrize("command", list(commands()))
def test_commands_have_the_options_shown(command):
    _, name, *words = shlex.split(command, comments=True)
    options = {spelling for option in command_line.commands[name].params for spelling in option.opts}
    assert {word.split("=")[0] for word in words if re.match("--?[a-z]", word)} <= options


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_code_fits_the_column_of_the_site(page):
    lines = [
        line for language in ("python", "py", "sh") for _, code in blocks(page, language) for line in code.splitlines()
    ]
    assert [line for line in lines if len(line) > COLUMNS] == []


def test_the_api_page_has_all_public_names():
    shown = re.findall(r"^::: normalmesh\.(\w+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(normalmesh.__all__)


def test_all_pages_are_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [page.name for page in PAGES[1:] if f": {page.name}\n" not in navigation] == []


def defines(path, name):
    """Return whether a Python file defines a function, class, method or constant."""
    return re.search(rf"^\s*(?:def|class) {name}\b|^\s*{name}\b.*=", path.read_text("utf-8"), re.MULTILINE) is not None


def exists_in_package(names):
    """Return whether names below the package, such as ["mesh", "surface", "Surface"], lead to a module or an object."""
    path = PACKAGE
    while names and (path / names[0]).is_dir():
        path, names = path / names[0], names[1:]
    if not names:
        return True
    if path == PACKAGE and len(names) == 1 and names[0] in normalmesh.__all__:
        return True
    module = path / f"{names[0]}.py"
    return module.exists() and all(defines(module, name) for name in names[1:])


def exists_in_tests(module, name):
    """Return whether a test module, such as "test_flip", exists and defines a test, if one is named."""
    paths = list((ROOT / "tests").rglob(f"{module}.py"))
    return bool(paths) and (not name or any(defines(path, name) for path in paths))


def exists(reference):
    """Return whether a module, object, test or path that a page names exists; True for any other text."""
    if found := re.match(r"python -m benchmarks\.(\w+)", reference):
        return (ROOT / "benchmarks" / f"{found[1]}.py").exists() or (ROOT / "benchmarks" / found[1]).is_dir()
    if found := re.fullmatch(r"((?:src|tests|docs|benchmarks|examples)/[\w./*-]*)(?:::(\w+))?", reference):
        paths = list(ROOT.glob(found[1].rstrip("/")))
        return bool(paths) and (not found[2] or defines(paths[0], found[2]))
    if found := re.fullmatch(r"(test_\w+?)(?:\.py)?(?:(?:\.|::)(test_\w+))?", reference):
        return exists_in_tests(found[1], found[2])
    if found := re.fullmatch(r"(\w+)/(?:(\w+)(?:\.py)?)?", reference):
        return found[1] not in ROOMS or exists_in_package([part for part in found.groups() if part])
    if found := re.match(r"(normalmesh\.)?(\w+(?:\.\w+)+|\w+)(?=$|[(\[ :])", reference):
        names = found[2].split(".")
        is_file = names[-1] in ("exr", "glb", "jpg", "mat", "npy", "npz", "obj", "ply", "png", "stl", "tif", "txt")
        if found[1] or (len(names) > 1 and names[0] in ROOMS and not is_file):
            return exists_in_package(names)
    return True


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING"))],
    ids=lambda page: page.name,
)
def test_names_on_the_page_exist(page):
    text = BLOCK.sub("", page.read_text("utf-8"))
    references = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) + re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert [reference for reference in references if not exists(reference)] == []


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("mesh.surface.Surface.save", True),
        ("mesh.surface.Surface.missing", False),
        ("normalmesh.reconstruct", True),
        ("normalmesh.missing", False),
        ("mesh/surface", True),
        ("mesh/missing", False),
        ("cli/", True),
        ("tests/naive.py", True),
        ("tests/missing.py", False),
        ("test_docs.test_names_on_the_page_exist", True),
        ("test_docs.test_missing", False),
        ("python -m benchmarks.speed --large", True),
        ("python -m benchmarks.missing", False),
        ("surface.save", True),
    ],
)
def test_missing_names_are_found(reference, expected):
    assert exists(reference) == expected
