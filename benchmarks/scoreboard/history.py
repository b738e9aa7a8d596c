"""The kept runs of the scoreboard: a JSON file, newest last."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RUNS = Path(__file__).with_name("runs.json")


@dataclass
class Run:
    """A run of the scoreboard.

    Attributes
    ----------
    commit
        Of the package that was measured; with a plus sign where its files differ from the commit.
    date, machine
        Day, and what the machine is.
    groups
        Group → seconds that it took, the load of the machine when it began and ended, and what was skipped.
    figures
        Name → value, noise and note.
    """

    commit: str
    date: str
    machine: str
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)


def new_run() -> Run:
    """Return a run of the package as it is now, without figures."""
    commit = _git("rev-parse", "--short=7", "HEAD")
    changed = "+" if _git("status", "--porcelain", "--", "src") else ""
    machine = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {version('numpy')}, Numba {version('numba')}"
    )
    return Run(commit + changed, date.today().isoformat(), machine)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def read_runs(path: Path = RUNS) -> list[Run]:
    """Return the kept runs, oldest first."""
    return [Run(**run) for run in json.loads(path.read_text())] if path.exists() else []


def keep(run: Run, path: Path = RUNS) -> None:
    """Append a run; where the last one measured the same commit, replace the figures that both have."""
    runs = read_runs(path)
    if runs and runs[-1].commit == run.commit:
        last = runs.pop()
        run = Run(run.commit, run.date, run.machine, last.groups | run.groups, last.figures | run.figures)
    text = json.dumps([asdict(each) for each in [*runs, run]], indent=1, ensure_ascii=False)
    # One line for each figure.
    path.write_text(re.sub(r"\{[^{}]*\}", lambda innermost: " ".join(innermost[0].split()), text) + "\n")


def last_kept(runs: list[Run], name: str) -> tuple[str, dict[str, Any]] | None:
    """Return the commit and the figure of the newest run that has it."""
    return next(((run.commit, run.figures[name]) for run in reversed(runs) if name in run.figures), None)
