"""Test Ctrl-C and SIGTERM at any moment: the program ends at once, and leaves old files but no partial ones."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from normalmesh import reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.atomic import write_atomically
from normalmesh.files.encoding import encode_normals
from normalmesh.runtime import temporary_files
from normalmesh.runtime.kernels import inner, kernel

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals for one process")

#: Runs the program with a function that never returns and ignores exceptions, like a kernel on a huge map.
STUCK = """
import functools, importlib, sys, time
from normalmesh.__main__ import main

def stuck(*arguments, **options):
    calls.append(arguments)
    if len(calls) < after:
        return genuine(*arguments, **options)
    print("stuck", file=sys.stderr, flush=True)
    while True:
        try:
            time.sleep(100)
        except BaseException:
            pass

calls, (place, after) = [], sys.argv[1].split("@")
after = int(after)
module, _, path = place.partition(":")
*owners, name = path.split(".")
owner = functools.reduce(getattr, owners, importlib.import_module(module))
genuine = getattr(owner, name)
setattr(owner, name, stuck)
sys.argv[:2] = ["normalmesh"]
main()
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two small maps and a mesh."""
    folder = tmp_path_factory.mktemp("inputs")
    for size in (48, 64):
        normal_map = Medallion(size).normal_map
        path = folder / f"map{size}.png"
        path.write_bytes(encode_normals(path, normal_map.normals, normal_map.mask))
    reconstruct(normal_map, vertices=60).save(folder / "mesh.ply")
    return folder


@pytest.fixture
def folder(inputs: Path, tmp_path: Path) -> Path:
    """Return a temporary folder with links to the inputs."""
    for path in inputs.iterdir():
        os.link(path, tmp_path / path.name)
    return tmp_path


@contextmanager
def running(command: list[str], folder: Path, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Run a process with the default handling of SIGINT, which a test runner in the background ignores."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **{  # type: ignore[call-overload]
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.PIPE,
            "env": {**os.environ, "TMPDIR": str(folder)},
            **options,
        },
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


#: The function that blocks (and at which call), the command, and the files that it has written before.
COMMANDS = {
    "files of a mesh": ("os:fsync@2", "reconstruct map64.png -o out.obj --texture map64.png -q", []),
    "second input": ("os:fsync@2", "reconstruct map48.png map64.png -o out -q", ["out/map48.glb"]),
    "levels": (
        "os:fsync@3",
        "reconstruct map64.png -o out.ply --lod 9%,5% --report -q",
        ["out.lod0.ply", "out.lod1.ply"],
    ),
    "heights": ("os:fsync@2", "reconstruct map64.png -o out.png -o out.npy -q", []),
    "second image of heights": (
        "os:fsync@4",
        "reconstruct map64.png -o out.png --lod 9%,5% -q",
        ["out.lod0.json", "out.lod0.png"],
    ),
    "inspect": ("normalmesh.maps.inspection:inspect_file@1", "inspect map64.png", []),
    "convert": ("os:fsync@1", "convert mesh.ply out.ply", []),
    "bench": ("os:fsync@1", "bench accuracy --size 32 -o bench", []),
    "serving": ("normalmesh.report.page_server:PageServer.serve_forever@1", "view mesh.ply --no-browser", []),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_blocked_ends(folder: Path, name: str) -> None:
    place, command, written = COMMANDS[name]
    number = (signal.SIGINT, signal.SIGTERM)[len(name) % 2]
    for old in ("out.ply", "out.obj", "out.mtl", "out.html"):
        (folder / old).write_text("old")
    before = contents(folder)
    with running(["-c", STUCK, place, *command.split()], folder) as process:
        printed = list(iter(process.stderr.readline, "stuck\n"))
        process.send_signal(number)
        rest = process.communicate(timeout=30)[1]
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    what = f"after writing {', '.join(written)}" if written else "nothing written"
    assert (process.returncode, rest) == (128 + number, f"normalmesh: {word}, {what}\n"), printed
    after = contents(folder)
    assert {path for path in after if after[path] != before.get(path)} == set(written)


def test_work_in_tiles_is_kept(folder: Path) -> None:
    command = ["reconstruct", "map64.png", "-o", "out.ply", "--tiles", "-q"]
    with running(["-c", STUCK, "normalmesh.mesh.surface:Surface.save@1", *command], folder) as process:
        assert "stuck\n" in iter(process.stderr.readline, "")
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[1]
    kept = "normalmesh: work is kept in out.ply.work; the same command goes on from there\n"
    assert (process.returncode, rest) == (130, f"{kept}normalmesh: interrupted, nothing written\n")
    assert (folder / "out.ply.work" / "folder.json").is_file()
    with running(["-m", "normalmesh", *command], folder) as process:
        assert process.wait(timeout=60) == 0
    assert (folder / "out.ply").is_file()
    assert not (folder / "out.ply.work").exists()


def test_an_interrupt_during_the_first_imports(folder: Path) -> None:
    program = """
