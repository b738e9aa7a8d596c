"""Blender extension: turn a normal map into a mesh with UVs, shaded by a detail map. Sidebar of the 3D view.

The package normalmesh must be installed in Blender's Python: see docs/integrations.md.
"""

import importlib.util
import tempfile
import warnings
from pathlib import Path

import bpy
import numpy as np


class NormalMeshSettings(bpy.types.PropertyGroup):
    """What the panel asks for."""

    image: bpy.props.PointerProperty(name="Normal map", type=bpy.types.Image)
    convention: bpy.props.EnumProperty(
        name="Green",
        items=[("opengl", "Up (OpenGL)", "Blender, Unity, glTF"), ("directx", "Down (DirectX)", "Unreal, Substance")],
    )
    vertices: bpy.props.FloatProperty(
        name="Vertices",
        description="Percent of the pixels",
        default=2,
        min=0.01,
        max=50,
        subtype="PERCENTAGE",
    )
    jumps: bpy.props.BoolProperty(name="Depth may jump", description="Cut the mesh at occlusions", default=True)


class NORMALMESH_OT_reconstruct(bpy.types.Operator):
    """Reconstruct the surface that has these normals"""

    bl_idname = "normalmesh.reconstruct"
    bl_label = "Reconstruct"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Enable the button as soon as there is an image."""
        return context.scene.normalmesh.image is not None

    def execute(self, context):
        """Add the mesh to the scene; errors and warnings of normalmesh become reports of Blender."""
        import normalmesh as nm

        settings = context.scene.normalmesh
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", nm.NormalMeshWarning)
                normal_map = normal_map_of(settings.image, settings.convention)
                surface = nm.reconstruct(
                    normal_map,
                    compression=1 - settings.vertices / 100,
                    discontinuities="auto" if settings.jumps else False,
                )
                add_to_scene(surface, normal_map, Path(settings.image.name).stem)
        except nm.NormalMeshError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        for warning in caught:
            self.report({"WARNING"}, str(warning.message))
        self.report({"INFO"}, f"{len(surface.vertices)} vertices for {normal_map.foreground} pixels")
        return {"FINISHED"}


class NORMALMESH_PT_panel(bpy.types.Panel):
    """Panel in the sidebar of the 3D view."""

    bl_label = "Normal map to mesh"
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "normalmesh"

    def draw(self, context):
        """Show the settings and the button, or how to install normalmesh."""
        if importlib.util.find_spec("normalmesh") is None:
            self.layout.label(text="Install normalmesh in Blender's Python:", icon="ERROR")
            self.layout.label(text="python -m pip install normalmesh")
            return
        settings = context.scene.normalmesh
        self.layout.template_ID(settings, "image", open="image.open")
        for name in ("convention", "vertices", "jumps"):
            self.layout.prop(settings, name)
        self.layout.operator(NORMALMESH_OT_reconstruct.bl_idname)


def normal_map_of(image, convention):
    """Return the normal map of an image, from its file if there is one: Blender may have changed the colours."""
    import normalmesh as nm

    path = Path(bpy.path.abspath(image.filepath))
    if image.source == "FILE" and image.packed_file is None and not image.is_dirty and path.is_file():
        return nm.read_normal_map(path, convention=convention)
    columns, rows = image.size
    pixels = np.empty(rows * columns * image.channels, np.float32)
    image.pixels.foreach_get(pixels)
    # Rows of images in Blender go up.
    pixels = pixels.reshape(rows, columns, image.channels)[::-1]
    if image.channels < 3:
        raise nm.NormalMeshError(f"{image.name!r} has {image.channels} channels, but a normal map has three or four")
    normals = nm.Convention.parse(convention).to_project(2 * pixels[..., :3] - 1)
    opaque = pixels[..., 3] > 0.5 if image.channels == 4 else np.ones((rows, columns), bool)
    return nm.NormalMap(normals, None if opaque.all() else opaque)


def add_to_scene(surface, normal_map, name):
    """Add a surface with UVs and its detail map, through Blender's own reader of glTF; select it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.glb"
        surface.save(path, normals=normal_map)
        bpy.ops.import_scene.gltf(filepath=str(path))


CLASSES = (NormalMeshSettings, NORMALMESH_OT_reconstruct, NORMALMESH_PT_panel)


def register():
    """Add panel and operator to Blender."""
    for each in CLASSES:
        bpy.utils.register_class(each)
    bpy.types.Scene.normalmesh = bpy.props.PointerProperty(type=NormalMeshSettings)


def unregister():
    """Remove what `register` added."""
    del bpy.types.Scene.normalmesh
    for each in reversed(CLASSES):
        bpy.utils.unregister_class(each)
