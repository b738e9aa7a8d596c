"""Test every public name with invalid values for each argument: it gives a result, or one sentence on the error."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import matplotlib
import numpy as np
import pytest

import normalmesh as nm
from rti_files import dome, photographed, write_ptm

SIDE = 8
NORMALS = np.broadcast_to([0.2, 0.0, 1.0], (SIDE, SIDE, 3)) / math.hypot(0.2, 1.0)
NORMAL_MAP = nm.NormalMap(NORMALS)
LIGHTS = np.array([[1.0, 0, 1], [0, 1, 1], [-1, 0, 1]])
PHOTOGRAPHS = np.random.default_rng(0).uniform(0.5, 1, (3, SIDE, SIDE))


class Odd:
    """An object that no function expects."""


def masked(values):
    """Return an array with every second value masked."""
    return np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) % 2 == 0)


#: Values that are invalid for most arguments.
VALUES = {
    "None": None,
    "text": "nonsense",
    "empty text": "",
    "null": "a\0b",
    "bytes": b"x",
    "zero": 0,
    "one": 1,
    "negative": -1,
    "NaN": math.nan,
    "infinite": math.inf,
    "huge": 1e300,
    "tiny": 1e-300,
    "huge integer": 10**30,
    "endless integer": 10**5000,
    "small integer": np.int8(5),
    "single": np.float32(2),
    "fraction": Fraction(1, 2),
    "decimal": Decimal(2),
    "complex": 1j,
    "boolean": True,
    "object": Odd(),
    "list": [],
    "tuple": (),
    "dictionary": {"nonsense": 1},
    "set": {1},
    "generator": iter([1]),
    "ragged": [[1, 2], [3]],
    "0-d": np.array(1.0),
    "1-d": np.zeros(3),
    "no element": np.zeros(0),
    "2-d": np.zeros((SIDE, SIDE)),
    "2-d NaN": np.full((SIDE, SIDE), np.nan),
    "2-d complex": np.ones((SIDE, SIDE), complex),
    "2-d objects": np.full((SIDE, SIDE), Odd()),
    "2-d texts": np.full((SIDE, SIDE), "x"),
    "2-d dates": np.full((SIDE, SIDE), np.datetime64("2020")),
    "2-d masked integers": masked(np.ones((SIDE, SIDE), int)),
    "points": np.zeros((4, 3)),
    "no pixels": np.zeros((0, 0, 3)),
    "3-d zero": np.zeros((SIDE, SIDE, 3)),
    "3-d NaN": np.full((SIDE, SIDE, 3), np.nan),
    "back-facing": -NORMALS,
    "3-d integers": np.ones((SIDE, SIDE, 3), int),
    "3-d boolean": np.ones((SIDE, SIDE, 3), bool),
    "3-d complex": np.ones((SIDE, SIDE, 3), complex),
    "4-d": np.zeros((2, 2, 2, 2)),
    "wide indices": np.full((4, 3), 2**40),
    "unsigned indices": np.full((4, 3), 2**63, np.uint64),
    "negative indices": np.full((4, 3), -1),
    "structured": np.zeros((SIDE, SIDE), [("x", float)]),
}

#: Words by which errors refer to an argument, if not by its name.
SYNONYMS = {
    "K": "camera matrix",
    "axes": "convention",
    "text": "convention",
    "result": "depth map",
    "truth": "normals",
    "faces": "vertices",
    "images": "image",
    "lines": "jumps",
    "prior": "control point",
    "path": "",
    "model": "",
}


@pytest.fixture(scope="module")
def surface():
    return nm.reconstruct(NORMAL_MAP, vertices=12)


@pytest.fixture(scope="module")
def mesh():
    return nm.decimate(NORMAL_MAP, vertices=12)


@pytest.fixture(scope="module")
def calls(surface, mesh, tmp_path_factory):
    """Return the functions to call for each public name, with valid arguments."""
    matplotlib.use("Agg")
    folder = tmp_path_factory.mktemp("arguments")
    np.save(folder / "normals.npy", NORMALS)
    np.save(folder / "depth.npy", NORMALS[..., 2])
    np.savetxt(folder / "lights.txt", LIGHTS)
    write_ptm(folder / "relief.ptm", photographed(NORMALS, dome(12)), dome(12))
    np.savetxt(folder / "K.txt", np.diag([9.0, 9.0, 1.0]))
    camera, record = nm.Orthographic(), {}
    on_map, window = {"normal_map": NORMAL_MAP}, {"rows": slice(0, 4), "columns": slice(2, 9)}
    points = {"screen": np.zeros((3, 2)), "unknown": np.zeros(3)}
    corners = {"vertices": mesh.vertices, "faces": mesh.faces}
    decimating = {
        "vertices": 12, "rounds": 2, "passes": 1, "align": "last", "flips": True, "moves": True, "step": 0.5,
        "regularisation": 0.1, "in_plane": False, "start": "pixels", "locked": None, "threads": None,
        "progress": None,
    }  # fmt: skip
    integrating = {
        "formulation": "facets", "parameters": "gradient", "metric": "screen", "clamp": None, "discontinuities": "auto",
        "noise": 0.0, "refine": 1, "prior": None, "distance": 1.0, "units": "px", "threads": None,
        "progress": None,
    }  # fmt: skip
    rise = np.indices((SIDE, SIDE))[1] * -0.2
    seen = {"normal": -NORMALS, "mask": NORMAL_MAP.mask, "intrinsics": np.eye(3), "depth": 5 - rise, "points": None}
    running = {"decimation": None, "threads": None, "memory_limit": None, "progress": None}
    return {
        "Camera": [
            (camera.points, points),
            (camera.depth, {"points": np.zeros((3, 3))}),
            (camera.rays, {"u": np.zeros(3), "v": np.zeros(3)}),
            (camera.jacobian, {"normals": np.ones((3, 3)), "u": np.zeros(3), "v": np.zeros(3)}),
        ],
        "Convention": [
            (nm.Convention, {"axes": "+x+y+z"}),
            (nm.Convention.parse, {"text": "directx"}),
            (nm.Convention("+x-y+z").to_project, {"channels": NORMALS}),
            (nm.Convention("+x-y+z").from_project, {"normals": NORMALS}),
        ],
        "DecimatedMesh": [(nm.DecimatedMesh, {**corners, "locked": mesh.locked, "report": mesh.report})],
        "Diagnosis": record,
        "Coverage": record,
        "Discontinuities": record,
        "Evaluation": record,
        "FittedPrior": record,
        "Flattening": record,
        "GeoReference": record,
        "HeightDifference": record,
        "HeightRange": record,
        "Integration": record,
        "Looks": record,
        "IsotropicMesh": [(nm.IsotropicMesh, {**corners, "report": None})],
        "MapOnDisk": [
            (nm.MapOnDisk.of, {**on_map, "folder": folder / "map"}),
            (nm.MapOnDisk.of(NORMAL_MAP, folder / "opened").window, window),
            (nm.MapOnDisk.of(NORMAL_MAP, folder / "opened").mask_window, window),
        ],
        "MeshCheck": record,
        "NormalMap": [
            (nm.NormalMap, {"normals": NORMALS, "mask": None, "camera": camera}),
            (
                nm.NormalMap.open,
                {"path": folder / "normals.npy", "mask": None, "camera": None, "convention": "opengl",
                 "alpha": "auto", "variable": None, "max_pixels": None},
            ),
            (NORMAL_MAP.window, window),
            (NORMAL_MAP.mask_window, window),
            (NORMAL_MAP.crop, {"rectangle": None, "margin": 0}),
            (NORMAL_MAP.resize, {"size": 0.5}),
            (NORMAL_MAP.rotated, {"degrees": 90}),
            (NORMAL_MAP.filled, {"mask": NORMAL_MAP.mask, "largest": None}),
            (
                NORMAL_MAP.save,
                {"path": folder / "saved.png", "convention": "opengl", "bits": None, "matrix": None},
            ),
        ],
        "NetworkOutput": record,
        "NormalMeshError": record,
        "NormalMeshWarning": record,
        "Noise": record,
        "Orthographic": [(nm.Orthographic, {"pixel_size": 1.0})],
        "Perspective": [
            (nm.Perspective, {"fx": 9.0, "fy": 9.0, "cx": 4.0, "cy": 4.0, "skew": 0.0}),
            (nm.Perspective.from_matrix, {"K": np.eye(3), "pixel_centre": "half"}),
            (nm.Perspective.from_file, {"path": folder / "K.txt", "pixel_centre": "half"}),
            (nm.Perspective.centred, {"focal_length": 9.0, "shape": (SIDE, SIDE)}),
            (nm.Perspective.from_fov, {"degrees": 40.0, "shape": (SIDE, SIDE), "axis": "horizontal"}),
            (nm.Perspective(9, 9, 4, 4).points, points),
        ],
        "PhotometricStereo": record,
        "RTI": record,
        "RTIHeader": record,
        "Repairs": record,
        "Repeats": record,
        "ScreenMesh": [(nm.ScreenMesh, corners), (nm.ScreenMesh.from_mask, {"mask": NORMAL_MAP.mask})],
        "Solid": [(surface.solid("1px").save, {"path": folder / "solid.stl"})],
        "Step": record,
        "Surface": [
            (
                nm.Surface,
                {"vertices": surface.vertices, "faces": surface.faces, "screen": surface.screen, "camera": camera,
                 "shape": (SIDE, SIDE), "units": "px", "components": None, "integration": None, "decimation": None,
                 "discontinuities": None},
            ),
            (
                nm.Surface.from_unknown,
                {"mesh": mesh, "unknown": np.zeros(len(mesh.vertices)), "camera": camera, "shape": (SIDE, SIDE)},
            ),
            (surface.depth_map, {"shape": (SIDE, SIDE)}),
            (surface.normal_map, {"shape": (SIDE, SIDE)}),
            (surface.owners, {"shape": (SIDE, SIDE)}),
            (
                surface.save,
                {"path": folder / "out.glb", "texture": None, "normals": None, "scale": "auto", "centred": True},
            ),
            (surface.exaggerated, {"strength": 2.0}),
            (surface.flattened, {"shape": "plane"}),
            (surface.solid, {"thickness": 1.0, "width": 9.0}),
            (surface.uncertainty, {"noise": 1.0}),
            (surface.height_difference, {"a": 0, "b": (4.0, 4.0), "noise": 1.0}),
        ],
        "add_noise": [(nm.add_noise, {**on_map, "degrees": 5.0, "seed": 0})],
        "available_memory": [(nm.available_memory, {})],
        "decimate": [
            (nm.decimate, {**on_map, **decimating, "jumps": None}),
            (nm.decimate, {**on_map, "threshold": 1.0}),
            (nm.decimate, {**on_map, "compression": 0.5}),
        ],
        "diagnose": [(nm.diagnose, {"normals": NORMALS, "mask": None, "camera": None})],
        "estimate_memory": [
            (nm.estimate_memory, {**on_map, "vertices": 3, "start": "adaptive", "discontinuities": "auto"}),
            (nm.estimate_memory, {**on_map, "threshold": 1.0}),
            (nm.estimate_memory, {**on_map, "compression": 0.5}),
            (nm.estimate_memory, {**on_map, "max_angle": 1.0, "max_error": 1.0}),
        ],
        "evaluate": [
            (nm.evaluate, {"result": surface, "truth": NORMAL_MAP, "depth": None, "counted": None,
                           "each_component": True, "align": None}),
        ],
        "fit_prior": [
            (nm.fit_prior, {"depth": NORMAL_MAP.normals[..., 0] + rise, **on_map, "shift": False, "jumps": None}),
        ],
        "from_gradients": [
            (nm.from_gradients, {"p": rise, "q": rise, "mask": None, "camera": None, "convention": "opengl"}),
        ],
        "from_heights": [(nm.from_heights, {"heights": rise, "mask": None, "camera": None})],
        "from_network": [
            (
                nm.from_network,
                {"output": {"normal": -NORMALS}, "camera": None, "convention": "opencv", "pixel_centre": "integer"},
            ),
            (lambda **given: nm.from_network({**seen, **given}), seen),
        ],
        "integrate": [
            (nm.integrate, {"mesh": mesh, **on_map, **integrating, "jumps": None}),
            (nm.integrate, {"mesh": mesh, **on_map, "prior": [[4.0, 4.0, 1.0]], "prior_weight": 1.0, "refine": 0}),
            (nm.integrate, {"mesh": mesh, **on_map, "formulation": "vertices", "clamp": (0.1, 9.0), "refine": 0}),
        ],
        "integrate_pixels": [
            (nm.integrate_pixels, {**on_map, "distance": 1.0, "discontinuities": False, "jumps": None,
                                   "threads": None, "memory_limit": None}),
        ],
        "JumpLine": [],
        "Jumps": [],
        "find_jumps": [
            (nm.find_jumps, {**on_map, "lines": None, "discontinuities": "auto", "noise": None, "threads": None}),
        ],
        "measure_looks": [
            (nm.measure_looks, {"surface": surface, **on_map, "pixels": np.zeros((SIDE, SIDE))}),
        ],
        "photometric_stereo": [
            (
                nm.photometric_stereo,
                {"images": PHOTOGRAPHS, "lights": LIGHTS, "mask": None, "intensities": None, "darkest": 0.0,
                 "brightest": 0.0, "saturation": None, "convention": "opengl", "camera": None},
            ),
        ],
        "pixel_faces": [(nm.pixel_faces, {"mesh": mesh, "shape": (SIDE, SIDE)})],
        "plot_density": [(nm.plot_density, {"surface": surface, "ax": None})],
        "plot_error": [
            (nm.plot_error, {"surface": surface, **on_map, "ax": None}),
            (nm.plot_error, {"surface": surface, **on_map, "depth": rise, "align": None}),
        ],
        "plot_wireframe": [(nm.plot_wireframe, {"surface": surface, "ax": None})],
        "read_depth_map": [(nm.read_depth_map, {"path": folder / "depth.npy"})],
        "read_height_range": [(nm.read_height_range, {"path": folder / "depth.npy"})],
        "read_lights": [(nm.read_lights, {"path": folder / "lights.txt"})],
        "read_rti": [(nm.read_rti, {"path": folder / "relief.ptm"})],
        "read_normal_map": [
            (
                nm.read_normal_map,
                {"path": folder / "normals.npy", "mask": None, "camera": None, "convention": "opengl",
                 "variable": None},
            ),
        ],
        "reconstruct": [(nm.reconstruct, {**on_map, "vertices": 12, "preset": "default", **running})],
        "reconstruct_levels": [(nm.reconstruct_levels, {**on_map, "vertices": [12, 6], **running})],
        # Without clients and numbers of workers, which would be waited for and started.
        "reconstruct_tiled": [
            (
                nm.reconstruct_tiled,
                {**on_map, "vertices": 12, "tiles": 256, "work": folder / "work", "keep_work": False, "jumps": None,
                 **running},
            ),
        ],
        "reconstruct_within": [
            (nm.reconstruct_within, {**on_map, "max_angle": 9.0, "max_error": None, "threads": None, "progress": None}),
        ],
        "remesh_isotropic": [
            (nm.remesh_isotropic, {**on_map, "error": 1.0, "rounds": 1, "threads": None, "progress": None}),
            (nm.remesh_isotropic, {**on_map, "vertices": 12, "rounds": 1}),
        ],
        "render_normal_map": [
            (
                nm.render_normal_map,
                {"model": (surface.vertices, surface.faces), "size": SIDE, "camera": "orthographic", "smooth": True,
                 "pose": None, "name": None, "margin": 0.05, "units": None},
            ),
        ],
        "write_report": [
            (
                nm.write_report,
                {"path": folder / "report.html", "surface": surface, **on_map, "source": None, "settings": None,
                 "warnings": (), "texture": None},
            ),
        ],
    }  # fmt: skip


def test_every_public_name_has_an_entry(calls):
    """Each public name must have an entry; classes of results, which check nothing, have an empty one."""
    assert set(calls) == set(nm.__all__)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@pytest.mark.parametrize("name", nm.__all__)
def test_invalid_values_are_refused_in_one_sentence(name, calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for function, arguments in calls[name]:
        for argument, usual in arguments.items():
            for kind, value in VALUES.items():
                if value is None and usual is None:
                    continue
                before = value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else None
                where = f"{function.__qualname__}({argument}={kind})"
                check_message(message_of(function, {**arguments, argument: value}, where), argument, where)
                assert before is None or value.tobytes() == before, where


def message_of(function, arguments, where):
    """Return the message of the error that a call raises, empty if it returns."""
    try:
        function(**arguments)
    except nm.NormalMeshError as error:
        return str(error)
    except Exception as error:
        pytest.fail(f"{where}: {type(error).__name__}: {error}")
    return ""


def check_message(text, argument, where):
    """Check that a message is one line that names the argument."""
    assert "\n" not in text, where
    assert len(text) < 400, where
    names = (argument, argument.rstrip("s"), SYNONYMS.get(argument, argument), "no such file", "folder")
    assert not text or any(name in text for name in names), (where, text)


@pytest.mark.parametrize("change", [{"refien": 1}, {"decimation": {"vertices": 5}}, {"decimation": {"pases": 1}}])
def test_unknown_options_are_listed(change):
    with pytest.raises(nm.NormalMeshError, match=r"is no option; there are .*, .*"):
        nm.reconstruct(NORMAL_MAP, vertices=12, **change)


@pytest.mark.parametrize("option", ["mask", "camera", "convention", "alpha"])
def test_options_of_reading_are_sent_there(option):
    with pytest.raises(nm.NormalMeshError, match=f"'{option}' is no option; .*; give it to read_normal_map"):
        nm.reconstruct(NORMAL_MAP, **{option: None})


@pytest.mark.parametrize("given", ["depth", object()])
def test_what_is_no_array_is_shown(given):
    with pytest.raises(nm.NormalMeshError, match=r"depth must be an array of numbers, not ('depth'|<object)"):
        nm.fit_prior(given, NORMAL_MAP)


@pytest.mark.parametrize(
    "options",
    [
        {"refine": -1},
        {"units": 3},
        {"distance": 0},
        {"noise": math.nan},
        {"prior": "far"},
        {"clamp": 5},
        {"metric": ""},
    ],
)
@pytest.mark.parametrize(
    "run", [lambda **o: nm.reconstruct(NORMAL_MAP, vertices=9, **o),
            lambda **o: nm.reconstruct_levels(NORMAL_MAP, [9, 6], **o),
            lambda **o: nm.reconstruct_within(NORMAL_MAP, max_angle=9, **o)],
)  # fmt: skip
def test_options_of_the_integration_are_refused_before_the_decimation(run, options, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the reconstruction began")

    monkeypatch.setattr("normalmesh.reconstruction.in_memory.noise_of", never)
    with pytest.raises(nm.NormalMeshError, match=next(iter(options))):
        run(**options)


def test_errors_of_the_progress_callback_reach_the_caller():
    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nm.reconstruct(NORMAL_MAP, vertices=12, progress=stop)


def layouts():
    """Yield the same normals in many memory layouts and types."""
    wide = np.zeros((SIDE, 2 * SIDE, 6))
    wide[:, ::2, ::2] = NORMALS
    yield "not contiguous", wide[:, ::2, ::2]
    yield "upside down", np.ascontiguousarray(NORMALS[::-1])[::-1]
    yield "columns first", np.asfortranarray(NORMALS)
    yield "big-endian", NORMALS.astype(">f8")
    yield "big-endian single", NORMALS.astype(">f4")
    yield "half", NORMALS.astype(np.float16)
    yield "long", NORMALS.astype(np.longdouble)
    yield "read-only", np.broadcast_to(NORMALS[0, 0], NORMALS.shape)
    yield "list", NORMALS.tolist()
    yield "nothing masked", np.ma.masked_array(NORMALS)


@pytest.mark.parametrize("stored", [each for _, each in layouts()], ids=[name for name, _ in layouts()])
def test_all_memory_layouts_give_the_same_map(stored):
    np.testing.assert_allclose(nm.NormalMap(stored).normals, NORMAL_MAP.normals, atol=1e-3)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
def test_masked_normals_are_background():
    hidden = np.zeros(NORMALS.shape, bool)
    hidden[:2] = True
    found = nm.NormalMap(np.ma.masked_array(NORMALS, hidden))
    assert not found.mask[:2].any()
    assert found.foreground == SIDE**2 - 2 * SIDE


def test_wide_indices_do_not_wrap_around():
    """The index 2⁴⁰ would become 0 in 32 bits."""
    with pytest.raises(nm.NormalMeshError, match="faces name vertices"):
        nm.ScreenMesh(np.zeros((3, 2)), np.full((1, 3), 2**40))


def test_kernels_are_not_compiled_again_for_other_types_of_numbers():
    """An int or a float32 in place of a float would compile half of the kernels of decimation again."""
    from normalmesh.decimation import _move, _quadrics

    nm.decimate(NORMAL_MAP, vertices=12, step=0.5, regularisation=0.1)
    kernels = [
        value for module in (_move, _quadrics) for value in vars(module).values() if hasattr(value, "signatures")
    ]
    before = [len(kernel.signatures) for kernel in kernels]
    nm.decimate(NORMAL_MAP, vertices=np.int8(12), step=1, regularisation=np.float32(0.1))
    nm.decimate(NORMAL_MAP, vertices=12, step=Fraction(1, 2), regularisation=1)
    assert [len(kernel.signatures) for kernel in kernels] == before
    assert sum(before) > 0
