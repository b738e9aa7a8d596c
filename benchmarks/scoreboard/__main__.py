"""Measure every headline figure and print one table: ``make scoreboard``, or ``python -m benchmarks.scoreboard``.

Each figure is compared with the newest kept run. Changes within the noise are the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback

from benchmarks.scoreboard.figures import Figure, Skipped
from benchmarks.scoreboard.history import RUNS, Run, keep, new_run, read_runs
from benchmarks.scoreboard.rows import GROUPS, collect
from benchmarks.scoreboard.table import summary, table
from benchmarks.ways import in_own_process


def main() -> int:
    options = _options()
    runs = read_runs()
    if options.since:
        known = [run.commit for run in runs]
        if options.since not in known:
            sys.exit(f"no kept run of {options.since}; there are: {', '.join(known) or 'none'}")
        runs = runs[: known.index(options.since) + 1]
    run = new_run()
    figures: list[Figure] = []
    failed = [name for name in options.only if not _measure(name, run, figures)]
    print(f"{run.commit}, {run.date}, {run.machine}\n\n{table(figures, runs)}\n\n{summary(figures, runs)}")
    for name, group in run.groups.items():
        print(f"{name}: {group['seconds']} s, load of the machine {group['load'][0]} to {group['load'][1]}")
        for reason in group.get("skipped", ()):
            print(f"  skipped: {reason}")
    if failed:
        print(f"failed: {', '.join(failed)}; nothing is kept" if options.keep else f"failed: {', '.join(failed)}")
        return 1
    if options.keep:
        keep(run)
        print(f"kept in {RUNS.name}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help=f"add the run to {RUNS.name}")
    parser.add_argument("--since", metavar="COMMIT", help="compare with the kept run of this commit")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="measure only these groups")
    return parser.parse_args()


def _measure(name: str, run: Run, figures: list[Figure]) -> bool:
    """Add the figures of a group to the run and to the list; False where it failed."""
    print(f"measuring {name} …", file=sys.stderr, flush=True)
    start, load = time.perf_counter(), os.getloadavg()[0]
    try:
        found = in_own_process(collect, name, threads=os.cpu_count() or 1)
    except Exception:
        traceback.print_exc()
        return False
    finally:
        seconds = round(time.perf_counter() - start)
        run.groups[name] = {"seconds": seconds, "load": [round(load, 1), round(os.getloadavg()[0], 1)]}
    measured = [row for row in found if isinstance(row, Figure)]
    figures += measured
    run.figures |= {figure.name: figure.kept() for figure in measured}
    if skipped := [row.reason for row in found if isinstance(row, Skipped)]:
        run.groups[name]["skipped"] = skipped
    return True


if __name__ == "__main__":
    sys.exit(main())
