"""Test that many reconstructions in one process do not increase memory, open files or threads.

``make longrun`` runs 200 reconstructions; the test suite runs fewer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = int(os.environ.get("NORMALMESH_LONG_RUN", "30"))

#: Reads and reconstructs maps of several sizes and cameras, writes meshes, previews and reports, and raises errors.
PROGRAM = """
import gc, json, os, resource, sys, threading
from pathlib import Path
import numpy as np
import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_normals
from normalmesh.pictures.preview import preview

folder, runs = Path(sys.argv[1]), int(sys.argv[2])

def state():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize(), len(os.listdir("/proc/self/fd")), threading.active_count()

def fails(work, *arguments, **options):
    try:
        work(*arguments, **options)
    except nm.NormalMeshError:
        return
    raise AssertionError("no error")

def stop(step):
    if step.stage == "refine":
        raise KeyboardInterrupt

def once(number):
    size = SIZES[number % len(SIZES)]
    path = folder / f"{size}.png"
    camera = nm.Perspective.centred(2 * size, (size, size)) if number % 2 else None
    normal_map = nm.read_normal_map(path, camera=camera)
    surface = nm.reconstruct(normal_map, vertices=2 * size)
    surface.save(folder / f"out{'.ply .obj .glb .stl'.split()[number % 4]}")
    kind = number % 6
    if kind == 0:
        preview(surface, normal_map)
    elif kind == 1:
        nm.write_report(folder / "out.html", surface, normal_map)
    elif kind == 2:
        nm.integrate_pixels(normal_map)
    elif kind == 3:
        nm.reconstruct_levels(normal_map, [size, size // 2])
    elif kind == 4:
        fails(nm.read_normal_map, folder / "cut.png")
        fails(surface.save, folder / "missing" / "out.ply")
        fails(nm.reconstruct, normal_map, vertices=0)
    else:
        try:
            nm.reconstruct(normal_map, vertices=2 * size, progress=stop)
        except KeyboardInterrupt:
            pass

SIZES = [24, 56, 32, 64, 40]
for size in SIZES:
    truth = Medallion(size).normal_map
    (folder / f"{size}.png").write_bytes(encode_normals(folder / f"{size}.png", truth.normals, truth.mask))
(folder / "cut.png").write_bytes((folder / "64.png").read_bytes()[:500])
WARM_UP = 30
for number in range(WARM_UP):
    once(number)
before = state()
for number in range(WARM_UP, WARM_UP + runs):
    once(number)
print(json.dumps([before, state(), sorted(path.name for path in folder.iterdir())]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory and open files are read from /proc")
def test_memory_files_and_threads_do_not_grow(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path), str(RUNS)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (memory, handles, threads), (memory_after, *after), names = json.loads(result.stdout)
    print(f"{RUNS} runs: {memory / 1e6:.1f} MB before, {memory_after / 1e6:.1f} MB after, {handles} files open")
    assert after == [handles, threads]
    assert memory_after <= 1.05 * memory
    assert not [name for name in names if name.startswith(".")]
