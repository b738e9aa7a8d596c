"""What the pages show can be done: Python blocks run, commands have the options, the API page has all names."""

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
#: Blocks marked ``py`` instead are for data that cannot be made here.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    text = page.read_text("utf-8")
    return [
        (text.count("\n", 0, found.start()) + 1, found[2]) for found in BLOCK.finditer(text) if found[1] == language
    ]


def png(path, values):
    Path(path).write_bytes(imagecodecs.png_encode(values))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the pages name, and nothing else."""
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
        warnings.simplefilter("ignore", normalmesh.NormalMeshWarning)  # some pages show what is warned about
        for line, code in blocks(page, "python"):
            exec(compile("\n" * line + code, str(page), "exec"), names)


def commands():
    for page in PAGES:
        for line, block in blocks(page, "sh"):
            for command in block.splitlines():
                if command.startswith("normalmesh "):
                    yield pytest.param(command, id=f"{page.name}:{line}: {command.split('#')[0].strip()}")


@pytest.mark.parametrize("command", list(commands()))
def test_commands_have_the_options_shown(command):
    _, name, *words = shlex.split(command, comments=True)
    options = {spelling for option in command_line.commands[name].params for spelling in option.opts}
    assert {word.split("=")[0] for word in words if re.match("--?[a-z]", word)} <= options


def test_the_api_page_has_all_public_names():
    shown = re.findall(r"^::: normalmesh\.(\w+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(normalmesh.__all__)


def test_all_pages_are_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [page.name for page in PAGES[1:] if f": {page.name}\n" not in navigation] == []
