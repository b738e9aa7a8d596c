"""Test the cache of compiled kernels: missing, read-only, full, damaged, outdated, foreign, or shared."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from normalmesh import NormalMeshWarning
from normalmesh.integration import _refinement
from normalmesh.runtime import kernel_cache, kernel_parts, kernels, temporary_files

#: A module with small kernels, which can be compiled repeatedly.
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
#: Prints the sums for two types of numbers, and the numbers of kernels loaded from the cache and compiled.
PROGRAM = """
import numpy as np
from tiny import total

results = total(np.arange(5)), total(np.arange(5) / 2)
print(*results, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values()))
"""
RESULT = "20 10.0"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return a folder with the module."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "tiny.py").write_text(MODULE)
    (folder / "constants.py").write_text("FACTOR, SHIFT = 2, 0\n")
    return folder


def started(folder: Path, cache: Path | None, **environment: str | None) -> subprocess.Popen[str]:
    """Start a process that uses the kernels of a folder; None removes a variable from its environment."""
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
    """Return the sums, the numbers of kernels loaded and compiled, and the standard error of a process."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    *sums, found, compiled = out.split()
    return " ".join(sums), int(found), int(compiled), err


def run(folder: Path, cache: Path | None, **environment: str | None) -> tuple[str, int, int, str]:
    """Run a process that uses the kernels of a folder, and return its answer."""
    return answer(started(folder, cache, **environment))


def files(cache: Path) -> list[Path]:
    """Return all files below a folder."""
    return sorted(path for path in cache.rglob("*") if path.is_file())


@pytest.fixture
def compiled(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the folder of the module, and a cache with its kernels."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tiny))
    assert kernel_of(tiny, tmp_path / "cache")[1:] == (0, 2)
    return tiny, tmp_path / "cache"


def kernel_of(tiny: Path, cache: Path) -> tuple[str, int, int]:
    """Import the module again in this process, and return sums, kernels loaded and kernels compiled."""
    for name in ("tiny", "constants"):
        sys.modules.pop(name, None)
    from tiny import total  # type: ignore[import-not-found]

    sums = f"{total(np.arange(5))} {total(np.arange(5) / 2)}"
    return sums, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values())


