"""Test that solids are closed, by our own check and by trimesh, and that they hold the volume under the surface."""

import io
import xml.etree.ElementTree
import zipfile

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from normalmesh import NormalMeshError, Orthographic, Perspective, ScreenMesh, Solid, Surface
from normalmesh.output.mesh_reading import read_parts
from normalmesh.output.three_mf import MODEL, encode_3mf

masks = hnp.arrays(np.bool_, st.tuples(st.integers(1, 6), st.integers(1, 6))).filter(np.any)


def surface_over(mask, heights, camera=None, cut=None, units="px"):
    """Return a surface on the pixels of a mask, with one height per face corner's vertex; ``cut`` (M,) parts faces."""
    mesh = ScreenMesh.from_mask(mask)
    screen, faces = mesh.vertices, mesh.faces
    if cut is not None:
        # One vertex for each part that a vertex belongs to, and for each of its fans there.
        keys = np.stack([faces, np.broadcast_to(cut[:, None], faces.shape)], axis=-1).reshape(-1, 2)
        vertices, corner = np.unique(keys, axis=0, return_inverse=True)
        screen, faces = split_fans(mesh.vertices[vertices[:, 0]], corner.reshape(-1, 3))
    unknown = np.resize(heights, len(screen)) if np.size(heights) else np.zeros(len(screen))
    shape = np.shape(mask)
    return Surface.from_unknown(ScreenMesh(screen, faces), unknown, camera or Orthographic(), shape, units)


def split_fans(screen, faces):
    """Give each fan of faces around a vertex a vertex of its own."""
    owner = {}
    new_faces, new_screen = np.empty_like(faces), []
    for vertex in range(len(screen)):
        around = [(f, k) for f, k in zip(*np.nonzero(faces == vertex), strict=True)]
        label = {f: f for f, _ in around}
        for f, _ in around:
            for g, _ in around:
                if len(set(faces[f]) & set(faces[g])) >= 2:
                    old, new = label[g], label[f]
                    label = {face: new if each == old else each for face, each in label.items()}
        for f, k in around:
            number = owner.setdefault((vertex, label[f]), len(owner))
            if number == len(new_screen):
                new_screen.append(screen[vertex])
            new_faces[f, k] = number
    return np.array(new_screen), new_faces.astype(np.int32)


def assert_closed(solid):
    """Check a solid with trimesh, as its arrays and as the triangles of an STL file, whose vertices are merged."""
    for mesh in (
        trimesh.Trimesh(solid.vertices, solid.faces, process=False),
        trimesh.Trimesh(
            solid.vertices[solid.faces].astype(np.float32).reshape(-1, 3),
            process=True,
            faces=np.arange(solid.faces.size).reshape(-1, 3),
        ),
    ):
        assert mesh.is_watertight
        assert mesh.is_winding_consistent
        assert mesh.volume == pytest.approx(solid.volume, rel=1e-4)
        assert mesh.volume > 0


@settings(max_examples=150, deadline=None)
@given(masks, st.data())
def test_any_mask_with_any_cuts_becomes_closed(mask, data):
    faces = 2 * int(mask.sum())
    cut = data.draw(st.none() | hnp.arrays(np.int32, faces, elements=st.integers(0, 3)))
    heights = data.draw(hnp.arrays(np.float64, 40, elements=st.integers(-5, 5).map(float)))
    surface = surface_over(mask, heights, cut=cut)
    solid = surface.solid(2.0)
    assert_closed(solid)
    bodies = trimesh.Trimesh(solid.vertices, solid.faces, process=False).body_count
    assert bodies == len(solid.volumes) == ScreenMesh.from_mask(mask).check().components


