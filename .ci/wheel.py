"""Build sdist and wheel, look into them, and use the wheel where nothing else is: ``make wheel``."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from environments import DIST, ROOT, environment, run, the_wheel

#: What makes the bundle of three.js, in the sdist only.
NOT_INSTALLED = {"normalmesh/report/make_bundle.sh", "normalmesh/report/three.entry.js"}

TRIAL = """
import sys, normalmesh
assert normalmesh.__file__.startswith(sys.prefix), normalmesh.__file__
for name in normalmesh.__all__:
    getattr(normalmesh, name)
"""


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", ROOT)  # the wheel is made from the sdist
    built = contents(the_wheel())
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
        assert contents(Path(folder) / the_wheel().name) == built, "the sdist makes another wheel than the checkout"
    check_names(set(built))
    use()


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_names(names: set[str]) -> None:
    """The wheel has all files of the package, its licences, and what installers need."""
    source = ROOT / "src"
    package = {
        path.relative_to(source).as_posix()
        for path in (source / "normalmesh").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = f"{'-'.join(the_wheel().name.split('-')[:2])}.dist-info"
    files = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    files.add("licenses/src/normalmesh/report/three.LICENSE")
    wanted = package - NOT_INSTALLED | {f"{about}/{file}" for file in files}
    assert names == wanted, f"too many: {sorted(names - wanted)}, missing: {sorted(wanted - names)}"


def use() -> None:
    """Install the wheel without extras, and run it from a folder where no checkout is."""
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "environment", the_wheel())
        run(python, "-c", TRIAL, cwd=folder)
        run(python.with_name("normalmesh"), "demo", "--size", 64, cwd=folder)
        run(python.with_name("normalmesh"), "reconstruct", "demo/normals.png", "-o", "out.ply", "--preview", cwd=folder)
        run(python.with_name("normalmesh"), "inspect", "demo/normals.png", cwd=folder)


if __name__ == "__main__":
    main()