def test_several_processes_on_the_same_empty_cache(tiny: Path, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    answers = [answer(process) for process in [started(tiny, cache) for _ in range(3)]]
    assert {(sums, errors) for sums, _, _, errors in answers} == {(RESULT, "")}
    assert sum(compiled for _, _, compiled, _ in answers) == 2
    assert len(files(cache)) == 2
    assert run(tiny, cache) == (RESULT, 2, 0, "")


def damage(content: bytes) -> dict[str, bytes]:
    """Return damaged versions of the content of a file, by kind."""
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    return {
        "empty": b"",
        "truncated": content[: len(content) // 2],
        "random": os.urandom(500),
        "flipped": bytes(flipped),
    }


@pytest.mark.parametrize("how", ["empty", "truncated", "random", "flipped"])
def test_damaged_files_are_compiled_again(compiled: tuple[Path, Path], how: str) -> None:
    tiny, cache = compiled
    for path in files(cache):
        path.write_bytes(damage(path.read_bytes())[how])
    assert kernel_of(tiny, cache)[1:] == (0, 2)
    assert kernel_of(tiny, cache)[1:] == (2, 0)


def test_files_of_other_types_are_not_loaded(compiled: tuple[Path, Path]) -> None:
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
def test_a_change_to_a_part_of_a_kernel_compiles_it_again(
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


def test_a_constant_from_another_module_is_part_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(kernel_parts.parts(_refinement.move_batches))
    assert before == list(kernel_parts.parts(_refinement.move_batches))
    monkeypatch.setattr(_refinement, "MANY_PIXELS", _refinement.MANY_PIXELS + 1)
    assert before != list(kernel_parts.parts(_refinement.move_batches))


def test_a_folder_that_cannot_be_created_is_skipped(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert run(tiny, tmp_path / "file" / "cache") == (RESULT, 0, 2, "")
    assert len(list((tiny / "__pycache__").glob("*.nbc"))) == 2


def test_no_folder_can_be_written(tiny: Path, tmp_path: Path) -> None:
    """Files in place of the folders prevent writing, even for root."""
    (tmp_path / "file").write_text("not a folder")
    (tiny / "__pycache__").write_text("not a folder")
    home = {"HOME": str(tmp_path / "file"), "XDG_CACHE_HOME": None, "PYTHONDONTWRITEBYTECODE": "1"}
    result = run(tiny, tmp_path / "file", **home)
    assert result[:3] == (RESULT, 0, 2)
    assert result[3].count("compiled kernels cannot be kept anywhere") == 1
    assert "NUMBA_CACHE_DIR" in result[3]


def test_without_a_home_no_folder_is_created_in_the_current_one(tiny: Path, tmp_path: Path) -> None:
    (tiny / "__pycache__").write_text("not a folder")
    # expanduser() returns ~ as well if the system does not know the user.
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
    messages = [str(each.message) for each in caught if issubclass(each.category, NormalMeshWarning)]
    assert len(messages) == 1
    assert os.strerror(number) in messages[0]
    assert files(tmp_path / "cache") == []


def test_a_cache_that_is_deleted(compiled: tuple[Path, Path]) -> None:
    tiny, cache = compiled
    for path in files(cache):
        path.unlink()
    next(cache.iterdir()).rmdir()
    cache.rmdir()
    assert kernel_of(tiny, cache)[1:] == (0, 2)
    assert kernel_of(tiny, cache)[1:] == (2, 0)


#: A named tuple that is an argument: the kernel itself does not name its fields' order.
FIELDS = """
from collections import namedtuple
from normalmesh.runtime.kernels import kernel

Pair = namedtuple("Pair", "high low")

@kernel
def difference(pair):
    return pair.high - pair.low
"""


def test_a_named_tuple_with_other_fields_compiles_its_kernels_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    for fields in ("high low", "low high"):
        (tmp_path / "pairs.py").write_text(FIELDS.replace("high low", fields) + "#" * len(fields.split()[0]))
        sys.modules.pop("pairs", None)
        from pairs import Pair, difference  # type: ignore[import-not-found]

        assert difference(Pair(high=5.0, low=3.0)) == 2.0


def rewritten(path: Path, code: bytes) -> None:
    """Replace the code in a file, whose hash is right again."""
    content = path.read_bytes()
    kept = 2 * kernel_cache.HASH
    path.write_bytes(content[:kept] + hashlib.sha256(code).digest() + code)


class Trace:
    """Leaves a trace when it is loaded from a pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", ["garbage", "empty", "number", "tuple", "truncated", "unknown class", "raises"])
def test_foreign_content_with_a_right_hash_is_compiled_again(compiled: tuple[Path, Path], how: str) -> None:
    tiny, cache = compiled
    for path in files(cache):
        code = path.read_bytes()[3 * kernel_cache.HASH :]
        foreign = {
            "garbage": b"\xff" * 100,
            "empty": b"",
            "number": pickle.dumps(42),
            "tuple": pickle.dumps(tuple(range(7))),
            "truncated": code[: len(code) // 2],
            "unknown class": b"cno.such.module\nThing\n.",
            "raises": pickle.dumps(Trace(tiny)),
        }
        rewritten(path, foreign[how])
    assert kernel_of(tiny, cache) == (RESULT, 0, 2)
    assert kernel_of(tiny, cache) == (RESULT, 2, 0)


as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
on_posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other permissions")
#: A user that is not root.
SOMEBODY = 54321


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("file of another user", marks=as_root),
        pytest.param("folder of another user", marks=as_root),
        pytest.param("file for the group", marks=on_posix),
        pytest.param("file for all", marks=on_posix),
        pytest.param("folder for the group", marks=on_posix),
        pytest.param("folder for all", marks=on_posix),
        pytest.param("link", marks=on_posix),
        pytest.param("pipe", marks=on_posix),
    ],
)
def test_what_another_user_could_have_written_is_not_loaded(
    compiled: tuple[Path, Path], tmp_path: Path, how: str
) -> None:
    """Kernels are then compiled again; where the folder is not safe, they are kept in another one."""
    tiny, cache = compiled
    trace = tmp_path / "trace"
    (folder,) = cache.iterdir()
    for path in files(cache):
        rewritten(path, pickle.dumps(Trace(trace)))
        if how == "link":
            path.rename(tmp_path / path.name)
            path.symlink_to(tmp_path / path.name)
        elif how == "pipe":
            path.unlink()
            os.mkfifo(path)
        elif how == "file of another user":
            os.chown(path, SOMEBODY, -1)
        elif how.startswith("file"):
            path.chmod(0o664 if "group" in how else 0o646)
    if how == "folder of another user":
        os.chown(folder, SOMEBODY, -1)
    elif how.startswith("folder"):
        folder.chmod(0o775 if "group" in how else 0o707)
    assert kernel_of(tiny, cache) == (RESULT, 0, 2)
    assert kernel_of(tiny, cache) == (RESULT, 2, 0)
    assert not trace.exists()
    assert bool(list((tiny / "__pycache__").glob("*.nbc"))) == how.startswith("folder")


@as_root
def test_kernels_of_root_are_loaded_by_a_user(compiled: tuple[Path, Path]) -> None:
    """A safe folder of root, as the packages that it installs."""
    (path, _) = files(compiled[1])
    os.seteuid(SOMEBODY)
    try:
        found = [kernel_cache.is_safe(os.stat_result((0o100644, 0, 0, 1, user, 0, 0, 0, 0, 0))) for user in (0, 1)]
    finally:
        os.seteuid(0)
    assert found == [True, False]
    assert kernel_cache.read_trusted(path) == path.read_bytes()


@on_posix
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_kernels_are_kept_whatever_the_umask(tiny: Path, tmp_path: Path, umask: int) -> None:
    cache, before = tmp_path / "cache", os.umask(umask)
    try:
        assert run(tiny, cache) == (RESULT, 0, 2, "")
        assert run(tiny, cache) == (RESULT, 2, 0, "")
    finally:
        os.umask(before)
    assert all(path.stat().st_mode & 0o022 == 0 for path in files(cache))


@on_posix
def test_without_a_safe_folder_nothing_is_kept(tiny: Path, tmp_path: Path) -> None:
    (tiny / "__pycache__").mkdir()
    (tiny / "__pycache__").chmod(0o777)
    home = {"HOME": "~", "XDG_CACHE_HOME": None, "PYTHONDONTWRITEBYTECODE": "1"}
    result = run(tiny, None, **home)
    assert result[:3] == (RESULT, 0, 2)
    assert result[3].count("compiled kernels cannot be kept anywhere") == 1
    assert list((tiny / "__pycache__").glob("*.nbc")) == []


def test_settings_have_their_own_kernels(tiny: Path, tmp_path: Path) -> None:
    assert run(tiny, tmp_path / "cache") == (RESULT, 0, 2, "")
    assert run(tiny, tmp_path / "cache", NUMBA_BOUNDSCHECK="1") == (RESULT, 0, 2, "")
    for settings in ({}, {"NUMBA_BOUNDSCHECK": "1"}):
        assert run(tiny, tmp_path / "cache", **settings) == (RESULT, 2, 0, "")


def test_kernels_that_take_kernels_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The type of a kernel is its address, at which another one may be next time."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))

    @kernels.inner
    def doubled(value: float) -> float:
        return 2 * value

    @kernels.kernel
    def applied(function: Callable[[float], float], value: float) -> float:
        return function(value)

    assert applied(doubled, 3.0) == 6.0
    assert files(tmp_path / "cache") == []
