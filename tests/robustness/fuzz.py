"""Fuzz the package for a given time: ``make fuzz MINUTES=10``. ``test_fuzzing.py`` runs the same targets in CI.

Each target runs in a process of its own. If a decoder or kernel crashes it, the input that did so is reported.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import hypothesis
from fuzz_chain import chains, reconstruct_anything
from fuzz_commands import command_lines, run_command
from fuzz_files import damaged_files, read_damaged
from fuzz_measurements import measure, measurements
from hypothesis.strategies import SearchStrategy

#: Inputs of each target, and the function that raises an error if the package handles one of them wrongly.
TARGETS: dict[str, tuple[Callable[[], SearchStrategy[Any]], Callable[[Any], str]]] = {
    "files": (damaged_files, read_damaged),
    "chain": (chains, reconstruct_anything),
    "commands": (command_lines, run_command),
    "measurements": (measurements, measure),
}
#: Limit of the address space of one target, in bytes: a header that claims a huge size must not exhaust the memory.
ADDRESS_SPACE = 8 << 30
#: Seconds after which an input counts as hanging; the first one includes the compilation of the kernels.
TIMEOUT = 900
#: Cache of the kernels that are compiled with checks of their indices.
CHECKED_KERNELS = Path(__file__).parents[2] / "build" / "boundscheck"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of all targets together")
    parser.add_argument("--target", choices=TARGETS, action="append", help="run only this target; may be repeated")
    parser.add_argument(
        "--seed", type=int, default=None, help="seed of the first hundred inputs; default: the current time"
    )
    parser.add_argument(
        "--boundscheck", action="store_true", help="raise an error if a kernel leaves the bounds of an array"
    )
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    seed = int(time.time()) if options.seed is None else options.seed
    seconds = 60 * options.minutes / len(targets)
    if options.worker is not None:
        work(targets[0], seconds, seed, options.worker)
        return
    passed = [fuzz(target, seconds, seed, options.boundscheck) for target in targets]
    sys.exit(0 if all(passed) else 1)


def fuzz(target: str, seconds: float, seed: int, boundscheck: bool) -> bool:
    """Fuzz a target in another process, print the result, and return whether no input failed."""
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(CHECKED_KERNELS)} if boundscheck else {}
    with tempfile.TemporaryDirectory() as folder:
        note, log = Path(folder) / "input", Path(folder) / "log"
        command = [sys.executable, "-X", "faulthandler", __file__, "--target", target, "--seed", str(seed)]
        command += ["--minutes", str(seconds / 60), "--worker", str(note)]
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=os.environ | settings, stdout=output, stderr=output)
            ended = _wait_for(process, note)
        counted, _, given = (note.read_text() if note.exists() else f"0 {seed}\n").partition("\n")
        tried, seed_of_it = counted.split()
        if ended == "passed":
            print(f"{target}: tried {tried} inputs, 0 crashes", flush=True)
            return True
        print(log.read_text(errors="replace")[-6000:])
        print(f"{target}: input {tried} {ended}; the last was\n{given}")
        print(f"repeat it with --target {target} --seed {seed_of_it}", flush=True)
        return False


def _wait_for(process: subprocess.Popen[bytes], note: Path) -> str:
    """Wait for the end of the process, kill it if an input takes too long, and return how it ended."""
    while True:
        try:
            status = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            if note.exists() and time.time() - note.stat().st_mtime > TIMEOUT:
                process.kill()
                process.wait()
                return f"hung for {TIMEOUT} s"
        else:
            return "passed" if status == 0 else "failed" if status > 0 else f"crashed with signal {-status}"


def work(target: str, seconds: float, seed: int, note: Path) -> None:
    """Try inputs until the time is over or one of them fails and is minimised.

    Each input is written to ``note`` before it is tried.
    """
    limit_memory()
    inputs, carry_out = TARGETS[target]
    tried = 0

    def example(given: Any) -> None:
        nonlocal tried
        tried += 1
        note.write_text(f"{tried} {seed}\n{given!r}")
        carry_out(given)

    settings = hypothesis.settings(
        max_examples=100, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        settings(hypothesis.seed(seed)(hypothesis.given(inputs())(example)))()
        seed += 1


def limit_memory() -> None:
    """Limit the address space of this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


if __name__ == "__main__":
    main()
