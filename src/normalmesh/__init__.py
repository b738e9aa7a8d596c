"""normalmesh: from a normal map to a 3D surface, by way of a sparse, feature-aligned triangle mesh.

The public names, nothing else. They are imported when they are first used, so that ``import normalmesh`` and the
command line's help stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from normalmesh.errors import NormalMeshError, NormalMeshWarning

if TYPE_CHECKING:
    from normalmesh.camera import Camera, Orthographic, Perspective
    from normalmesh.conventions import Convention
    from normalmesh.decimation import DecimatedMesh, decimate
    from normalmesh.diagnosis import Diagnosis, diagnose
    from normalmesh.discontinuities import Discontinuities
    from normalmesh.evaluation.isotropic import IsotropicMesh, remesh_isotropic
    from normalmesh.evaluation.metrics import Evaluation, evaluate
    from normalmesh.evaluation.perturbation import add_noise
    from normalmesh.evaluation.rendering import render_normal_map
    from normalmesh.files.lights import read_lights
    from normalmesh.files.normal_maps import read_normal_map
    from normalmesh.integration import Integration, integrate
    from normalmesh.levels import reconstruct_levels
    from normalmesh.memory import available_memory, estimate_memory
    from normalmesh.normalmap import NormalMap, Repairs
    from normalmesh.photometric import PhotometricStereo, photometric_stereo
    from normalmesh.pictures.plots import plot_density, plot_error, plot_wireframe
    from normalmesh.pixelwise import integrate_pixels
    from normalmesh.progress import Step
    from normalmesh.raster import pixel_faces
    from normalmesh.reconstruction import reconstruct
    from normalmesh.report.page import write_report
    from normalmesh.screenmesh import MeshCheck, ScreenMesh
    from normalmesh.surface import Surface
    from normalmesh.tolerance import reconstruct_within

__version__ = "0.1.0"

_HOMES = {
    "Camera": "camera",
    "Convention": "conventions",
    "DecimatedMesh": "decimation",
    "Diagnosis": "diagnosis",
    "Discontinuities": "discontinuities",
    "Evaluation": "evaluation.metrics",
    "Integration": "integration",
    "IsotropicMesh": "evaluation.isotropic",
    "MeshCheck": "screenmesh",
    "NormalMap": "normalmap",
    "Orthographic": "camera",
    "Perspective": "camera",
    "PhotometricStereo": "photometric",
    "Repairs": "normalmap",
    "ScreenMesh": "screenmesh",
    "Step": "progress",
    "Surface": "surface",
    "add_noise": "evaluation.perturbation",
    "available_memory": "memory",
    "decimate": "decimation",
    "diagnose": "diagnosis",
    "estimate_memory": "memory",
    "evaluate": "evaluation.metrics",
    "integrate_pixels": "pixelwise",
    "integrate": "integration",
    "photometric_stereo": "photometric",
    "pixel_faces": "raster",
    "plot_density": "pictures.plots",
    "plot_error": "pictures.plots",
    "plot_wireframe": "pictures.plots",
    "read_lights": "files.lights",
    "read_normal_map": "files.normal_maps",
    "reconstruct": "reconstruction",
    "reconstruct_levels": "levels",
    "reconstruct_within": "tolerance",
    "remesh_isotropic": "evaluation.isotropic",
    "render_normal_map": "evaluation.rendering",
    "write_report": "report.page",
}

__all__ = [
    "Camera",
    "Convention",
    "DecimatedMesh",
    "Diagnosis",
    "Discontinuities",
    "Evaluation",
    "Integration",
    "IsotropicMesh",
    "MeshCheck",
    "NormalMap",
    "NormalMeshError",
    "NormalMeshWarning",
    "Orthographic",
    "Perspective",
    "PhotometricStereo",
    "Repairs",
    "ScreenMesh",
    "Step",
    "Surface",
    "add_noise",
    "available_memory",
    "decimate",
    "diagnose",
    "estimate_memory",
    "evaluate",
    "integrate",
    "integrate_pixels",
    "photometric_stereo",
    "pixel_faces",
    "plot_density",
    "plot_error",
    "plot_wireframe",
    "read_lights",
    "read_normal_map",
    "reconstruct",
    "reconstruct_levels",
    "reconstruct_within",
    "remesh_isotropic",
    "render_normal_map",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'normalmesh' has no attribute {name!r}")
    value = getattr(import_module(f"normalmesh.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
