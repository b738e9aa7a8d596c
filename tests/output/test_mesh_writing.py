"""Surfaces written to files, read back by trimesh and, for GLB, by hand as a viewer does."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import trimesh

from normalmesh.errors import NormalMeshError, NormalMeshWarning
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.output import glb, mesh_formats, textures
from normalmesh.output.mesh_reading import read_mesh

SHAPE = (60, 80)
TOP = (27, 21)
CAMERAS = [
    pytest.param(Orthographic(pixel_size=0.02), id="orthographic"),
    pytest.param(Perspective(fx=70, fy=74, cx=42, cy=28, skew=2.0), id="perspective"),
]


def grid_mesh(rows: int, columns: int, cells: int) -> ScreenMesh:
    """A grid of cells × cells quadrilaterals, two triangles each, over an image."""
    u, v = np.meshgrid(np.linspace(0, columns, cells + 1), np.linspace(0, rows, cells + 1))
    index = np.arange(u.size, dtype=np.int32).reshape(u.shape)
    a, b, c, d = (part.ravel() for part in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return ScreenMesh(np.stack([u.ravel(), v.ravel()], axis=1), faces)


def bump(camera: Camera, screen: np.ndarray) -> np.ndarray:
    """Unknown of a paraboloid towards the viewer on a slope, steep enough for perspective to matter."""
    height = 0.6 - 0.0004 * np.sum((screen - np.array(TOP)) ** 2, axis=-1)
    return height if isinstance(camera, Orthographic) else np.log(4 - height)


def waves(camera: Camera, screen: np.ndarray) -> np.ndarray:
    """The bump with detail that no coarse mesh has."""
    return bump(camera, screen) + 0.006 * np.sin(screen[..., 0] / 2) * np.cos(screen[..., 1] / 3)


def normals_of(camera: Camera, unknown: Any, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Unit normals towards the viewer of the surface with the given unknown, by central differences."""

    def point(du: float, dv: float) -> np.ndarray:
        screen = np.stack([u + du, v + dv], axis=-1)
        return camera.points(screen, unknown(camera, screen))

    step = 1e-4
    normals = np.cross(point(0, step) - point(0, -step), point(step, 0) - point(-step, 0))
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def make_surface(camera: Camera, cells: int = 8) -> Surface:
    mesh = grid_mesh(*SHAPE, cells)
    return Surface.from_unknown(mesh, bump(camera, mesh.vertices), camera, SHAPE, units="mm")


def detailed_map(camera: Camera) -> NormalMap:
    u, v = np.meshgrid(np.arange(SHAPE[1]) + 0.5, np.arange(SHAPE[0]) + 0.5)
    return NormalMap(normals_of(camera, waves, u, v), camera=camera)


def read(path: Path) -> trimesh.Trimesh:
    if path.suffix.lower() == ".glb":
        return read_mesh(path)
    options = {"fix_texture": False} if path.suffix.lower() == ".ply" else {}
    return trimesh.load_mesh(path, process=False, maintain_order=True, **options)


def read_glb(path: Path) -> tuple[dict, bytes]:
    """The JSON and the binary chunk."""
    data = path.read_bytes()
    magic, version, length, json_length = struct.unpack("<4sIII", data[:16])
    assert (magic, version, length) == (b"glTF", 2, len(data))
    return json.loads(data[20 : 20 + json_length]), data[28 + json_length :]


def accessor(tree: dict, blob: bytes, index: int) -> np.ndarray:
    entry = tree["accessors"][index]
    width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}[entry["type"]]
    dtype = {5126: "<f4", 5125: "<u4"}[entry["componentType"]]
    offset = tree["bufferViews"][entry["bufferView"]]["byteOffset"] + entry.get("byteOffset", 0)
    return np.frombuffer(blob, dtype, entry["count"] * width, offset).reshape(-1, width).squeeze()


def attributes(tree: dict, blob: bytes) -> dict[str, np.ndarray]:
    primitive = tree["meshes"][0]["primitives"][0]
    arrays = {name: accessor(tree, blob, index) for name, index in primitive["attributes"].items()}
    return {**arrays, "faces": accessor(tree, blob, primitive["indices"]).reshape(-1, 3)}


def image_of(tree: dict, blob: bytes, texture: dict) -> np.ndarray:
    view = tree["bufferViews"][tree["images"][tree["textures"][texture["index"]]["source"]]["bufferView"]]
    return np.asarray(PIL.Image.open(io.BytesIO(blob[view["byteOffset"] : view["byteOffset"] + view["byteLength"]])))


