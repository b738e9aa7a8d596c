"""Fuzz the command line with valid and invalid options, values and files in any combination."""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from fuzz_chain import mostly
from fuzz_files import originals
from hypothesis import strategies as st

from invocation import invoke
from normalmesh import Surface, from_gradients, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_depth, encode_mask, encode_normals
from normalmesh.files.height_png import depth_files, range_of_camera

#: Files that exist, for inputs and for outputs to overwrite.
MAPS = ("map.png", "texture.png", "näme of two.tif", "-dash.png", "one pixel.png")
MESHES = ("mesh.ply", "mesh.obj", "mesh.glb", "mesh.stl")
BROKEN = ("cut.png", "empty.png", "junk.csv", "folder", "missing.png", "", "x" * 300, "*.nothing", "[")
OTHERS = ("mask.png", "camera.txt", "prior.csv", "depth.npy", "height.png", "lights.lp")
MESH_OUTPUTS = ("out.glb", "out.ply", "out.obj", "out.stl", "out.3mf", "out.xyz", "out/", "gone/a.ply", "{stem}.glb")
OUTPUTS = (*MESH_OUTPUTS, "out.exr", "out.npy", "out.npz", "out.tif", "out.png", "out.jpg", "out.html")
FILES = (*MAPS, *MESHES, *BROKEN, *OTHERS, *OUTPUTS)

NUMBERS = (
    "0",
    "1",
    "3",
    "7",
    "0.5",
    "20",
    "98%",
    "-1",
    "nan",
    "inf",
    "1e400",
    "1e-300",
    "9" * 25,
    "many",
    "",
    "½",
    "0x10",
)
WORDS = (
    "opengl",
    "directx",
    "auto",
    "+x-y+z",
    "perspective",
    "orthographic",
    "mm",
    "10%,5%",
    "50,20",
    "24",
    "17x9",
    "1GB",
)


@dataclass(frozen=True)
class Command:
    """Options with a value, options without one, likely files for each argument, and options that are usually given."""

    valued: str
    flags: str
    files: tuple[tuple[str, ...], ...]
    usual: tuple[str, ...] = ()


COMMANDS = {
    "reconstruct": Command(
        "-o --mask --camera --convention --compression --vertices --threshold --max-angle --max-error --lod --focal-px "
        "--fov --pixel-size --distance --prior --texture --jumps --jump-lines --depth --threads --memory-limit "
        "--flatten --solid --width --strength --scale --alpha",
        "--continuous --preview --report --dry-run --json --verbose --quiet --debug --tile --tile-x --tile-y "
        "--no-centre",
        (MAPS,),
    ),
    "inspect": Command("--mask --camera --convention --fov --alpha", "--json --debug", (MAPS, MAPS)),
    "edit": Command(
        "--mask --camera --convention --fov --focal-px --to --crop --margin --rotate --resize --bits --matrix --alpha",
        "--fill --json --debug",
        (MAPS, OUTPUTS),
    ),
    "report": Command(
        "--normals --mask --camera --convention --fov --pixel-size --texture",
        "--debug",
        ((*MESHES, "height.png", "depth.npy", "map.png"),),
        ("-o", "out.html"),
    ),
    "photometric": Command(
        "--mask --intensities --darkest --brightest --saturation --convention --albedo",
        "--json --debug",
        (("map.png",), ("texture.png",), ("-dash.png",)),
        ("--lights", "lights.lp", "-o", "out.png"),
    ),
    "evaluate": Command(
        "--mask --camera --focal-px --fov --convention --truth --truth-model --units --error-map --scale --align "
        "--pixel-size",
        "--away --placed --json",
        ((*MESHES, "depth.npy", "height.png"),),
        ("--normals", "map.png"),
    ),
    "convert": Command(
        "--normals --size --camera --focal-px --fov --pixel-size",
        "--json",
        ((*MESHES, "depth.npy", "height.png"), OUTPUTS),
    ),
    "render": Command("--camera --focal-px -o --depth --mask --matrix", "--flat --json", (MESHES,), ("--size", "17x9")),
    "completion": Command("", "--debug", (("bash", "zsh", "fish", "csh"),)),
}
#: Likely values of options, so that many command lines pass the checks of arguments.
LIKELY = {
    "-o": OUTPUTS,
    "--mask": ("mask.png",),
    "--camera": ("camera.txt", "perspective"),
    "--convention": ("opengl", "directx", "auto"),
    "--compression": ("90",),
    "--vertices": ("30",),
    "--lod": ("10%,5%", "50,20"),
    "--focal-px": ("40",),
    "--prior": ("prior.csv",),
    "--texture": ("map.png",),
    "--jumps": ("out.png",),
    "--normals": ("map.png",),
    "--truth": ("depth.npy",),
    "--truth-model": ("mesh.ply",),
    "--error-map": ("out.png",),
    "--size": ("24", "17x9"),
    "--depth": ("out.exr", "out.npy", "heights.png"),
    "--memory-limit": ("1GB", "none", "1kB"),
    "--fov": ("40", "0", "180"),
    "--flatten": ("plane", "quadratic"),
    "--solid": ("3mm", "2px", "1"),
    "--width": ("80mm", "5"),
    "--strength": ("2", "-0.5"),
    "--scale": ("auto", "none", "0.01", "2"),
    "--align": ("offset", "scale", "similarity", "rigid"),
    "--alpha": ("auto", "mask", "ignore"),
    "--crop": ("2,2,12,12", "foreground", "0,0,20,20"),
    "--margin": ("2",),
    "--rotate": ("90", "180", "270"),
    "--resize": ("0.5", "31x31", "2"),
    "--bits": ("8", "16", "32"),
    "--to": ("directx", "opengl", "opencv"),
    "--matrix": ("K.txt",),
    "--lights": ("lights.lp",),
    "--albedo": ("out.tif", "albedo.png"),
    "--jump-lines": ("mask.png",),
}


