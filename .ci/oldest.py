"""Test the wheel with the oldest releases that ``pyproject.toml`` allows: ``make oldest``, after ``make wheel``.

Surfaces must be the same as with the releases that this script runs with, bit by bit.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from environments import ROOT, environment, run, the_wheel

#: Extras whose lower bounds are tested beside those of the hard dependencies, and tools that tests need.
EXTRAS = ("cluster", "exr", "plots", "render", "zarr")
TOOLS = ("hypothesis", "pytest")

#: Tests that call each dependency, and compile most kernels.
TESTS = (
    "test_camera_files",
    "test_cli_convert",
    "test_cli_reconstruct",
    "test_cli_render",
    "test_console",
    "test_engine",
    "test_exif",
    "test_mesh_writing",
    "test_pillow_images",
    "test_plots",
    "test_read_formats",
    "test_read_masks",
    "test_read_refused",
    "test_kernel_cache",
    "test_maps_on_disk",
    "test_zarr_windows",
)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    oldest = [*pinned(project["dependencies"]), *pinned(tool for tool in extras["dev"] if tool.startswith(TOOLS))]
    for extra in EXTRAS:
        oldest += pinned(extras[extra])
    print(*oldest)
    python = environment(ROOT / "build" / "oldest", the_wheel(), *oldest)
    compare_surfaces(python)
    # Optimised code is what the other tests are for; here most of the time goes to compiling.
    settings = os.environ | {"NUMBA_OPT": "1"}
    tests = [next((ROOT / "tests").rglob(f"{name}.py")) for name in TESTS]
    run(python, "-m", "pytest", "-p", "no:cacheprovider", *tests, cwd=ROOT, env=settings)


def compare_surfaces(python: Path) -> None:
    """Raise an error if the hashes of meshes and surfaces differ from those of this script's own environment."""
    oldest, newest = (hashes(each) for each in (python, Path(sys.executable)))
    differing = [f"{one}, now {other}" for one, other in zip(oldest, newest, strict=True) if one != other]
    assert not differing, f"the oldest releases give other results: {differing}"
    print(*oldest, sep="\n", flush=True)


def hashes(python: Path) -> list[str]:
    """Return the lines of ``surface_hashes.py``, with kernels compiled as users have them."""
    settings = {name: value for name, value in os.environ.items() if name != "NUMBA_OPT"}
    command = [python, ROOT / ".ci" / "surface_hashes.py"]
    return subprocess.run(command, check=True, env=settings, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def pinned(requirements: Iterable[str]) -> list[str]:
    """Requirements with a lower bound, each as that very release."""
    found = [(each, re.match(r"([\w.-]+)(\[[\w,]+\])?>=([\w.]+)", each)) for each in requirements]
    assert all(match for _, match in found), f"no lower bound: {[each for each, match in found if not match]}"
    return [f"{match[1]}=={match[3]}" for _, match in found if match]


if __name__ == "__main__":
    main()
