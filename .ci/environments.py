"""Fresh virtual environments, made from the wheel alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def the_wheel() -> Path:
    """The only wheel in ``dist``."""
    (wheel,) = DIST.glob("*.whl")
    return wheel


def environment(folder: Path, *requirements: object) -> Path:
    """An environment with some requirements and nothing else; its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    run(python, "-m", "pip", "check", "--disable-pip-version-check")
    return python
