"""ComfyUI node: turn normal maps into GLB meshes and height images. See docs/integrations.md."""

from pathlib import Path

import numpy as np

import normalmesh as nm


class NormalMapToMesh:
    """Reconstruct the surfaces of a batch of normal maps, and save each as GLB in the output folder."""

    CATEGORY = "3d"
    FUNCTION = "reconstruct"
    RETURN_TYPES = ("STRING", "IMAGE", "MASK")
    RETURN_NAMES = ("glb", "height", "mask")
    OUTPUT_IS_LIST = (True, False, False)
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        """Describe the inputs for ComfyUI."""
        return {
            "required": {
                "normals": ("IMAGE",),
                "convention": (["opengl", "directx", "opencv"], {"tooltip": "opengl: green points up"}),
                "vertices": (
                    "FLOAT",
                    {"default": 2.0, "min": 0.01, "max": 50.0, "tooltip": "percent of the pixels"},
                ),
                "jumps": ("BOOLEAN", {"default": True, "tooltip": "cut the mesh where the depth jumps"}),
                "filename_prefix": ("STRING", {"default": "mesh/normalmesh"}),
            },
            "optional": {
                "mask": ("MASK", {"tooltip": "1 on the object; Load Image gives the opposite: invert it"}),
            },
        }

    def reconstruct(self, normals, convention, vertices, jumps, filename_prefix, mask=None):
        """Return the paths of the GLB files, heights from 0 to 1 as images (B, H, W, 3), and masks (B, H, W)."""
        from folder_paths import get_output_directory, get_save_image_path

        folder, stem, first, subfolder, _ = get_save_image_path(filename_prefix, get_output_directory())
        paths, heights, masks = [], [], []
        for number, image in enumerate(normals):
            normal_map = nm.NormalMap(
                nm.Convention.parse(convention).to_project(2 * np.asarray(image)[..., :3] - 1),
                None if mask is None else np.asarray(mask[number if len(mask) == len(normals) else 0]) > 0.5,
            )
            surface = nm.reconstruct(
                normal_map, compression=1 - vertices / 100, discontinuities="auto" if jumps else False
            )
            paths.append(Path(folder) / f"{stem}_{first + number:05}_.glb")
            surface.save(paths[-1], normals=normal_map)
            heights.append(_from_0_to_1(surface.depth_map()))
            masks.append(normal_map.mask)
        files = [{"filename": path.name, "subfolder": subfolder, "type": "output"} for path in paths]
        height = np.repeat(np.stack(heights)[..., None], 3, axis=-1)
        result = ([str(path) for path in paths], _as(normals, height), _as(normals, np.stack(masks)))
        return {"ui": {"3d": files}, "result": result}


def _from_0_to_1(heights):
    """Scale heights (H, W) to the range from 0 to 1; NaN, outside the mesh, becomes 0."""
    low, high = np.nanmin(heights), np.nanmax(heights)
    return np.nan_to_num((heights - low) / max(high - low, 1e-12))


def _as(images, values):
    """Return values as float32 of the kind of the images: a tensor in ComfyUI, else an array."""
    values = values.astype(np.float32)
    return images.new_tensor(values) if hasattr(images, "new_tensor") else values


NODE_CLASS_MAPPINGS = {"NormalMapToMesh": NormalMapToMesh}
NODE_DISPLAY_NAME_MAPPINGS = {"NormalMapToMesh": "Normal map to mesh (normalmesh)"}