def bilinear(image: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Image at positions (K, 2) in 0 … 1 from the top left, clamped at the border, as graphics cards sample."""
    size = np.array([image.shape[1], image.shape[0]])
    x, y = np.clip(position * size - 0.5, 0, size - 1).T
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, bottom = np.minimum(left + 1, size[0] - 1), np.minimum(top + 1, size[1] - 1)
    s, t = (x - left)[:, None], (y - top)[:, None]
    upper = (1 - s) * image[top, left] + s * image[top, right]
    return (1 - t) * upper + t * ((1 - s) * image[bottom, left] + s * image[bottom, right])


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def shaded_normals(surface: Surface, tree: dict, blob: bytes, owners: np.ndarray) -> np.ndarray:
    """Normals (K, 3) that a viewer at the camera shades the owned pixels with: only what is in the file counts."""
    arrays = attributes(tree, blob)
    position = arrays["POSITION"].astype(float)
    rows, columns = np.nonzero(owners >= 0)
    corners = arrays["faces"][owners[rows, columns]]
    start = surface.camera.points(np.stack([columns + 0.5, rows + 0.5], axis=-1), np.zeros(len(rows)))
    ray = surface.camera.rays(columns + 0.5, rows + 0.5)
    if isinstance(surface.camera, Perspective):
        start = np.zeros_like(start)
    a, b, c = (position[corners[:, k]] for k in range(3))
    # start + t ray = a + s (b − a) + r (c − a)
    solution = np.linalg.solve(np.stack([b - a, c - a, -ray], axis=-1), (start - a)[..., None])[..., 0]
    weights = np.stack([1 - solution[:, 0] - solution[:, 1], solution[:, 0], solution[:, 1]], axis=1)

    def mix(values: np.ndarray) -> np.ndarray:
        return np.einsum("kc,kcd->kd", weights, values[corners].astype(float))

    tangents = arrays["TANGENT"][:, :3]
    bitangents = np.cross(arrays["NORMAL"], tangents) * arrays["TANGENT"][:, 3:]
    frame = np.stack([unit(mix(tangents)), unit(mix(bitangents)), unit(mix(arrays["NORMAL"]))], axis=-1)
    texture = image_of(tree, blob, tree["materials"][0]["normalTexture"])
    texel = 2 * bilinear(texture.astype(float), mix(arrays["TEXCOORD_0"])) / 255 - 1
    return unit(np.einsum("kij,kj->ki", frame, texel))


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("suffix", [".ply", ".obj", ".glb", ".stl", ".PLY"])
def test_meshes_come_back(tmp_path: Path, camera: Camera, suffix: str) -> None:
    surface = make_surface(camera)
    path = tmp_path / f"bump{suffix}"
    surface.save(path)
    mesh = read(path)
    # A reader takes the winding for the outside: it must be the viewer's side.
    faces_viewer = -mesh.triangles_center if isinstance(camera, Perspective) else np.array([[0, 0, 1.0]])
    assert np.all(np.sum(mesh.face_normals * faces_viewer, axis=1) > 0)
    nearest = int(np.argmax(surface.vertices[:, 2]))
    np.testing.assert_allclose(mesh.vertices[np.argmax(mesh.vertices[:, 2])], surface.vertices[nearest], rtol=1e-6)
    np.testing.assert_allclose(surface.screen[nearest], TOP, atol=6)
    if suffix == ".stl":
        np.testing.assert_allclose(mesh.triangles, surface.vertices[surface.faces], rtol=1e-6, atol=1e-7)
        return
    np.testing.assert_allclose(mesh.vertices, surface.vertices, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(mesh.faces, surface.faces)
    np.testing.assert_allclose(mesh.visual.uv, surface.texture_coordinates, atol=1e-6)


def test_ply_is_binary_with_texture_coordinates_s_and_t(tmp_path: Path) -> None:
    make_surface(Orthographic()).save(tmp_path / "bump.ply")
    header = (tmp_path / "bump.ply").read_bytes().split(b"end_header")[0].decode().splitlines()
    assert "format binary_little_endian 1.0" in header
    properties = [line.split()[1:] for line in header if line.startswith("property float")]
    assert properties == [["float", name] for name in ("x", "y", "z", "nx", "ny", "nz", "s", "t")]


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".glb", ".stl"])
@pytest.mark.parametrize("size", [1e-7, 1e5])
def test_the_size_of_a_surface_costs_no_accuracy(tmp_path: Path, suffix: str, size: float) -> None:
    mesh = grid_mesh(*SHAPE, 6)
    camera = Orthographic(pixel_size=size)
    surface = Surface.from_unknown(mesh, size * bump(Orthographic(), mesh.vertices), camera, SHAPE)
    surface.save(tmp_path / f"bump{suffix}")
    triangles = read(tmp_path / f"bump{suffix}").triangles
    np.testing.assert_allclose(triangles, surface.vertices[surface.faces], rtol=1e-6, atol=size * 1e-6)


@pytest.mark.parametrize("camera", CAMERAS)
def test_normal_texture_shades_like_the_full_map(tmp_path: Path, camera: Camera) -> None:
    surface, normals = make_surface(camera), detailed_map(camera)
    surface.save(tmp_path / "bump.glb", normals=normals)
    tree, blob = read_glb(tmp_path / "bump.glb")
    _, owners = surface.owners()
    inside = owners >= 0
    assert np.mean(inside) > 0.95
    shaded = shaded_normals(surface, tree, blob, owners)
    expected = normals.normals[inside].astype(float)
    angles = np.degrees(np.arccos(np.clip(np.sum(shaded * expected, axis=1), -1, 1)))
    coarse = np.degrees(np.arccos(np.clip(np.sum(surface.normal_map()[inside] * expected, axis=1), -1, 1)))
    assert angles.mean() < 0.5
    assert angles.max() < 3
    assert coarse.mean() > 5


@pytest.mark.parametrize("camera", CAMERAS)
def test_tangent_frames_follow_the_specification(tmp_path: Path, camera: Camera) -> None:
    surface = make_surface(camera)
    surface.save(tmp_path / "bump.glb", normals=detailed_map(camera))
    arrays = attributes(*read_glb(tmp_path / "bump.glb"))
    normal, tangent = arrays["NORMAL"], arrays["TANGENT"]
    np.testing.assert_allclose(normal, surface.vertex_normals, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(tangent[:, :3], axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.sum(normal * tangent[:, :3], axis=1), 0, atol=1e-6)
    bitangent = np.cross(normal, tangent[:, :3]) * tangent[:, 3:]
    # Right and up in the image, on the surface: along growing u and falling v.
    ahead = surface.camera.jacobian(normal, *surface.screen.T)
    assert np.all(np.sum(tangent[:, :3] * ahead[..., 0], axis=1) > 0)
    assert np.all(np.sum(bitangent * ahead[..., 1], axis=1) < 0)


def test_normal_texture_is_flat_far_outside_and_dilated_at_the_outline(tmp_path: Path) -> None:
    camera = Orthographic()
    mesh = grid_mesh(40, 40, 4)
    surface = Surface.from_unknown(mesh, 0.5 * mesh.vertices[:, 0], camera, (60, 80))
    tilted = np.broadcast_to([0.6, 0.0, 0.8], (60, 80, 3))
    surface.save(tmp_path / "plane.glb", normals=NormalMap(tilted))
    tree, blob = read_glb(tmp_path / "plane.glb")
    texture = image_of(tree, blob, tree["materials"][0]["normalTexture"])
    inside = texture[20, 20]
    assert inside[0] > 200
    np.testing.assert_array_equal(
        texture[: 40 + textures.MARGIN, : 40 + textures.MARGIN], np.broadcast_to(inside, (48, 48, 3))
    )
    np.testing.assert_array_equal(texture[50:], np.broadcast_to(textures.FLAT, (10, 80, 3)))
    assert tree["textures"][0]["sampler"] == 0
    assert tree["samplers"][0]["wrapS"] == 33071


def test_large_normal_maps_are_reduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textures, "MAX_TEXTURE_SIDE", 33)
    camera = Orthographic(pixel_size=0.02)
    surface = make_surface(camera)
    u, v = np.meshgrid(np.arange(80) + 0.5, np.arange(60) + 0.5)
    normals = NormalMap(normals_of(camera, bump, u, v), camera=camera)
    surface.save(tmp_path / "bump.glb", normals=normals, texture=np.zeros((60, 80, 3), np.uint8))
    tree, blob = read_glb(tmp_path / "bump.glb")
    material = tree["materials"][0]
    assert image_of(tree, blob, material["normalTexture"]).shape == (25, 33, 3)
    assert image_of(tree, blob, material["pbrMetallicRoughness"]["baseColorTexture"]).shape == (25, 33, 3)
    _, owners = surface.owners()
    shaded = shaded_normals(surface, tree, blob, owners)
    angles = np.degrees(np.arccos(np.clip(np.sum(shaded * normals.normals[owners >= 0], axis=1), -1, 1)))
    assert angles.mean() < 1


def test_normals_of_another_image_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NormalMeshError, match="normals are 60×60 but the surface is of an image of 60×80"):
        make_surface(Orthographic()).save(tmp_path / "bump.glb", normals=NormalMap(np.ones((60, 60, 3)) / 3**0.5))
    assert not list(tmp_path.iterdir())


def test_glb_is_matt_and_says_its_unit(tmp_path: Path) -> None:
    make_surface(Orthographic()).save(tmp_path / "bump.glb")
    tree, blob = read_glb(tmp_path / "bump.glb")
    material = tree["materials"][0]
    assert material["pbrMetallicRoughness"]["metallicFactor"] == 0
    assert material["pbrMetallicRoughness"]["roughnessFactor"] == glb.ROUGHNESS
    np.testing.assert_allclose(material["pbrMetallicRoughness"]["baseColorFactor"], [0.8, 0.8, 0.8, 1], atol=0.003)
    assert tree["meshes"][0]["extras"]["units"] == "mm"
    assert set(attributes(tree, blob)) == {"POSITION", "NORMAL", "TEXCOORD_0", "faces"}


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".glb", ".stl"])
def test_names_may_hold_any_letters(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"Büste 半身像{suffix}"
    make_surface(Orthographic()).save(path)
    assert len(read(path).faces) == 128


def test_frames_exist_where_the_surface_is_seen_edge_on(tmp_path: Path) -> None:
    screen = np.array([[0, 4], [4, 4], [2, 4], [0, 8], [8, 8], [8, 1]], float)
    vertices = np.array([[0, -4, 0], [4, -4, 0], [2, -4, -3], [0, -8, 0], [8, -8, 0], [8, -1, 0]], float)
    surface = Surface(vertices, [[0, 2, 1], [3, 4, 5]], screen, Orthographic(), (8, 8))
    surface.save(tmp_path / "edge.glb", normals=NormalMap(np.broadcast_to([0, 0, 1.0], (8, 8, 3))))
    tangent = attributes(*read_glb(tmp_path / "edge.glb"))["TANGENT"]
    np.testing.assert_allclose(np.linalg.norm(tangent[:, :3], axis=1), 1, atol=1e-6)


def quarters(channels: int = 3) -> np.ndarray:
    """A colour in each quarter of the image: red, green, blue and grey, from the top left by rows."""
    image = np.full((*SHAPE, channels), 200, np.uint8)
    image[:30, :40, :3], image[:30, 40:, :3], image[30:, :40, :3] = [255, 0, 0], [0, 255, 0], [0, 0, 255]
    return image


@pytest.mark.parametrize("suffix", [".glb", ".obj"])
@pytest.mark.parametrize("channels", [3, 4])
def test_textures_lie_the_right_way_up(tmp_path: Path, suffix: str, channels: int) -> None:
    surface = make_surface(Orthographic())
    surface.save(tmp_path / f"bump{suffix}", texture=quarters(channels))
    mesh = read(tmp_path / f"bump{suffix}")
    colours = trimesh.visual.uv_to_interpolated_color(
        mesh.visual.uv, getattr(mesh.visual.material, "baseColorTexture", None) or mesh.visual.material.image
    )
    upper = mesh.vertices[:, 1] > -25
    left = mesh.vertices[:, 0] < 35
    assert np.all(colours[upper & left][:, :3] == [255, 0, 0])
    assert np.all(colours[~upper & left & (mesh.vertices[:, 1] < -35)][:, :3] == [0, 0, 255])


def test_ply_takes_the_colours_at_its_vertices(tmp_path: Path) -> None:
    surface = make_surface(Orthographic(), cells=4)
    PIL.Image.fromarray(quarters()[::2, ::2]).save(tmp_path / "half.png")
    surface.save(tmp_path / "bump.ply", texture=tmp_path / "half.png")
    raw = read(tmp_path / "bump.ply").metadata["_ply_raw"]["vertex"]["data"]
    colours = np.stack([raw[name] for name in ("red", "green", "blue", "alpha")], axis=-1).reshape(5, 5, 4)
    assert colours[0, 0].tolist() == [255, 0, 0, 255]
    assert colours[0, 4].tolist() == [0, 255, 0, 255]
    assert colours[4, 0].tolist() == [0, 0, 255, 255]
    # Half-way between the centres of a red and a green pixel.
    assert colours[1, 2].tolist() == [128, 128, 0, 255]
    np.testing.assert_allclose(np.stack([raw["s"], raw["t"]], axis=1), surface.texture_coordinates, atol=1e-6)


def test_obj_brings_its_companions(tmp_path: Path) -> None:
    source = tmp_path / "my bump.png"
    PIL.Image.fromarray(quarters()).save(source)
    before = source.read_bytes()
    make_surface(Orthographic()).save(tmp_path / "my bump.obj", texture=source)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["my bump.mtl", "my bump.obj", "my bump.png", "my bump_texture.png"]
    assert source.read_bytes() == before
    assert "map_Kd my bump_texture.png" in (tmp_path / "my bump.mtl").read_text()
    assert "mtllib my bump.mtl" in (tmp_path / "my bump.obj").read_text()
    np.testing.assert_array_equal(np.asarray(PIL.Image.open(tmp_path / "my bump_texture.png")), quarters())


def test_large_textures_are_read_without_changing_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PIL.Image.fromarray(quarters()).save(tmp_path / "image.png")
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 10)
    make_surface(Orthographic()).save(tmp_path / "bump.ply", texture=tmp_path / "image.png")
    assert PIL.Image.MAX_IMAGE_PIXELS == 10


@pytest.mark.parametrize(
    ("texture", "message"),
    [
        (np.zeros((4, 4), np.uint8), "texture must be uint8 of the shape"),
        (np.zeros((4, 4, 3)), "texture must be uint8 of the shape .* not float64 4×4×3"),
        ("missing.png", "missing.png: there is no such file"),
        (__file__, "test_mesh_writing.py: cannot be read as a texture .*cannot identify"),
    ],
)
def test_unusable_textures_are_refused(tmp_path: Path, texture: Any, message: str) -> None:
    with pytest.raises(NormalMeshError, match=message):
        make_surface(Orthographic()).save(tmp_path / "bump.glb", texture=texture)
    assert not list(tmp_path.iterdir())


def test_deep_images_are_refused_as_textures(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.full((4, 4), 40000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(NormalMeshError, match="8 bits per channel"):
        make_surface(Orthographic()).save(tmp_path / "bump.glb", texture=tmp_path / "deep.png")


def test_what_a_format_cannot_carry_is_said(tmp_path: Path) -> None:
    surface = make_surface(Orthographic())
    with pytest.warns(NormalMeshWarning, match=r"texture is left out of bump.stl: STL has no colours"):
        surface.save(tmp_path / "bump.stl", texture=quarters())
    with pytest.warns(NormalMeshWarning, match=r"normals are left out of bump.ply: only GLB"):
        surface.save(tmp_path / "bump.ply", normals=detailed_map(Orthographic()))
    assert (tmp_path / "bump.stl").exists()


@pytest.mark.parametrize("name", ["bump.xyz", "bump"])
def test_unknown_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NormalMeshError, match=r"suffix must be one of \.ply, \.obj, \.glb, \.stl"):
        make_surface(Orthographic()).save(tmp_path / name)


def test_impossible_paths_are_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_formats, "exact_trimesh", lambda *_, **__: pytest.fail("worked in vain"))
    with pytest.raises(NormalMeshError, match="missing does not exist"):
        make_surface(Orthographic()).save(tmp_path / "missing" / "bump.ply")


@pytest.mark.parametrize("error", [RuntimeError("exporter"), KeyboardInterrupt()])
@pytest.mark.parametrize("suffix", [".ply", ".obj", ".glb", ".stl"])
def test_a_failing_exporter_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, error: BaseException
) -> None:
    path = tmp_path / f"bump{suffix}"
    path.write_bytes(b"old")

    def fails(*_: object, **__: object) -> None:
        raise error

    if suffix == ".glb":
        monkeypatch.setattr("normalmesh.output.glb.GlbFile.contents", fails)
    else:
        monkeypatch.setattr(getattr(trimesh.exchange, suffix[1:]), f"export_{suffix[1:]}", fails)
    with pytest.raises(type(error)):
        make_surface(Orthographic()).save(path)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
