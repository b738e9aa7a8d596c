"""The public names of normalmesh, and where they live."""

from .decimation.decimated_mesh import DecimatedMesh
from .decimation.rounds import decimate
from .errors import NormalMeshError, NormalMeshWarning
from .evaluation.isotropic.isotropic import IsotropicMesh, remesh_isotropic
from .evaluation.looks import Looks, measure_looks
from .evaluation.metrics import Evaluation, evaluate
from .evaluation.perturbation import add_noise
from .evaluation.rendering.rendering import render_normal_map
from .files.depth_maps import read_depth_map
from .files.height_png import HeightRange, read_height_range
from .files.lights import read_lights
from .files.maps_on_disk import MapOnDisk
from .files.normal_maps import read_normal_map
from .files.photometric import PhotometricStereo, photometric_stereo
from .integration.mesh_integration import integrate
from .integration.pixel_integration import integrate_pixels
from .jumps.finding import find_jumps
from .mesh.coverage import Coverage
from .mesh.jumps import JumpLine, Jumps
from .mesh.origin import Discontinuities, Integration
from .mesh.raster import pixel_faces
from .mesh.screen_mesh import MeshCheck, ScreenMesh
from .mesh.surface import Surface
from .normals.camera import Camera
from .normals.conventions import Convention
from .normals.diagnosis import Diagnosis, diagnose
from .normals.georeference import GeoReference
from .normals.normal_map import NormalMap
from .normals.orthographic import Orthographic
from .normals.perspective import Perspective
from .normals.repairs import Repairs
from .pictures.plots import plot_density, plot_error, plot_wireframe
from .reconstruction.estimates import estimate_memory
from .reconstruction.levels import reconstruct_levels
from .reconstruction.pipeline import reconstruct
from .reconstruction.tiled_reconstruction import reconstruct_tiled
from .reconstruction.within import reconstruct_within
from .report.page import write_report
from .runtime.memory import available_memory
from .runtime.monitor import Step

__all__ = [
    "Camera",
    "Convention",
    "Coverage",
    "DecimatedMesh",
    "Diagnosis",
    "Discontinuities",
    "Evaluation",
    "GeoReference",
    "HeightRange",
    "Integration",
    "IsotropicMesh",
    "JumpLine",
    "Jumps",
    "Looks",
    "MapOnDisk",
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
    "find_jumps",
    "integrate",
    "integrate_pixels",
    "measure_looks",
    "photometric_stereo",
    "pixel_faces",
    "plot_density",
    "plot_error",
    "plot_wireframe",
    "read_depth_map",
    "read_height_range",
    "read_lights",
    "read_normal_map",
    "reconstruct",
    "reconstruct_levels",
    "reconstruct_tiled",
    "reconstruct_within",
    "remesh_isotropic",
    "render_normal_map",
    "write_report",
]

__version__: str
