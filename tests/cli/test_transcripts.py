"""Test that the commands of docs/commands.md, run in one folder, print what the page shows."""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import sys
import warnings
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

from invocation import COMPILING
from normalmesh import cli
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.runtime import progress_bar

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"


def transcripts(text: str) -> list[tuple[str, str]]:
    """Return the command lines of all console blocks and the output shown for each, in order."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def matches(shown: str, printed: str) -> bool:
    """Return whether a text is as shown; ``...`` matches anything within a line or, alone, any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else r"[^\n]*?".join(map(re.escape, line.split("...")))
        for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, printed) is not None


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """Return what the command line prints to either stream, and its exit status."""
    monkeypatch.setattr(sys, "argv", ["normalmesh", *arguments])
    # A slow machine prints no line of progress, either.
    monkeypatch.setattr(progress_bar, "LINE_INTERVAL", math.inf)
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            cli.main()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return stream.getvalue().replace(COMPILING, ""), status


def take_photographs(folder):
    """Write photographs of a ball under five lights, and their lights beside the folder, which the page begins with."""
    folder.mkdir()
    ball = sphere(64).normal_map
    lights = np.array([[0, 0, 1], [0.3, 0, 1], [-0.3, 0, 1], [0, 0.3, 1], [0, -0.3, 1]])
    lines = [f"{len(lights)}"]
    for number, light in enumerate(lights / np.linalg.norm(lights, axis=1, keepdims=True)):
        photograph = np.round(60000 * np.maximum(ball.normals @ light, 0)).astype(np.uint16)
        imagecodecs.imwrite(folder / f"{number}.png", photograph)
        lines.append(" ".join([f"{number}.png", *map(str, light)]))
    folder.with_name("lights.lp").write_text("\n".join(lines))


def test_transcripts(tmp_path, monkeypatch):
    for extra in ("embreex", "matplotlib"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    take_photographs(tmp_path / "photos")
    status = 0
    for command, shown in transcripts(DOCUMENT.read_text(encoding="utf-8")):
        if command == "echo $?":
            printed = f"{status}\n"
        else:
            program, *arguments = shlex.split(command)
            assert program == "normalmesh"
            printed, status = run(arguments, monkeypatch)
        assert matches(shown, printed), f"$ {command}\n{printed}\nis not what {DOCUMENT.name} shows:\n{shown}"


def test_every_command_is_shown():
    shown = {shlex.split(command)[1] for command, _ in transcripts(DOCUMENT.read_text(encoding="utf-8"))}
    assert set(cli.normalmesh.commands) <= shown


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a 1...\n", "a 1.25\n", True),
        ("a 1...\n", "a 2.25\n", False),
        ("a 1... b\n", "a 1\n b\n", False),
        ("a\n...\nb\n", "a\nb\n", True),
        ("a\n...\nb\n", "a\nx\ny\nb\n", True),
        ("...\n", "", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
    ],
)
def test_what_matches(shown, printed, expected):
    assert matches(shown, printed) == expected
