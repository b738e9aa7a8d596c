"""Atomic writing: all of the new files, or all of the old ones, and never anything else."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from normalmesh.errors import NormalMeshError
from normalmesh.files.atomic import check_target, write_atomically


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_made_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    write_atomically({tmp_path / "a": b"A", str(tmp_path / "b"): b"B"})
    assert contents(tmp_path) == {"a": b"A", "b": b"B"}


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failure_at_any_file_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: BaseException, function: str
) -> None:
    old = {"a": b"old a", "c": b"old c"}
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    genuine = getattr(os, function)
    calls = 0

    def fails_once(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise error
        return genuine(*arguments)

    monkeypatch.setattr(os, function, fails_once)
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else NormalMeshError
    with pytest.raises(expected) as caught:
        write_atomically({tmp_path / name: b"new" for name in "abc"})
    if expected is NormalMeshError:
        assert str(caught.value) == f"cannot write {tmp_path / 'abc'[failing - 1]}: No space left on device"
    assert contents(tmp_path) == old


def test_an_interrupt_after_the_last_replacement_keeps_the_new_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    genuine = os.replace

    def interrupted(source: Path, target: Path) -> None:
        genuine(source, target)
        if target.name == "b":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically({tmp_path / "a": b"A", tmp_path / "b": b"B"})
    assert contents(tmp_path) == {"a": b"A", "b": b"B"}


def test_old_files_come_back_with_their_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o640)
    genuine = os.replace

    def second_fails(source: Path, target: Path) -> None:
        if target.name == "b":
            raise OSError(errno.EIO, "Input/output error")
        genuine(source, target)

    monkeypatch.setattr(os, "replace", second_fails)
    with pytest.raises(NormalMeshError, match="Input/output error"):
        write_atomically({tmp_path / "a": b"A", tmp_path / "b": b"B"})
    assert contents(tmp_path) == {"a": b"old"}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_permissions_are_those_of_the_umask_or_of_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"")
    (tmp_path / "old").chmod(0o640)
    before = os.umask(0o027)
    try:
        write_atomically({tmp_path / "old": b"", tmp_path / "new": b""})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    write_atomically({tmp_path / "usual": b""})
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o666 & ~before


def test_links_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder / "file")
    write_atomically({tmp_path / "link": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert contents(folder) == {"file": b"new"}


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    write_atomically({tmp_path / ("n" * 255): b"new"})
    assert contents(tmp_path) == {"n" * 255: b"new"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [("folder", "it is a folder"), ("missing/file", "missing does not exist"), ("pipe", "not an ordinary file")],
)
def test_impossible_targets_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for attempt in (check_target, lambda path: write_atomically({tmp_path / "fine": b"", path: b""})):
        with pytest.raises(NormalMeshError, match=reason) as caught:
            attempt(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


@pytest.mark.parametrize(("protected", "reason"), [("file", "write-protected"), ("", "no permission to write into")])
def test_protected_targets_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protected: str, reason: str
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    # Asked of the system by a stand-in, because root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / protected)
    with pytest.raises(NormalMeshError, match=reason):
        write_atomically({tmp_path / "file": b"new"})
    assert contents(tmp_path) == {"file": b"old"}
