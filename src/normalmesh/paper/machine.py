"""Describe the machine and the package versions of a measurement."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from normalmesh import __version__
from normalmesh.runtime.threads import allowed_threads


def machine() -> dict[str, str]:
    """Return the versions of the packages, the processor, and the numbers of cores and threads."""
    return {
        "normalmesh": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads": str(allowed_threads()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
