"""``normalmesh reconstruct --tiles``: the options, estimates and the work folder of a reconstruction in tiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.interruption import cleanups
from normalmesh.cli.option_tables import TILE, option_name, reject_several
from normalmesh.engine.work_folder import holds_results, remove_work
from normalmesh.errors import count_text, path_text
from normalmesh.output.tileset import TILESET
from normalmesh.reconstruction import tiling
from normalmesh.reconstruction.tiling import TiledEstimate
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.memory_budget import limited_memory
from normalmesh.runtime.progress_bar import duration_text
from normalmesh.runtime.threads import MAX_THREADS

#: Suffix of the work folder beside an output.
WORK = ".work"


@dataclass(frozen=True)
class Tiling:
    """How to work in tiles: their side in pixels, the address of a scheduler or the number of processes, the folder."""

    side: int
    scheduler: str | None
    workers: int | None
    work: str | None
    keep_work: bool

    @classmethod
    def of(cls, tiles: bool, tile_size: int | None, **options: Any) -> Tiling | None:
        """Return the tiling that options ask for; None if none."""
        if not tiles:
            for name, value in {"tile_size": tile_size, **options}.items():
                if value not in (None, False):
                    raise click.UsageError(f"{option_name(name)} is an option of --tiles: add that")
            return None
        reject_several([name for name in ("scheduler", "workers") if options[name] is not None])
        return cls(TILE if tile_size is None else tile_size, **options)

    def __str__(self) -> str:
        return f"of {self.side} px"

    def folder(self, output: Path) -> Path:
        """Return the work folder for an output."""
        if self.work is not None:
            return Path(self.work)
        beside = output.parent if output.name == TILESET else output
        return beside.with_name(beside.name + WORK)

    def at(self, output: Path) -> tiling.Tiling:
        """Return what a reconstruction for an output takes. The folder is kept until the outputs are written."""
        return tiling.Tiling(self.side, self.scheduler, self.workers, self.folder(output), keep_work=True)

    @contextmanager
    def work_kept(self, output: Path, console: Console) -> Iterator[None]:
        """Remove the work folder at the end, unless it is to be kept; after an error or a signal, say where it is."""
        folder = self.folder(output)
        is_new = not folder.exists()

        def tell() -> None:
            if holds_results(folder):
                console.alert(f"normalmesh: work is kept in {path_text(folder)}; the same command goes on from there")

        cleanups.append(tell)
        try:
            yield
        except Exception:
            tell()
            if is_new and not holds_results(folder):
                remove_work(folder)
            raise
        finally:
            cleanups.remove(tell)
        if not self.keep_work:
            remove_work(folder)

    def needs_text(self, estimate: TiledEstimate, memory_limit: float | None, threads: int | None) -> str:
        """Return the memory, the disk and the time of an estimate as text."""
        disk, leader, worker = map(bytes_text, (estimate.disk, estimate.leader_memory, estimate.worker_memory))
        if self.scheduler is not None:
            return (
                f"about {leader} of memory here and {worker} for each thread of a worker, {disk} on disk and, on one "
                f"core, {duration_text(estimate.seconds(1))}"
            )
        cores = threads or MAX_THREADS
        with limited_memory(memory_limit):
            count = min(cores, estimate.fitting_workers()) if self.workers is None else self.workers
        each = f"{leader} and {count} × {worker}" if count else f"{leader} and {worker}"
        return (
            f"about {bytes_text(estimate.memory(count))} of memory ({each}), {disk} on disk and, on "
            f"{count_text(cores, 'core')}, {duration_text(estimate.seconds(cores))}"
        )
