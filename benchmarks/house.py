"""Count the package: its lines and modules, and how many files and functions a run crosses.

``python -m benchmarks.house`` prints the counts of the package that it imports, ``--rooms`` also those of each room (a
folder of the package). ``--json FILE`` writes them, ``--compare FILE`` prints them beside those that ``--json`` wrote
earlier. ``PYTHONPATH=CHECKOUT/src`` counts another checkout.

- Lines are those of all ``.py`` files; lines of code hold more than comments and docstrings.
- Imports of a module are the modules of the package that it imports, in functions too, but not for type checkers only.
- Exceptions from the layers are the entries of ``ignore_imports`` in ``pyproject.toml``.
- A run reconstructs a map of 600 × 600 pixels with noise, a mask, and a disc along whose outline depth jumps: from PNG
  to GLB by ``normalmesh reconstruct``, in memory by ``reconstruct``, and in nine tiles, in this process, by
  ``reconstruct_tiled``. The second of two such runs counts: modules are imported, kernels compiled, and caches filled.
- Functions of a run are those of the package that Python calls: methods, nested functions and kernels, but neither
  lambdas and comprehensions nor what kernels call. Files are those that define these functions.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tempfile
import threading
import tokenize
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

import normalmesh as nm
from normalmesh.cli import normalmesh as command_line

PACKAGE = Path(nm.__file__).parent
#: Side of the map and of a tile in pixels.
SIDE, TILE = 600, 256
#: Tokens that do not make a line one of code.
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

Counts = dict[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", action="store_true", help="also lines and modules of each room")
    parser.add_argument("--no-runs", action="store_true", help="only counts that need no reconstruction")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="earlier counts to print beside these")
    options = parser.parse_args()
    counts = text_counts() | import_counts() | ({} if options.no_runs else run_counts())
    record = {"house": counts, "rooms": room_counts()}
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    before = json.loads(options.compare.read_text()) if options.compare else None
    for part in ("house", "rooms") if options.rooms else ("house",):
        print(*table(record[part], before and before[part]), "", sep="\n")


def table(counts: Counts, before: Counts | None = None) -> Iterator[str]:
    """Yield a line for each count, with the earlier one and the change if there is one."""
    if before is None:
        yield from (f"{name:42}{count:8}" for name, count in counts.items())
        return
    yield f"{'':42}{'before':>8}{'after':>8}{'change':>8}"
    for name in dict.fromkeys((*before, *counts)):
        old, new = before.get(name), counts.get(name)
        change = "" if old is None or new is None else f"{new - old:+}"
        yield f"{name:42}{'–' if old is None else old:>8}{'–' if new is None else new:>8}{change:>8}"


def text_counts() -> Counts:
    """Return the numbers of lines, lines of code and modules."""
    texts = [path.read_text("utf-8") for path in modules()]
    return {
        "lines": sum(text.count("\n") for text in texts),
        "lines of code": sum(len(code_lines(text)) for text in texts),
        "modules": len(texts),
    }


def room_counts() -> Counts:
    """Return the numbers of lines and modules of each room."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in modules():
        room = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else "outside rooms"
        lines[room] += path.read_text("utf-8").count("\n")
        files[room] += 1
    return {f"{room}: {name}": count[room] for room in lines for name, count in (("lines", lines), ("modules", files))}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that hold more than comments and docstrings."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node, clean=False) is not None:
            code.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return code


def import_counts() -> Counts:
    """Return the largest number of imports of a module, and the number of exceptions from the layers."""
    names = {module_name(path) for path in modules()}
    settings = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return {
        "most imports of one module": max(len(imports(path, names)) for path in modules()),
        "exceptions from the layers": sum(len(contract.get("ignore_imports", ())) for contract in contracts),
    }


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, names: set[str]) -> set[str]:
    """Return which of the named modules a module imports when it runs."""
    imported: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            imported.update(name if name in names else str(node.module) for name in below)
    return imported & names


def run_counts() -> Counts:
    """Return the numbers of files and functions that runs cross; they do not depend on the number of cores."""
    normals, mask = stepped_map()
    normal_map = nm.NormalMap(normals, mask)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", nm.NormalMeshWarning)
        image, surface = Path(folder) / "normals.png", Path(folder) / "x.glb"
        samples = np.dstack([np.round((normals + 1) * 127.5), mask * 255]).astype(np.uint8)
        imagecodecs.imwrite(image, samples)
        arguments = ["reconstruct", str(image), "-o", str(surface), "--threads", "1"]
        runs: dict[str, Callable[[], Any]] = {
            "PNG to GLB": lambda: command_line.main(arguments, "normalmesh", standalone_mode=False),
            "reconstruct": lambda: nm.reconstruct(normal_map, threads=1),
            "reconstruct_tiled": lambda: nm.reconstruct_tiled(normal_map, tiles=TILE, workers=0, threads=1),
        }
        counts = {}
        for name, run in runs.items():
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                run()
                surface.unlink(missing_ok=True)
                crossed = functions_crossed(run)
            counts[f"files that {name} crosses"] = len({code.co_filename for code in crossed})
            counts[f"functions that {name} crosses"] = len(crossed)
        return counts


def stepped_map() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return noisy normals and a mask of waves, and a steep plane in a disc, which cannot meet the waves all around."""
    v, u = np.mgrid[:SIDE, :SIDE] / SIDE * 2 - 1
    disc = np.hypot(u - 0.1, v + 0.1) < 0.5
    slope_x = np.where(disc, 1.0, 0.3 * np.cos(5 * u) * np.sin(4 * v))
    slope_y = np.where(disc, 0.0, 0.3 * np.sin(3 * u) * np.cos(5 * v))
    noise = np.random.default_rng(0).normal(0, 0.03, (SIDE, SIDE, 3))
    normals = np.dstack([-slope_x, -slope_y, np.ones_like(u)]) + noise
    return normals / np.linalg.norm(normals, axis=2, keepdims=True), np.hypot(u, v) < 0.97


def functions_crossed(run: Callable[[], Any]) -> set[CodeType]:
    """Return the functions of the package that are entered, on all threads."""
    entered: set[CodeType] = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code)

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {code for code in entered if PACKAGE in Path(code.co_filename).parents and code.co_name[0] != "<"}


if __name__ == "__main__":
    main()