@settings(max_examples=30, deadline=None)
@given(masks, st.data())
def test_rays_of_a_pinhole(mask, data):
    faces = 2 * int(mask.sum())
    cut = data.draw(hnp.arrays(np.int32, faces, elements=st.integers(0, 3)))
    depths = data.draw(hnp.arrays(np.float64, 40, elements=st.integers(1, 9).map(float)))
    surface = surface_over(mask, np.log(depths), Perspective.centred(4.0, mask.shape), cut, "mm")
    assert_closed(surface.solid("3mm"))
    wide = surface.solid("3mm", "80mm")
    assert wide.extent[0] == pytest.approx(80)
    assert_closed(wide)


def test_volume_is_the_integral_of_the_heights():
    mask = np.ones((5, 7), bool)
    mask[2, 3] = False
    rng = np.random.default_rng(1)
    surface = surface_over(mask, rng.normal(size=48), Orthographic(0.5), units="mm")
    corners = surface.vertices[surface.faces]
    areas = surface.mesh.areas * 0.5**2
    thickness = 0.25
    below = corners[..., 2].min() - thickness
    solid = surface.solid(thickness)
    assert solid.volume == pytest.approx((areas * (corners[..., 2].mean(axis=1) - below)).sum())
    assert solid.vertices[:, 2].min() == 0
    assert np.sort(np.unique(solid.vertices[:, 2]))[1] == pytest.approx(thickness)
    assert solid.extent[:2] == pytest.approx((3.5, 2.5))


def test_a_cut_is_closed_by_a_step_not_by_a_slit():
    # The halves of a strip, at heights 0 and 4: a stair of two treads.
    cut = np.repeat([0, 1], 4)
    surface = surface_over(np.ones((1, 4), bool), [], cut=cut)
    raised = surface.vertices + np.where(surface.components[:, None] == 1, [0, 0, 4.0], 0)
    stair = Surface(raised, surface.faces, surface.screen, surface.camera, surface.shape).solid(1)
    assert len(stair.volumes) == 1
    assert stair.volume == pytest.approx(2 * 1 + 2 * 5)
    assert_closed(stair)


def test_columns_that_touch_are_moved_apart_by_little():
    surface = surface_over(np.eye(3, dtype=bool), [])
    solid = surface.solid(1)
    assert len(solid.volumes) == 3
    assert solid.volume == pytest.approx(3, abs=0.05)
    assert_closed(solid)


def test_lengths():
    surface = surface_over(np.ones((2, 4), bool), [0.0])
    assert surface.solid("12px").extent == pytest.approx((4, 2, 12))
    scaled = surface.solid("0.3cm", "80mm")
    assert scaled.extent == pytest.approx((80, 40, 3))
    assert (scaled.units, scaled.scale) == ("mm", 20)
    assert surface.solid("1px", "80mm").extent == pytest.approx((80, 40, 20))
    for thickness, text in (
        ("3mm", "--pixel-size"),
        ("3 furlongs", "furlongs"),
        (-1, "positive"),
        ("thick", "such as"),
    ):
        with pytest.raises(NormalMeshError, match=text):
            surface.solid(thickness)
    known = surface_over(np.ones((2, 4), bool), [0.0], Orthographic(0.5), units="mm")
    assert known.solid("1in").extent[2] == pytest.approx(25.4)
    with pytest.raises(NormalMeshError, match="perspective"):
        surface_over(np.ones((2, 4), bool), [0.0], Perspective.centred(4.0, (2, 4)), units="mm").solid("3px")


def test_width_where_cuts_cross():
    """Levels that are joined behind a pinhole move sideways, too."""
    mask, cut = np.array([[True, False, False]]), np.array([0, 1], np.int32)
    depths = np.array([1.0, 2.0, 2.0, 1.0, 2.0, 1.0])
    surface = surface_over(mask, np.log(depths), Perspective.centred(4.0, mask.shape), cut, "mm")
    assert surface.solid("3mm", "80mm").extent[0] == pytest.approx(80)


