"""Test outputs that cannot be written: errors come before the work if possible, and existing files are unchanged."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from invocation import invoke, medallion, succeed, write_medallion
from normalmesh import NormalMeshError, reconstruct, write_report
from normalmesh.cli.settings import Settings
from normalmesh.files import atomic
from normalmesh.files.atomic import check_targets

OLD = b"an older result"


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return all files below a folder with their contents, and all folders with None."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_medallion(tmp_path / "n.png")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a command begins to reconstruct, render or evaluate."""

    def begin(*_: object) -> None:
        pytest.fail("the work began")

    monkeypatch.setattr(Settings, "surfaces", begin)
    monkeypatch.setattr("normalmesh.evaluation.rendering.rendering.cast", begin)
    monkeypatch.setattr("normalmesh.evaluation.metrics.evaluate", begin)


IMPOSSIBLE = {
    "missing/out.glb": "does not exist",
    "folder.glb": "cannot write",
    "pipe.glb": "not an ordinary file",
    "out.xyz": "suffix",
    "out": "suffix",
    "x" * 252 + ".glb": "File name too long",
    "n.png/out.glb": "does not exist|Not a directory",
    "loop.glb": "cannot write",
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_mesh_is_reported_before_the_work(tmp_path: Path, source: Path, no_work: None, name: str) -> None:
    (tmp_path / "folder.glb" / "n.glb").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe.glb")
    (tmp_path / "loop.glb").symlink_to("loop.glb")
    before = tree(tmp_path)
    result = invoke("reconstruct", source, "-o", tmp_path / name)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert re.search(IMPOSSIBLE[name], result.stderr)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("reconstruct", "n.png", "--jumps", "jumps.jpg"), "suffix of pictures"),
        (("reconstruct", "n.png", "--jumps", "missing/jumps.png"), "does not exist"),
        (("reconstruct", "n.png", "--jumps", "n.png"), "n.png: this file is read, too"),
        (("reconstruct", "n.png", "-o", "m.glb", "--preview", "--jumps", "m.preview.png"), "is written, too"),
        (("reconstruct", "n.png", "n_edges.png", "--jumps", "{stem}_edges.png"), "n_edges.png: this file is read, too"),
        (("reconstruct", "n_edges.png", "n.png", "--jumps", "{stem}_edges.png"), "n_edges.png: this file is read, too"),
        (("reconstruct", "x.png", "x.preview.png", "--preview"), "x.preview.png: this file is read, too"),
        (("reconstruct", "n.png", "n_new.png", "--jumps", "./{stem}_new.png"), "n_new.png: this file is read, too"),
        (("reconstruct", "n.png", "p_texture.png", "-o", "f/", "--mask", "f/{stem}.glb"), "f/n.glb: this file is read"),
        (("reconstruct", "n.png", "x.png", "--jumps", "{stem}.png", "--prior", "hard.png"), "n.png: this file is read"),
        (("reconstruct", "n.png", "--jumps", "hard.png"), "hard.png: this file is read, too"),
        (("reconstruct", "n.png", "--jumps", "link.png"), "link.png: this file is read, too"),
        (("reconstruct", "n.png", "--jumps", "hard.png", "--dry-run"), "hard.png: this file is read, too"),
        (("reconstruct", "n.png", "-o", "m.glb", "--report", "--texture", "m.html"), "m.html: this file is read, too"),
        (("reconstruct", "n.png", "-o", "m.glb", "--lod", "5%,2%", "--camera", "m.lod1.glb"), "m.lod1.glb: this file"),
        (("reconstruct", "n.png", "-o", "m.obj", "--prior", "m.mtl"), "m.mtl: this file is read, too"),
        (("reconstruct", "n.png", "-o", "o.obj"), "o.mtl: it is a folder"),
        (
            ("reconstruct", "n.png", "-o", "p.obj", "--texture", "p_texture.png"),
            "p_texture.png: this file is read, too",
        ),
        (("reconstruct", "n.png", "-o", "y" * 250 + ".obj", "--texture", "n.png"), "File name too long"),
        (("reconstruct", "n.png", "-o", "q.glb", "--report"), "q.html: it is a folder"),
        (("render", "stone", "-o", "a.jpg"), "suffix of normals"),
        (("render", "stone", "-o", "a.npy", "--depth", "a.npy"), "is written, too"),
        (("render", "stone", "-o", "a.npy", "--depth", "a.jpg"), "suffix of depths"),
        (("render", "stone", "-o", "a.npy", "--mask", "a.tif"), "suffix of masks"),
        (("render", "stone", "-o", "a.npy", "--matrix", "K.json", "--focal-px", "99"), "suffix of camera matrices"),
        (("render", "stone", "-o", "a.npy", "--matrix", "-", "--focal-px", "99"), "suffix of camera matrices"),
        (("render", "stone", "-o", "A.npy", "--depth", "./a.npy"), "is written, too"),
        (("evaluate", "n.png", "--normals", "n.png", "--error-map", "e.jpg"), "suffix of pictures"),
        (("evaluate", "n.png", "--normals", "n.png", "--error-map", "n.png"), "is read, too"),
        (("convert", "n.png", "missing/d.npy"), "does not exist"),
        (("convert", "old.ply", "old.ply"), "old.ply: this file is read, too"),
        (("convert", "old.ply", "link.stl"), "link.stl: this file is read, too"),
        (("convert", "d.npy", "./d.npy"), "d.npy: this file is read, too"),
    ],
)
def test_other_impossible_outputs(
    tmp_path: Path,
    source: Path,
    no_work: None,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("o.mtl", "q.html"):
        (tmp_path / folder).mkdir()
    for name in ("p_texture", "n_edges", "x", "x.preview"):
        (tmp_path / f"{name}.png").write_bytes(source.read_bytes())
    for name in ("old.ply", "d.npy"):
        (tmp_path / name).write_bytes(OLD)
    (tmp_path / "hard.png").hardlink_to(source)
    (tmp_path / "link.png").symlink_to(source)
    (tmp_path / "link.stl").symlink_to("old.ply")
    before = tree(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert reason in result.stderr
    assert tree(tmp_path) == before


def test_a_link_to_an_input_is_the_input(tmp_path: Path) -> None:
    (tmp_path / "in.png").write_bytes(OLD)
    (tmp_path / "link.png").symlink_to(tmp_path / "in.png")
    with pytest.raises(NormalMeshError, match="is read, too"):
        check_targets([tmp_path / "link.png"], [tmp_path / "in.png"])
    with pytest.raises(NormalMeshError, match="null"):
        check_targets([tmp_path / "a\0.png"])


def test_outputs_of_two_inputs_that_are_one_file(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of jumps and companions count, too, and so do names that differ in case or in composed accents."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("sub/n", "ä", "a\u0308", "b.lod0", "B"):
        (tmp_path / f"{name}.png").write_bytes(source.read_bytes())
    before = tree(tmp_path)
    for arguments in (
        ["n.png", "sub/n.png", "--jumps", "{stem}_j.png"],
        ["ä.png", "a\u0308.png"],
        ["n.png", "sub/../n.png"],
    ):
        result = invoke("reconstruct", *arguments)
        assert result.exit_code == 2
        assert "would both be written to" in result.stderr
    assert tree(tmp_path) == before
    succeed("reconstruct", "b.lod0.png", "B.png", "--lod", "5%,2%", "-q")


def test_a_demo_does_not_replace_a_map_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_medallion(tmp_path / "normals.png", 48)
    before = tree(tmp_path)
    result = invoke("demo", "--output", ".", "--size", "96")
    assert result.exit_code == 1
    assert "normals.png is a file of yours: choose another folder" in result.stderr
    assert tree(tmp_path) == before
    for size in (96, 64):
        succeed("demo", "--output", "demo", "--size", size)


def test_an_empty_name_is_no_folder(tmp_path: Path, source: Path, no_work: None) -> None:
    """As of a variable of the shell that is not set."""
    result = invoke("reconstruct", source, "-o", "")
    assert result.exit_code == 2
    assert "the name after -o is empty" in result.stderr


TEXTURED_OBJ = "mtllib {0}.mtl\nusemtl m\nv 0 0 0\nv 9 0 0\nv 0 9 0\nvt 0 0\nvt 1 0\nvt 0 1\nf 1/1 2/2 3/3\n"


@pytest.mark.parametrize(
    ("arguments", "lost"),
    [
        (("convert", "in.obj", "shared.obj"), "shared.mtl"),
        (("convert", "in.obj", "photo.obj"), "photo_texture.png"),
        (("render", "in.obj", "-o", "photo_texture.png", "--size", "16"), "photo_texture.png"),
    ],
)
def test_what_a_mesh_refers_to_is_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], lost: str
) -> None:
    """Materials and textures are found while a mesh is read."""
    if arguments[0] == "render":
        pytest.importorskip("embreex")
    monkeypatch.chdir(tmp_path)
    write_medallion(tmp_path / "photo_texture.png")
    (tmp_path / "shared.mtl").write_text("newmtl m\nmap_Kd photo_texture.png\n")
    (tmp_path / "in.obj").write_text(TEXTURED_OBJ.format("shared"))
    before = tree(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert f"cannot write {lost}: this file is read, too" in result.stderr
    assert tree(tmp_path) == before
    succeed("convert", "in.obj", "other.obj")


def test_a_report_does_not_replace_its_texture(tmp_path: Path, source: Path) -> None:
    surface = reconstruct(medallion().normal_map, vertices=60)
    before = tree(tmp_path)
    for given in ({"texture": source}, {"source": source}):
        with pytest.raises(NormalMeshError, match="is read, too"):
            write_report(source, surface, **given)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("place", ["write", "fsync", "replace"])
def test_a_disk_that_is_full_in_the_middle_of_a_batch(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The first input is written, the second fails and leaves its old file, the third is written."""
    sources = [write_medallion(tmp_path / f"{name}.png") for name in "abc"]
    for name in "abc":
        (tmp_path / f"{name}.glb").write_bytes(OLD)
    genuine, writes = atomic._write_beside, []

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def write_beside(target: Path, new: Path, content: bytes) -> None:
        writes.append(new)
        with monkeypatch.context() as patch:
            if len(writes) == 2 and place == "write":
                new.write_bytes(content[:100])
                full()
            if len(writes) == 2 and place == "fsync":
                patch.setattr(os, "fsync", full)
            genuine(target, new, content)

    moves, replace = [], os.replace
    monkeypatch.setattr(atomic, "_write_beside", write_beside)
    if place == "replace":
        monkeypatch.setattr(
            os, "replace", lambda *files: full() if moves.append(files) or len(moves) == 2 else replace(*files)
        )
    before = set(tree(tmp_path))
    result = invoke("reconstruct", *sources)
    assert result.exit_code == 1
    assert f"cannot write {tmp_path / 'b.glb'}: No space left on device" in result.stderr
    assert "2 of 3 reconstructed, 1 failed" in result.stderr
    assert [(tmp_path / f"{name}.glb").read_bytes() == OLD for name in "abc"] == [False, True, False]
    assert set(tree(tmp_path)) == before


LIMITED = """
import resource, signal, sys
from normalmesh.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
main()
"""


def test_a_limit_on_the_size_of_files(tmp_path: Path, source: Path) -> None:
    """The system interrupts the writing, in a process of its own."""
    for name in ("out.obj", "out.mtl", "out_texture.png"):
        (tmp_path / name).write_bytes(OLD)
    before = tree(tmp_path)
    arguments = ["reconstruct", source, "-o", tmp_path / "out.obj", "--texture", source]
    # Fill the cache of kernels, whose files would be too large as well.
    succeed(*arguments, "--dry-run")
    done = subprocess.run([sys.executable, "-c", LIMITED, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("File too large")
    assert "cannot write" in done.stderr.splitlines()[-1]
    assert tree(tmp_path) == before


COMMANDS = {
    "inspect n.png": set(),
    "inspect n.png --json": set(),
    "reconstruct n.png --dry-run": set(),
    "reconstruct n.png": {"n.glb"},
    "reconstruct n.png -o out/": {"out", "out/tileset.json", "out/tiles", "out/tiles/0_0_0.glb"},
    "reconstruct *.png -o out/": {"out", "out/n.glb"},
    "reconstruct n.png -o m.obj --texture n.png --preview --report --jumps j.png": {
        "m.obj",
        "m.mtl",
        "m_texture.png",
        "m.preview.png",
        "m.html",
        "j.png",
    },
    "reconstruct n.png -o m.ply --lod 5%,2%": {"m.lod0.ply", "m.lod1.ply"},
    "render stone --size 48 --camera perspective -o r.exr --depth d.exr --mask m.png --matrix K.txt": {
        "r.exr",
        "d.exr",
        "m.png",
        "K.txt",
    },
    "convert old.ply new.stl": {"new.stl"},
    "convert old.ply d.exr --normals n.png": {"d.exr"},
    "evaluate old.ply --normals n.png --error-map e.png": {"e.png"},
    "reconstruct missing.png": set(),
    "convert missing.ply x.obj": set(),
    "completion bash": set(),
}


@pytest.fixture(scope="module")
def old_mesh(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("old")
    succeed("reconstruct", write_medallion(folder / "n.png"), "-o", folder / "old.ply")
    return (folder / "old.ply").read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_only_the_named_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old_mesh: bytes, command: str
) -> None:
    folder, elsewhere = tmp_path / "work", tmp_path / "temporary"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    write_medallion(folder / "n.png")
    (folder / "old.ply").write_bytes(old_mesh)
    before = tree(folder)
    result = invoke(*command.split())
    assert (result.exit_code == 1) == ("missing" in command), result.output
    after = tree(folder)
    assert set(after) - set(before) == COMMANDS[command]
    assert {name: after[name] for name in before} == before
    assert not tree(elsewhere)


@pytest.mark.skipif(os.name != "posix", reason="streams are closed by a POSIX shell")
def test_all_standard_streams_may_be_closed(source: Path, tmp_path: Path) -> None:
    surface = tmp_path / "s.ply"
    command = f'"{sys.executable}" -m normalmesh reconstruct "{source}" -o "{surface}" <&- >&- 2>&-'
    assert subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 0
    expected = tmp_path / "expected.ply"
    succeed("reconstruct", source, "-o", expected)
    assert surface.read_bytes() == expected.read_bytes()
