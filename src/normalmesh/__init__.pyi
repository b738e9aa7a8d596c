"""The public names of normalmesh, and where they live."""

from .decimation.decimated_mesh import DecimatedMesh
from .decimation.rounds import decimate
from .errors import NormalMeshError, NormalMeshWarning
from .evaluation.isotropic.isotropic import IsotropicMesh, remesh_isotropic
from .evaluation.looks import Looks, measure_looks
from .evaluation.metrics import Evaluation, evaluate
from .evaluation.perturbation import add_noise
from .evaluation.rendering.rendering import render_normal_map
from .files.georeference import GeoReference
from .files.height_png import HeightRange, read_height_range
from .integration.mesh_integration import integrate
from .integration.pixel_integration import integrate_pixels
from .integration.uncertainty import HeightDifference
from .jumps.finding import find_jumps
from .maps.maps_on_disk import MapOnDisk
from .maps.normal_maps import read_normal_map
from .mesh.coverage import Coverage
from .mesh.flattening import Flattening
from .mesh.jumps import JumpLine, Jumps
from .mesh.origin import Discontinuities, Integration
from .mesh.raster import pixel_faces
from .mesh.repeats import Repeats
from .mesh.screen_mesh import MeshCheck, ScreenMesh
from .mesh.solid import Solid
from .mesh.surface import Surface
from .normals.camera import Camera
from .normals.conventions import Convention
from .normals.diagnosis import Diagnosis, diagnose
from .normals.gradients import from_gradients
from .normals.noise import Noise
from .normals.normal_map import NormalMap
from .normals.orthographic import Orthographic
from .normals.perspective import Perspective
from .normals.repairs import Repairs
from .output.heights import from_heights, read_depth_map
from .photometric.lights import read_lights
from .photometric.photometric import PhotometricStereo, photometric_stereo
from .photometric.rti import RTI, read_rti
from .photometric.rti_model import RTIHeader
from .pictures.plots import plot_density, plot_error, plot_wireframe
from .reconstruction.estimates import estimate_memory
from .reconstruction.fitted_prior import FittedPrior, fit_prior
from .reconstruction.network_output import NetworkOutput, from_network
from .reconstruction.pipeline import reconstruct, reconstruct_levels, reconstruct_tiled
from .reconstruction.within import reconstruct_within
from .report.page import write_report
from .runtime.memory import available_memory
from .runtime.monitor import Step

__all__ = [
    "RTI",
    "Camera",
    "Convention",
    "Coverage",
    "DecimatedMesh",
    "Diagnosis",
    "Discontinuities",
    "Evaluation",
    "FittedPrior",
    "Flattening",
    "GeoReference",
    "HeightDifference",
    "HeightRange",
    "Integration",
    "IsotropicMesh",
    "JumpLine",
    "Jumps",
    "Looks",
    "MapOnDisk",
    "MeshCheck",
    "NetworkOutput",
    "Noise",
    "NormalMap",
    "NormalMeshError",
    "NormalMeshWarning",
    "Orthographic",
    "Perspective",
    "PhotometricStereo",
    "RTIHeader",
    "Repairs",
    "Repeats",
    "ScreenMesh",
    "Solid",
    "Step",
    "Surface",
    "add_noise",
    "available_memory",
    "decimate",
    "diagnose",
    "estimate_memory",
    "evaluate",
    "find_jumps",
    "fit_prior",
    "from_gradients",
    "from_heights",
    "from_network",
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
    "read_rti",
    "reconstruct",
    "reconstruct_levels",
    "reconstruct_tiled",
    "reconstruct_within",
    "remesh_isotropic",
    "render_normal_map",
    "write_report",
]

__version__: str
