"""The cache of compiled kernels: missing, read-only, full, damaged, old, or filled by two processes at once."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from normalmesh import NormalMeshWarning
from normalmesh.integration import _refinement
from normalmesh.runtime import kernel_cache, temporary_files

#: A module with kernels like ours, small enough to be compiled again and again.
MODULE = """
import constants
from constants import FACTOR
from normalmesh.runtime.kernels import inner, kernel

@inner
def doubled(value):
    return FACTOR * value + constants.SHIFT

@kernel
def total(values):
    result = values[0] - values[0]
    for i in range(values.size):
        result += doubled(values[i])
    return result
"""
#: Prints the sum for two types of numbers, and how many kernels were found in the cache and how many compiled.
PROGRAM = """
import numpy as np
from tiny import total

results = total(np.arange(5)), total(np.arange(5) / 2)
print(*results, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values()))
"""
RESULT = "20 10.0"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "tiny.py").write_text(MODULE)
    (folder / "constants.py").write_text("FACTOR, SHIFT = 2, 0\n")
    return folder


def started(folder: Path, cache: Path | None, **environment: str | None) -> subprocess.Popen[str]:
    """A process that uses the kernels of a folder; None: not in the environment."""
    changes = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "NUMBA_CACHE_DIR": cache, **environment}
    kept = {name: value for name, value in os.environ.items() if name not in changes}
    given = {name: str(value) for name, value in changes.items() if value is not None}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**kept, **given},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> tuple[str, int, int, str]:
    """The sums, kernels found, kernels compiled, and what was said."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    *sums, found, compiled = out.split()
    return " ".join(sums), int(found), int(compiled), err


def run(folder: Path, cache: Path | None, **environment: str | None) -> tuple[str, int, int, str]:
    return answer(started(folder, cache, **environment))


def files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


@pytest.fixture
def compiled(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The module, and a cache that holds its kernels."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tiny))
    assert kernel_of(tiny, tmp_path / "cache")[1:] == (0, 2)
    return tiny, tmp_path / "cache"


def kernel_of(tiny: Path, cache: Path) -> tuple[str, int, int]:
    """As :func:`run`, in this process: the module is imported anew."""
    for name in ("tiny", "constants"):
        sys.modules.pop(name, None)
    from tiny import total  # type: ignore[import-not-found]

    sums = f"{total(np.arange(5))} {total(np.arange(5) / 2)}"
    return sums, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values())


def test_several_processes_on_the_same_empty_cache(tiny: Path, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    for process in [started(tiny, cache) for _ in range(2)]:
        assert answer(process)[0::3] == (RESULT, "")
    assert len(files(cache)) == 2
    assert run(tiny, cache) == (RESULT, 2, 0, "")


def damage(content: bytes) -> dict[str, bytes]:
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    return {"empty": b"", "cut": content[: len(content) // 2], "garbage": os.urandom(500), "flipped": bytes(flipped)}


@pytest.mark.parametrize("how", ["empty", "cut", "garbage", "flipped"])
def test_damaged_files_are_compiled_again(compiled: tuple[Path, Path], how: str) -> None:
    tiny, cache = compiled
    for path in files(cache):
        path.write_bytes(damage(path.read_bytes())[how])
    assert kernel_of(tiny, cache)[1:] == (0, 2)
    assert kernel_of(tiny, cache)[1:] == (2, 0)


def test_files_that_belong_to_other_types_are_not_taken(compiled: tuple[Path, Path]) -> None:
    tiny, cache = compiled
    first, second = files(cache)
    swapped = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(swapped)
    assert kernel_of(tiny, cache)[1:] == (0, 2)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("constants.py", "2", "13"),
        ("constants.py", "0", "44"),
        ("tiny.py", "FACTOR * value", "FACTOR * (value + 1)"),
        ("tiny.py", "@inner\n", "@inner(fastmath=True)\n"),
    ],
)
def test_a_change_to_what_becomes_part_of_a_kernel_compiles_it_again(
    compiled: tuple[Path, Path], file: str, before: str, after: str
) -> None:
    tiny, cache = compiled
    source = (tiny / file).read_text()
    (tiny / file).write_text(source.replace(before, after))
    sums, found, made = kernel_of(tiny, cache)
    assert (found, made) == (0, 2)
    assert (sums == RESULT) == ("fastmath" in after)
    assert len(files(cache)) == 2


def test_a_change_to_anything_else_compiles_nothing(compiled: tuple[Path, Path]) -> None:
    tiny, cache = compiled
    source = (tiny / "tiny.py").read_text()
    (tiny / "tiny.py").write_text(source + "\n# A comment.\nOTHER = 7\n")
    assert kernel_of(tiny, cache) == (RESULT, 2, 0)


def test_a_constant_from_a_module_without_kernels_is_part_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(kernel_cache.parts(_refinement.move_vertices))
    assert before == list(kernel_cache.parts(_refinement.move_vertices))
    monkeypatch.setattr(_refinement, "CUT", _refinement.CUT + 1)
    assert before != list(kernel_cache.parts(_refinement.move_vertices))


def test_a_folder_that_cannot_be_made_is_passed_over(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(tiny, tmp_path / "file" / "cache") == (RESULT, 0, 2, "")
    assert len(list((tiny / "__pycache__").glob("*.nbc"))) == 2


def test_nowhere_to_write(tiny: Path, tmp_path: Path) -> None:
    """As with a package that belongs to the system, and no home; files stand in the way because root may write."""
    (tmp_path / "file").write_text("in the way")
    (tiny / "__pycache__").write_text("in the way")
    home = {"HOME": str(tmp_path / "file"), "XDG_CACHE_HOME": None, "PYTHONDONTWRITEBYTECODE": "1"}
    result = run(tiny, tmp_path / "file", **home)
    assert result[:3] == (RESULT, 0, 2)
    assert result[3].count("compiled kernels cannot be kept anywhere") == 1
    assert "NUMBA_CACHE_DIR" in result[3]


def test_without_a_home_no_folder_is_made_where_one_happens_to_be(tiny: Path, tmp_path: Path) -> None:
    (tiny / "__pycache__").write_text("in the way")
    # So expanduser() leaves it where the user is unknown to the system, too.
    result = run(tiny, None, HOME="~", XDG_CACHE_HOME=None, PYTHONDONTWRITEBYTECODE="1")
    assert result[0] == RESULT
    assert sorted(path.name for path in tiny.iterdir()) == ["__pycache__", "constants.py", "tiny.py"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_or_protected_disk(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tiny))
    monkeypatch.setattr(temporary_files.os, "replace", refused)
    kernel_cache._warn_not_kept.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert kernel_of(tiny, tmp_path / "cache")[1:] == (0, 2)
    said = [str(each.message) for each in caught if issubclass(each.category, NormalMeshWarning)]
    assert len(said) == 1
    assert os.strerror(number) in said[0]
    assert files(tmp_path / "cache") == []


def test_a_cache_that_goes_away(compiled: tuple[Path, Path]) -> None:
    tiny, cache = compiled
    for path in files(cache):
        path.unlink()
    next(cache.iterdir()).rmdir()
    cache.rmdir()
    assert kernel_of(tiny, cache)[1:] == (0, 2)
    assert kernel_of(tiny, cache)[1:] == (2, 0)