import builtins
original = builtins.__import__

def interrupted(name, *rest):
    if name.startswith("normalmesh.cli"):
        raise KeyboardInterrupt
    return original(name, *rest)

from normalmesh.__main__ import main
builtins.__import__ = interrupted
main()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder)
    assert (result.returncode, result.stderr) == (130, "normalmesh: interrupted, nothing written\n")


@pytest.mark.parametrize("cached", [True, False], ids=["working", "compiling"])
def test_an_interrupt_while_kernels_run_or_compile(folder: Path, cached: bool) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")} if not cached else {**os.environ}
    path = folder / "large.png"
    normal_map = Medallion(768).normal_map
    path.write_bytes(encode_normals(path, normal_map.normals, normal_map.mask))
    before = set(contents(folder))
    command = ["-m", "normalmesh", "reconstruct", "large.png"]
    with running(command, folder, env=environment) as process:
        begun = next(line for line in process.stderr if line.startswith("needs" if cached else "compiling"))
        assert cached or begun == "compiling kernels, first run only\n"
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[1]
    assert (process.returncode, rest) == (130, "normalmesh: interrupted, nothing written\n")
    assert {name for name in contents(folder) if not name.endswith(".nbc")} == before


def test_a_blocked_terminal_does_not_delay_the_end(folder: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, b"." * 4096):
            pass
    os.set_blocking(writing, True)
    program = "import sys; from normalmesh.cli.interruption import watch; watch(); print(flush=True); sys.stdin.read()"
    with running(["-c", program], folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    os.close(reading)
    os.close(writing)


def test_a_signal_that_is_ignored_stays_ignored(folder: Path) -> None:
    program = """
import signal
from normalmesh.cli.interruption import watch
signal.signal(signal.SIGINT, signal.SIG_IGN)
watch()
signal.raise_signal(signal.SIGINT)
print("continues")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "continues\n")


def test_other_signals_do_not_end_the_program() -> None:
    program = """
import signal, time
from normalmesh.cli.interruption import watch
watch()
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.raise_signal(signal.SIGUSR1)
time.sleep(0.5)
print("continues", flush=True)
signal.raise_signal(signal.SIGTERM)
time.sleep(60)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (143, "continues\n")


def test_a_disk_that_does_not_respond() -> None:
    program = """
import signal, time
from normalmesh.runtime.temporary_files import steps
from normalmesh.cli.interruption import watch
watch()
with steps:
    signal.raise_signal(signal.SIGTERM)
    time.sleep(60)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30).returncode == 143


def interrupted(after: float, work: Callable[[], object]) -> bool:
    """Send SIGINT after ``after`` seconds of work, and return whether it interrupted the work."""

    def press(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, press), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    except SystemError as error:
        # In rare cases the signal arrives while Numba returns a result.
        cause = error.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if not isinstance(cause, KeyboardInterrupt):
            raise
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGINT, before[1])
    return False


def test_results_are_the_same_after_an_interrupt() -> None:
    normal_map = Medallion(80).normal_map
    expected = reconstruct(normal_map, vertices=150)
    threads = threading.active_count()
    times = random.Random(9)
    stopped = sum(
        interrupted(times.uniform(0.001, 0.1), lambda: reconstruct(normal_map, vertices=150)) for _ in range(12)
    )
    assert stopped > 0
    surface = reconstruct(normal_map, vertices=150)
    assert np.array_equal(surface.vertices, expected.vertices)
    assert np.array_equal(surface.faces, expected.faces)
    assert threading.active_count() == threads


@inner
def doubled(value):  # type: ignore[no-untyped-def]
    return 2 * value


def test_an_interrupt_while_a_kernel_compiles_is_not_lost() -> None:
    """LLVM calls Python functions, in which an exception would be printed and ignored."""
    times = random.Random(9)
    stopped = 0
    for _ in range(12):

        @kernel(cache=False)
        def total(values):  # type: ignore[no-untyped-def]
            result = 0
            for i in range(values.size):
                result += doubled(values[i])
            return result

        stopped += interrupted(times.uniform(0.001, 0.1), lambda total=total: total(np.arange(5)))  # type: ignore[misc]
        assert total(np.arange(5)) == 20
        assert gc.isenabled()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert stopped > 0


def test_an_interrupt_while_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Path.unlink

    def interrupted(path: Path, missing_ok: bool = False) -> None:
        monkeypatch.setattr(Path, "unlink", genuine)
        raise KeyboardInterrupt

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically({tmp_path / "a": b"A", tmp_path / "b": b"B"})
    temporary_files.remove_temporary_files()  # as at the end of the process
    assert list(tmp_path.iterdir()) == []