@dataclass(frozen=True)
class CommandLine:
    """The arguments of one run of the program."""

    arguments: tuple[str, ...]


@cache
def command_lines() -> st.SearchStrategy[CommandLine]:
    return st.sampled_from(sorted(COMMANDS)).flatmap(_lines_of)


def _lines_of(name: str) -> st.SearchStrategy[CommandLine]:
    command = COMMANDS[name]
    options = [_with_value(option) for option in command.valued.split()]
    options += [st.just((flag,)) for flag in command.flags.split()]
    given = st.lists(st.one_of(options), max_size=4).map(lambda pairs: tuple(chain(*pairs)))
    usual = mostly(st.just(command.usual), st.just(()))
    # Two dashes end the options, so that a file name may begin with a dash.
    likely = st.tuples(*(mostly(st.sampled_from(pool), st.sampled_from(FILES)) for pool in command.files))
    files = mostly(likely, st.lists(st.sampled_from(FILES), max_size=3).map(tuple))
    return st.builds(lambda usual, given, files: CommandLine((name, *usual, *given, "--", *files)), usual, given, files)


def _with_value(option: str) -> st.SearchStrategy[tuple[str, str]]:
    likely = st.sampled_from(LIKELY.get(option, ("3", "0.5")))
    anything = st.sampled_from(NUMBERS) | st.sampled_from(WORDS) | st.sampled_from(FILES)
    return mostly(likely, anything, 4).map(lambda text: (option, text))


@cache
def _contents() -> dict[str, bytes]:
    """Return the files of the folder that commands run in, by name."""
    small = Medallion(20).normal_map
    surface = reconstruct(small, vertices=20)
    png = encode_normals(Path("map.png"), small.normals, small.mask)
    height = depth_files(Path("height.png"), surface.depth_map(), range_of_camera(surface.camera, "mm"))
    v, u = np.mgrid[0:20, 0:20] + 0.5
    slopes = 0.4 * np.cos(np.pi * u / 10), 0.3 * np.sin(np.pi * v / 10)
    texture = from_gradients(*slopes).normals
    single = encode_normals(Path("one pixel.png"), np.array([[[0.0, 0, 1]]]), np.ones((1, 1), np.bool_))
    contents = {
        "map.png": png,
        "-dash.png": png,
        "one pixel.png": single,
        "näme of two.tif": originals()["tiff"][0],
        "texture.png": encode_normals(Path("texture.png"), texture, np.ones((20, 20), np.bool_)),
        "lights.lp": b"3\n-dash.png 0 0.5 1\nmap.png 0.5 0 1\ntexture.png -0.5 -0.5 1\n",
        "mask.png": encode_mask(Path("mask.png"), small.mask),
        "camera.txt": b"40 0 10\n0 40 10\n0 0 1\n",
        "prior.csv": b"u,v,depth\n9,9,1\n",
        "depth.npy": encode_depth(Path("depth.npy"), surface.depth_map()),
        "cut.png": png[: len(png) // 2],
        "empty.png": b"",
        "junk.csv": b"1,2,3\nfour\n",
    }
    contents |= {str(path): bytes(content) for path, content in height.items()}
    return contents | _meshes(surface)


def _meshes(surface: Surface) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        for name in MESHES:
            surface.save(Path(folder) / name)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def run_command(given: CommandLine) -> str:
    """Run a command: its status must be 0 to 3, an error be one line, and only the named outputs be written."""
    contents = _contents()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in contents.items():
            (folder / file).write_bytes(content)
        (folder / "folder").mkdir()
        os.chdir(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                result = invoke(*given.arguments)
        finally:
            os.chdir(before)
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        assert result.exit_code in (0, 1, 2, 3), result.exit_code
        _check_message(result.exit_code, result.stderr, traced="--debug" in given.arguments)
        _check_folder(folder, contents, result.exit_code, given.arguments)
    return f"{given.arguments[0]}: {result.exit_code}"


def _check_message(status: int, stderr: str, traced: bool) -> None:
    assert "internal error" not in stderr, stderr
    assert traced or "Traceback" not in stderr, stderr
    errors = [line for line in stderr.splitlines() if line.startswith(("normalmesh: error: ", "Error: "))]
    assert bool(errors) == (status in (1, 2)), stderr
    assert "RuntimeWarning" not in stderr, stderr


def _check_folder(folder: Path, before: dict[str, bytes], status: int, arguments: tuple[str, ...]) -> None:
    """Check that inputs are unchanged unless they are outputs too, and that new files are named by the arguments."""
    named = " ".join(arguments[1:])
    after = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    for name, content in before.items():
        assert after[name].read_bytes() == content or (status != 2 and name in named), f"{name} was changed"
    new = sorted(after.keys() - before.keys())
    assert not (new and status == 2), f"{new} written despite a usage error"
    # The names of levels, previews, reports and materials, or of their folder, begin with that of an output or input.
    stems = tuple(Path(argument).stem for argument in arguments[1:] if argument)
    for name in new:
        assert any(part.startswith(stems) for part in Path(name).parts), f"{name} was not named"
        assert not name.endswith((".tmp", ".old")), f"{name} was left behind"
