"""Write small folders with the layout of the data sets of the paper, all of a ball in front of a camera."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import scipy.io
import trimesh
from scipy.spatial.transform import Rotation

ROWS, COLUMNS = 24, 28

#: Intrinsics with the centre of the first pixel at (0, 0).
K = np.array([[60.0, 0, 13.25], [0, 63.0, 11.5], [0, 0, 1]])

RADIUS = 20.0
#: In mm: x right, y down, z forward.
CENTRE = np.array([1.5, -0.5, 140.0])


def ball() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distances (H, W) along the optical axis in mm, normals (H, W, 3), y up, z to the viewer, and the mask."""
    v, u = np.mgrid[:ROWS, :COLUMNS].astype(np.float64)
    rays = np.stack([(u - K[0, 2]) / K[0, 0], (v - K[1, 2]) / K[1, 1], np.ones_like(u)], axis=-1)
    squared, along = (rays**2).sum(axis=-1), rays @ CENTRE
    discriminant = along**2 - squared * (CENTRE @ CENTRE - RADIUS**2)
    # Normals nearly perpendicular to the ray would be clamped.
    mask = discriminant > 0.05 * squared * RADIUS**2
    distances = (along - np.sqrt(np.where(mask, discriminant, np.nan))) / squared
    normals = np.nan_to_num((distances[..., None] * rays - CENTRE) / RADIUS) * [1, -1, -1]
    return distances, normals, mask


def write_png(path: Path, values: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(imagecodecs.png_encode(values))
    return path


def write_mask(path: Path, mask: np.ndarray) -> Path:
    return write_png(path, mask.astype(np.uint8) * 255)


def write_normals(path: Path, normals: np.ndarray, dtype: type = np.uint16) -> Path:
    """Encode normals as an RGB image, 2·value/maximum − 1, black where they are zero."""
    values = np.rint((normals + 1) / 2 * np.iinfo(dtype).max).astype(dtype)
    values[~normals.any(axis=2)] = 0
    return write_png(path, values)


def world_pose(view: int) -> tuple[np.ndarray, np.ndarray]:
    """Return R and T of a view: a point X of the world is ``R X + T`` in the camera frame, y down and z forward."""
    R = Rotation.from_euler("xyz", [10 * view, 25 * view, -15], degrees=True).as_matrix()
    return R, CENTRE - R @ np.array([3.0, -2.0, 5.0])


def write_diligent_mv(root: Path, objects: tuple[str, ...] = ("bear", "cow"), views: int = 2) -> Path:
    """Write balls around (3, −2, 5) in the world, which are at the same position in every view."""
    _, normals, mask = ball()
    mesh = trimesh.creation.icosphere(subdivisions=4, radius=RADIUS)
    mesh.apply_translation([3.0, -2.0, 5.0])
    for name in objects:
        folder = root / "mvpmsData" / f"{name}PNG"
        calibration = {"KK": K, "kc": np.zeros((5, 1)), "names": np.array(["a", "bc"], object)}
        for view in range(1, views + 1):
            R, T = world_pose(view)
            calibration |= {f"Rc_{view}": R, f"Tc_{view}": T[:, None]}
            write_mask(folder / f"view_{view:02}" / "mask.png", mask)
            scipy.io.savemat(folder / f"view_{view:02}" / "Normal_gt.mat", {"Normal_gt": normals})
        scipy.io.savemat(folder / "Calib_Results.mat", calibration)
        mesh.export(folder / "mesh_Gt.ply")
    return root


def write_diligent(root: Path) -> Path:
    _, normals, mask = ball()
    for name in ("bear", "pot1"):
        folder = root / "pmsData" / f"{name}PNG"
        write_mask(folder / "mask.png", mask)
        scipy.io.savemat(folder / "Normal_gt.mat", {"Normal_gt": normals})
    return root


def write_luces(root: Path) -> Path:
    """Write the ball in front of a camera with one focal length; only normals and files matter."""
    distances, normals, mask = ball()
    folder = root / "data" / "Bell"
    write_mask(folder / "mask.png", mask)
    write_normals(folder / "normals.png", normals)
    (folder / "led_params.txt").write_text(
        f"N_img nrows ncols f x0 y0 mean_distance sfull:[Lpos Ldir Phi mu 0]\n52 {COLUMNS} {ROWS} 61.5 13.25 11.5 140\n"
        "1 2 3 0 0 1 1 1 1 0.5 0\n"
    )
    np.savez(folder / "zgt.npz", zgt=np.nan_to_num(distances), zgt_int=np.zeros((ROWS, COLUMNS)))
    return root


def write_harvard(root: Path) -> Path:
    """Write Matlab arrays, which start with the bottom row of the picture."""
    _, normals, mask = ball()
    for name in ("cat", "frog"):
        folder = root / "PSData" / name
        (folder / "Objects").mkdir(parents=True)
        stored = np.where(mask[..., None], normals, np.nan)[::-1]
        scipy.io.savemat(folder / "result.mat", {"n": stored, "rho": mask.astype(float)})
    return root


def write_rgbn(root: Path) -> Path:
    write_normals(root / "pinecone-normals.png", ball()[1], np.uint8)
    write_png(root / "pinecone-color.png", np.full((ROWS, COLUMNS, 3), 90, np.uint8))
    return root


def write_folders(root: Path) -> Path:
    """Write one case with a camera matrix and one without."""
    distances, normals, mask = ball()
    for name in ("seen", "flat"):
        write_normals(root / name / "normals.png", normals)
        write_mask(root / name / "mask.png", mask)
        np.savez(root / name / "depth.npz", depth=distances.astype(np.float32))
    np.savetxt(root / "seen" / "K.txt", K)
    return root
