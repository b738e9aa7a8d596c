"""Run every benchmark with its default settings: ``python -m benchmarks``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    sys.argv = [path.stem]
    print(f"\n## {path.stem}", flush=True)
    runpy.run_module(f"benchmarks.{path.stem}", run_name="__main__")