def test_a_mesh_with_a_hole_is_refused():
    solid = surface_over(np.ones((2, 2), bool), [0.0]).solid(1)
    with pytest.raises(NormalMeshError, match="3 open edges"):
        Solid(solid.vertices, solid.faces[1:])
    with pytest.raises(NormalMeshError, match="1 components without a positive volume"):
        Solid(solid.vertices, solid.faces[:, ::-1])


@pytest.mark.parametrize("suffix", ["stl", "ply", "obj", "glb"])
def test_files(suffix, tmp_path):
    solid = surface_over(np.ones((2, 2), bool), [0.0, 1.0, 0.5]).solid(1)
    solid.save(tmp_path / f"solid.{suffix}")
    (mesh,) = read_parts(tmp_path / f"solid.{suffix}")
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(solid.volume, rel=1e-5)


@pytest.mark.parametrize(("width", "longest"), [("80mm", 0.08), (None, 1)], ids=["metres", "pixels"])
def test_glb_stands_in_metres_or_is_one_unit_long(tmp_path, width, longest):
    solid = surface_over(np.ones((2, 2), bool), [0.0, 0.3, 0.5]).solid(1, width)
    solid.save(tmp_path / "solid.glb")
    scene = trimesh.load_scene(tmp_path / "solid.glb")
    np.testing.assert_allclose(scene.extents, np.array(solid.extent) / max(solid.extent) * longest, rtol=1e-5)
    np.testing.assert_allclose(scene.bounds.sum(axis=0), 0, atol=1e-6)
    (mesh,) = read_parts(tmp_path / "solid.glb")
    np.testing.assert_allclose(mesh.extents, solid.extent, rtol=1e-5)


def test_3mf_of_a_unit_that_it_lacks_is_in_millimetres(tmp_path):
    closed = surface_over(np.ones((2, 2), bool), [0.0, 1.0]).solid(1)
    model = zipfile.ZipFile(io.BytesIO(encode_3mf(Solid(closed.vertices, closed.faces, "dm")))).read("3D/3dmodel.model")
    assert b'unit="millimeter"' in model
    assert b'x="100" y="100"' in model


def test_3mf_is_read_back(tmp_path):
    solid = surface_over(np.ones((2, 2), bool), [0.0, 1.0]).solid("2mm", "5cm")
    solid.save(tmp_path / "solid.3mf")
    (mesh,) = read_parts(tmp_path / "solid.3mf")
    np.testing.assert_allclose(mesh.vertices, solid.vertices, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(mesh.faces, solid.faces)


@pytest.mark.parametrize("content", [b"PK no zip", "empty", "moved"])
def test_other_3mf_files_are_refused(tmp_path, content):
    path = tmp_path / "other.3mf"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = MODEL.format(unit="millimeter", vertices="", triangles="").replace('"1"/>', '"1" transform="1 0"/>')
        with zipfile.ZipFile(path, "w") as package:
            package.writestr("3D/3dmodel.model" if content == "moved" else "model", text)
    with pytest.raises(NormalMeshError, match="3MF"):
        read_parts(path)


def test_3mf_holds_the_unit(tmp_path):
    solid = surface_over(np.ones((2, 2), bool), [0.0, 1.0]).solid("2mm", "5cm")
    solid.save(tmp_path / "solid.3mf")
    with zipfile.ZipFile(tmp_path / "solid.3mf") as package:
        assert package.testzip() is None
        model = xml.etree.ElementTree.fromstring(package.read("3D/3dmodel.model"))
    space = "{http://schemas.microsoft.com/3dmanufacturing/core/2015/02}"
    assert model.get("unit") == "centimeter"
    found = np.array([[float(each.get(axis)) for axis in "xyz"] for each in model.iter(f"{space}vertex")])
    faces = np.array([[int(each.get(f"v{k}")) for k in (1, 2, 3)] for each in model.iter(f"{space}triangle")])
    np.testing.assert_allclose(found, solid.vertices, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(faces, solid.faces)
    with pytest.raises(NormalMeshError, match="suffix"):
        solid.save(tmp_path / "solid.doc")
