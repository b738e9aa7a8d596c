"""Fuzz the package for a given time: ``make fuzz MINUTES=10``. ``test_fuzzing.py`` runs the same targets in CI.

Each target runs in a process of its own. If a decoder or kernel crashes it, the input that did so is reported.
``--target truth --cases 20000`` tries a number of inputs instead of a time; start several with seeds far apart to use
several cores.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import hypothesis
from fuzz_chain import chains, reconstruct_anything
from fuzz_commands import command_lines, run_command
from fuzz_files import damaged_files, read_damaged
from fuzz_measurements import measure, measurements
from fuzz_operations import operate, operations
from fuzz_truth import STATISTICS, compare_with_truth, truths
from hypothesis.strategies import SearchStrategy

#: Inputs of each target, and the function that raises an error if the package handles one of them wrongly.
TARGETS: dict[str, tuple[Callable[[], SearchStrategy[Any]], Callable[[Any], str]]] = {
    "files": (damaged_files, read_damaged),
    "chain": (chains, reconstruct_anything),
    "commands": (command_lines, run_command),
    "measurements": (measurements, measure),
    "operations": (operations, operate),
    "truth": (truths, compare_with_truth),
}
#: What a target measured, to be printed at the end.
FIGURES: dict[str, object] = {"truth": STATISTICS}
#: Inputs from one seed. Hypothesis varies those that it has tried; new seeds give more different ones.
BATCH = 20
#: Limit of the address space of one target, in bytes: a header that claims a huge size must not exhaust the memory.
ADDRESS_SPACE = 8 << 30
#: Seconds after which an input counts as hanging; the first one includes the compilation of the kernels.
TIMEOUT = 900
#: Cache of the kernels that are compiled with checks of their indices.
CHECKED_KERNELS = Path(__file__).parents[2] / "build" / "boundscheck"


@dataclass(frozen=True)
class Amount:
    """How long to fuzz a target: a number of seconds, or of inputs."""

    seconds: float
    cases: int | None = None

    @property
    def arguments(self) -> list[str]:
        """The arguments of a process that fuzzes for as long."""
        return ["--minutes", str(self.seconds / 60)] if self.cases is None else ["--cases", str(self.cases)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of all targets together")
    parser.add_argument("--cases", type=int, help="number of inputs of each target, instead of a duration")
    parser.add_argument("--target", choices=TARGETS, action="append", help="run only this target; may be repeated")
    parser.add_argument(
        "--seed", type=int, default=None, help=f"seed of the first {BATCH} inputs; default: the current time"
    )
    parser.add_argument(
        "--boundscheck", action="store_true", help="raise an error if a kernel leaves the bounds of an array"
    )
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    seed = int(time.time()) if options.seed is None else options.seed
    amount = Amount(math.inf, options.cases) if options.cases else Amount(60 * options.minutes / len(targets))
    if options.worker is not None:
        work(targets[0], amount, seed, options.worker)
        return
    passed = [fuzz(target, amount, seed, options.boundscheck) for target in targets]
    sys.exit(0 if all(passed) else 1)


def fuzz(target: str, amount: Amount, seed: int, boundscheck: bool) -> bool:
    """Fuzz a target in another process, print the result, and return whether no input failed."""
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(CHECKED_KERNELS)} if boundscheck else {}
    with tempfile.TemporaryDirectory() as folder:
        note, log = Path(folder) / "input", Path(folder) / "log"
        command = [sys.executable, "-X", "faulthandler", __file__, "--target", target, "--seed", str(seed)]
        command += [*amount.arguments, "--worker", str(note)]
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=os.environ | settings, stdout=output, stderr=output)
            ended = _wait_for(process, note)
        counted, _, given = (note.read_text() if note.exists() else f"0 {seed}\n").partition("\n")
        tried, seed_of_it = counted.split()
        if ended == "passed":
            print(f"{target}: tried {tried} inputs, 0 crashes", flush=True)
            if target in FIGURES:
                print(log.read_text(), flush=True)
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


def work(target: str, amount: Amount, seed: int, note: Path) -> None:
    """Try inputs until the time is over, or their number is reached, or one of them fails and is minimised.

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

    end = time.monotonic() + amount.seconds
    while time.monotonic() < end and (amount.cases is None or tried < amount.cases):
        settings = hypothesis.settings(
            max_examples=BATCH if amount.cases is None else min(BATCH, amount.cases - tried),
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        settings(hypothesis.seed(seed)(hypothesis.given(inputs())(example)))()
        seed += 1
    if target in FIGURES:
        print(FIGURES[target])


def limit_memory() -> None:
    """Limit the address space of this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


if __name__ == "__main__":
    main()
