"""Fuzzing for as long as one likes: ``make fuzz MINUTES=10``. ``test_fuzzing.py`` has the same targets for CI.

Each target runs in a process of its own: a decoder or kernel may bring it down, and the input is still known.
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
from hypothesis.strategies import SearchStrategy

#: Inputs, and what is done with each: it raises where the project breaks a promise.
TARGETS: dict[str, tuple[Callable[[], SearchStrategy[Any]], Callable[[Any], str]]] = {
    "files": (damaged_files, read_damaged),
    "chain": (chains, reconstruct_anything),
    "commands": (command_lines, run_command),
}
#: Bytes of address space for one target: a header that promises too much must not take the machine down.
ADDRESS_SPACE = 8 << 30
#: Seconds that one input may take before it counts as hanging; the first compiles the kernels.
PATIENCE = 900
#: Kernels that check their indices are compiled anew, and kept apart.
CHECKED_KERNELS = Path(__file__).parents[2] / "build" / "boundscheck"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=None, help="of the first hundred inputs; default: by the clock")
    parser.add_argument("--boundscheck", action="store_true", help="kernels raise where an index leaves its array")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    seed = int(time.time()) if options.seed is None else options.seed
    seconds = 60 * options.minutes / len(targets)
    if options.worker is not None:
        work(targets[0], seconds, seed, options.worker)
        return
    sound = [fuzz(target, seconds, seed, options.boundscheck) for target in targets]
    sys.exit(0 if all(sound) else 1)


def fuzz(target: str, seconds: float, seed: int, boundscheck: bool) -> bool:
    """Fuzz a target in another process, and say how that went; whether it went well."""
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(CHECKED_KERNELS)} if boundscheck else {}
    with tempfile.TemporaryDirectory() as folder:
        note, log = Path(folder) / "input", Path(folder) / "log"
        command = [sys.executable, "-X", "faulthandler", __file__, "--target", target, "--seed", str(seed)]
        command += ["--minutes", str(seconds / 60), "--worker", str(note)]
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=os.environ | settings, stdout=output, stderr=output)
            ended = _waited_for(process, note)
        counted, _, given = (note.read_text() if note.exists() else f"0 {seed}\n").partition("\n")
        tried, seed_of_it = counted.split()
        if ended == "well":
            print(f"{target}: tried {tried} inputs, 0 crashes", flush=True)
            return True
        print(log.read_text(errors="replace")[-6000:])
        print(f"{target}: input {tried} {ended}; the last was\n{given}")
        print(f"repeat it with --target {target} --seed {seed_of_it}", flush=True)
        return False


def _waited_for(process: subprocess.Popen[bytes], note: Path) -> str:
    """How the process ended, or that it had to be ended because an input took too long."""
    while True:
        try:
            status = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            if note.exists() and time.time() - note.stat().st_mtime > PATIENCE:
                process.kill()
                process.wait()
                return f"hung for {PATIENCE} s"
        else:
            return "well" if status == 0 else "failed" if status > 0 else f"crashed with signal {-status}"


def work(target: str, seconds: float, seed: int, note: Path) -> None:
    """Try inputs until time is over or one of them fails, which is then reduced; each is noted before it is tried."""
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
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


if __name__ == "__main__":
    main()
