"""Measure how steady lines of jumps are: if maps are compressed, and if a constant of the stage is another one.

``--jpeg``: for each case and quality, the length of the lines, and the share that the compressed map and the map itself
in 8 bit have in common. Otherwise each numeric constant of the room ``jumps``, also in a field of a settings object, is
multiplied by 0.7 and 1.3 in turn, integers by at least one: ratios of MAE and error to those of today, in the geometric
mean of the cases, and the share of lines that are found again, in the mean of the cases.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import normalmesh.jumps
from benchmarks.cases import Case, measure
from benchmarks.jumps import case_named, corners_of, share_near
from benchmarks.looks import perturbed
from normalmesh import NormalMap, NormalMeshWarning, find_jumps, reconstruct
from normalmesh.paper.tables import geometric_mean

Bool = NDArray[np.bool_]

#: Cases on which constants are varied: measured and rendered ones, with and without noise, which are quick.
CASES = ("psm_owl", "diligent_buddha", "relief_bunny512", "made_knot_near", "made_bust", "made_cloth", "made_gear")
#: Cases that are compressed.
COMPRESSED = ("psm_owl", "bini_human", "diligent_buddha", "mesh_armadillo_ortho_512", "made_bust", "made_cloth")
QUALITIES = (95, 90, 85)
FACTORS = (0.7, 1.3)
COMPRESSION = 0.96
#: Errors (px) below which all is exact.
EXACT = 1e-3
#: Share of lines that should be found again.
AGAIN = 0.8


class Result(NamedTuple):
    """Figures of a case: errors, and the pixel corners on its lines."""

    mae: float
    error: float
    lines: Bool


class Constant(NamedTuple):
    """A number of the stage: its module, the name there, and its place in a tuple or the field of a settings object."""

    module: str
    name: str
    part: int | str | None
    value: float

    def __str__(self) -> str:
        part = "" if self.part is None else f"[{self.part}]" if isinstance(self.part, int) else f".{self.part}"
        return f"{self.module.rpartition('.')[2]}.{self.name}{part} = {self.value:g}"


def room() -> list[ModuleType]:
    """Return the modules of the stage; constants of kernels are compiled into them."""
    names = [each.name for each in pkgutil.iter_modules(normalmesh.jumps.__path__) if not each.name.startswith("_")]
    return [importlib.import_module(f"normalmesh.jumps.{name}") for name in names]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def constants() -> list[Constant]:
    """Return all numeric constants of the stage, those that several modules use once."""
    found: dict[tuple[str, str], Constant] = {}
    for module in room():
        for name, value in vars(module).items():
            if not name.strip("_").isupper():
                continue
            if is_dataclass(value) and not isinstance(value, type):
                parts = [(each.name, getattr(value, each.name)) for each in fields(value)]
            else:
                parts = list(enumerate(value)) if isinstance(value, tuple) else [(None, value)]
            for part, number in parts:
                # What counts bytes or the work of a thread changes no result.
                if is_number(number) and not name.endswith(("BYTES", "GRAIN")):
                    found.setdefault((name, f"{part} {number}"), Constant(module.__name__, name, part, number))
    return list(found.values())


@contextmanager
def changed(constant: Constant, factor: float) -> Iterator[None]:
    """Multiply a constant wherever the stage uses it."""
    old = getattr(importlib.import_module(constant.module), constant.name)
    number: float = constant.value * factor
    if isinstance(constant.value, int):
        number = max(round(number), 0)
        number += (number == constant.value) * (1 if factor > 1 else -1)
    if isinstance(constant.part, str):
        new = replace(old, **{constant.part: number})
    elif constant.part is None:
        new = number
    else:
        new = tuple(number if k == constant.part else value for k, value in enumerate(old))
    users = [module for module in room() if getattr(module, constant.name, None) == old]
    for module in users:
        setattr(module, constant.name, new)
    try:
        yield
    finally:
        for module in users:
            setattr(module, constant.name, old)


def result_of(case: Case) -> Result:
    """Find the lines of a case and reconstruct it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        jumps = find_jumps(case.normal_map)
        surface = reconstruct(case.normal_map, compression=COMPRESSION)
    found = measure(surface, case)
    error = found.made if surface.camera.is_central else found.rmse
    return Result(found.mae, max(error or 0.0, EXACT), corners_of(jumps.lines, case.normal_map.shape))


def again(first: Bool, second: Bool) -> float:
    """Return the least share of lines that two results have in common; 1 if neither has any."""
    shares = [share_near(first, second), share_near(second, first)]
    known = [each for each in shares if each is not None]
    return min(known) if known else 1.0


def vary(names: list[str], chosen: str) -> Iterator[str]:
    """Yield a line for each constant and factor."""
    cases = [case_named(name) for name in names]
    base = [result_of(case) for case in cases]
    unsteady = count = 0
    for constant in constants():
        if chosen not in str(constant):
            continue
        for factor in FACTORS:
            with changed(constant, factor):
                try:
                    found = [result_of(case) for case in cases]
                except Exception as error:  # A constant may have to be in a certain range.
                    yield f"{constant!s:44} × {factor} failed: {type(error).__name__}"
                    continue
            maes, errors = (
                [getattr(new, name) / getattr(old, name) for new, old in zip(found, base, strict=True)]
                for name in ("mae", "error")
            )
            shares = [again(new.lines, old.lines) for new, old in zip(found, base, strict=True)]
            least, most = names[int(np.argmin(shares))], names[int(np.argmax(errors))]
            count, unsteady = count + 1, unsteady + (min(shares) < AGAIN)
            yield (
                f"{constant!s:44} × {factor} MAE × {geometric_mean(maes):.3f} error × {geometric_mean(errors):.3f}, "
                f"most {max(errors):.2f} ({most}), again {np.mean(shares):.2f}, least {min(shares):.2f} ({least})"
            )
    yield f"{unsteady} of {count} changes lose more than {1 - AGAIN:.0%} of the lines of a case"


def compress(names: list[str]) -> Iterator[str]:
    """Yield a line for each case: its lines in 8 bit, and after compression."""
    yield f"{'case':30} {'8 bit':>7} " + " ".join(f"{f'JPEG {quality}':>14}" for quality in QUALITIES)
    lost = total = 0
    for name in names:
        normal_map = case_named(name).normal_map
        first = lines_of(perturbed(normal_map, "b8"))
        cells = []
        for quality in QUALITIES:
            other = lines_of(perturbed(normal_map, f"j{quality}"))
            share = again(first, other)
            cells.append(f"{np.count_nonzero(other):7} /{share:6.2f}")
            total, lost = total + 1, lost + (share < AGAIN)
        yield f"{name:30} {np.count_nonzero(first):7} " + " ".join(cells)
    yield f"{lost} of {total} draws lose more than {1 - AGAIN:.0%} of the lines"


def lines_of(normal_map: NormalMap) -> Bool:
    """Return the pixel corners (H + 1, W + 1) on the lines of a map."""
    return corners_of(find_jumps(normal_map).lines, normal_map.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", help="names of shared cases or of those made here")
    parser.add_argument("--constants", default="", metavar="TEXT", help="only constants whose names contain the text")
    parser.add_argument("--jpeg", action="store_true", help="compress maps instead")
    options = parser.parse_args()
    names = options.cases or list(COMPRESSED if options.jpeg else CASES)
    for line in compress(names) if options.jpeg else vary(names, options.constants):
        print(line, flush=True)


if __name__ == "__main__":
    main()
