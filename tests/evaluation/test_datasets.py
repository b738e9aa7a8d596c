"""Test the data sets on small folders with the layout of the originals: cases, axes, cameras, depth and errors."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import scipy.io

from dataset_folders import (
    COLUMNS,
    ROWS,
    K,
    ball,
    world_pose,
    write_diligent,
    write_diligent_mv,
    write_folders,
    write_harvard,
    write_luces,
    write_mask,
    write_normals,
    write_rgbn,
)
from normalmesh import NormalMeshError, NormalMeshWarning, Orthographic, Perspective
from normalmesh.evaluation.datasets import DATASETS, find_dataset, open_dataset

WRITERS = {
    "diligent-mv": write_diligent_mv,
    "diligent": write_diligent,
    "luces": write_luces,
    "harvard": write_harvard,
    "rgbn": write_rgbn,
    "folders": write_folders,
}


@pytest.fixture(params=WRITERS)
def opened(request, tmp_path):
    return open_dataset(WRITERS[request.param](tmp_path))


#: The camera of DiLiGenT is that of larger images than those of these tests.
CROPPED = pytest.mark.filterwarnings("ignore:the principal point")


@CROPPED
class TestEveryDataset:
    def test_is_recognised(self, tmp_path, opened):
        assert opened.places()
        assert WRITERS[opened.dataset.name]
        assert find_dataset(opened.dataset.name) is opened.dataset

    def test_normals_point_outwards(self, opened):
        """Normals point right on the right side and up at the top: the ball is convex."""
        for case in opened.cases():
            normals, mask = case.normal_map.normals, case.normal_map.mask
            rows, columns = np.nonzero(mask)
            assert normals[rows, columns, 0][columns > columns.mean() + 4].min() > 0
            assert normals[rows, columns, 1][rows < rows.mean() - 4].min() > 0
            assert normals[rows, columns, 2].min() > 0

    def test_normals_and_mask_are_those_of_the_ball(self, opened):
        _, normals, mask = ball()
        for case in opened.cases():
            np.testing.assert_array_equal(case.normal_map.mask, mask)
            np.testing.assert_allclose(case.normal_map.normals[mask], normals[mask], atol=0.01)
            np.testing.assert_array_equal(case.normals, case.normal_map.normals)

    def test_loads_through_every_camera(self, opened):
        kinds = {"perspective": Perspective, "orthographic": Orthographic}
        for camera, kind in kinds.items():
            assert len(opened.names(camera)) == len(list(opened.cases(camera)))
            assert all(isinstance(case.normal_map.camera, kind) for case in opened.cases(camera))
        assert {name for camera in opened.cameras for name in opened.names(camera)} == set(opened.names())

    def test_groups(self, opened):
        for case in opened.cases():
            assert case.group == opened.group(case.name)

    def test_unknown_names(self, opened):
        with pytest.raises(NormalMeshError, match=f"has no case 'nobody'; its cases are .*{opened.names()[0]}"):
            opened.load("nobody")
        with pytest.raises(NormalMeshError, match="camera must be perspective or orthographic, not 'fisheye'"):
            opened.names("fisheye")


class TestMissingData:
    @pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.name)
    def test_the_error_has_address_layout_and_option(self, dataset, tmp_path):
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(NormalMeshError) as caught:
                dataset.names(folder)
            message = str(caught.value)
            assert str(folder) in message
            assert dataset.address in message
            assert "--data" in message
            for line in dataset.layout.strip().splitlines():
                assert line.strip() in message

    def test_an_unknown_folder_lists_all_data_sets(self, tmp_path):
        (tmp_path / "holiday").mkdir()
        with pytest.raises(NormalMeshError, match="contains no known data set") as caught:
            open_dataset(tmp_path)
        for dataset in DATASETS:
            assert dataset.description() in str(caught.value)
        assert "--data" in str(caught.value)
        with pytest.raises(NormalMeshError, match="nowhere: there is no such folder"):
            open_dataset(tmp_path / "nowhere")

    def test_addresses_of_the_paper(self):
        addresses = {dataset.name: dataset.address for dataset in DATASETS}
        assert addresses["diligent-mv"] == "https://sites.google.com/site/photometricstereodata/mv"
        assert addresses["luces"] == "http://www.robertomecca.com/luces.html"
        assert addresses["rgbn"] == "https://gfx.cs.princeton.edu/gfx/proj/rgbn/"
        assert addresses["harvard"] == "https://vision.seas.harvard.edu/qsfs/Data.html"

    def test_an_unknown_name(self):
        with pytest.raises(NormalMeshError, match="unknown data set 'kitti'; known: diligent-mv, diligent, luces"):
            find_dataset("kitti")

    def test_cases_are_loaded_one_by_one(self, tmp_path):
        """Listing opens no file, and a damaged case raises an error only when it is loaded."""
        opened = open_dataset(write_folders(tmp_path))
        (tmp_path / "seen" / "normals.png").write_bytes(b"damaged")
        assert opened.names() == ["flat", "seen"]
        cases = opened.cases()
        assert next(cases).name == "flat"
        with pytest.raises(NormalMeshError, match=r"normals\.png"):
            next(cases)


def test_depth_that_contradicts_the_normals_is_warned_about(tmp_path):
    distances, _, _ = ball()
    write_folders(tmp_path)
    np.savez(tmp_path / "seen" / "depth.npz", depth=280 - distances)
    with pytest.warns(NormalMeshWarning, match="seen: the median angle between normals and true depth is .*°"):
        open_dataset(tmp_path).load("seen")


class TestDiligentMV:
    @pytest.fixture
    def opened(self, tmp_path):
        return open_dataset(write_diligent_mv(tmp_path))

    def test_views_of_objects(self, opened):
        assert opened.names() == ["bear/view_01", "bear/view_02", "cow/view_01", "cow/view_02"]
        assert opened.load("cow/view_02").group == "cow"

    @pytest.mark.parametrize("outer", ["", "mvpmsData", "DiLiGenT-MV"])
    def test_any_folder_of_the_archive_will_do(self, tmp_path, outer):
        write_diligent_mv(tmp_path / outer if outer == "DiLiGenT-MV" else tmp_path)
        folder = tmp_path / "mvpmsData" if outer == "mvpmsData" else tmp_path
        assert open_dataset(folder).names()[0] == "bear/view_01"

    def test_the_first_pixel_centre_is_half_a_pixel_in(self, opened):
        camera = opened.load("bear/view_02").normal_map.camera
        np.testing.assert_allclose(
            [camera.fx, camera.fy, camera.cx, camera.cy, camera.skew],
            [K[0, 0], K[1, 1], K[0, 2] + 0.5, K[1, 2] + 0.5, 0],
            atol=1e-9,
        )

    def test_depth_is_that_of_the_mesh(self, opened):
        distances, _, mask = ball()
        for name in opened.names():
            case = opened.load(name, "perspective")
            assert case.units == "mm"
            np.testing.assert_array_equal(np.isfinite(case.depth), mask)
            np.testing.assert_allclose(case.depth[mask], distances[mask], atol=0.1)

    def test_orthographic_is_in_mm_and_towards_the_viewer(self, opened):
        distances, _, mask = ball()
        perspective, orthographic = (opened.load("bear/view_01", camera) for camera in ("perspective", "orthographic"))
        np.testing.assert_allclose(orthographic.depth, -perspective.depth)
        np.testing.assert_allclose(orthographic.normals, perspective.normals, atol=1e-6)
        pixel_size = distances[mask].mean() / np.sqrt(K[0, 0] * K[1, 1])
        assert orthographic.normal_map.camera.pixel_size == pytest.approx(pixel_size, rel=1e-3)

    def test_a_rotation_that_stretches_belongs_to_the_intrinsics(self, opened, tmp_path):
        """Pixel positions and lengths are unchanged."""
        path = tmp_path / "mvpmsData" / "bearPNG" / "Calib_Results.mat"
        R, T = world_pose(1)
        stretch = np.diag([1.0035, 1, 1])
        scipy.io.savemat(path, {"KK": K @ np.linalg.inv(stretch), "Rc_1": stretch @ R, "Tc_1": stretch @ T[:, None]})
        case = opened.load("bear/view_01")
        assert case.normal_map.camera.fx == pytest.approx(K[0, 0])
        distances, _, mask = ball()
        np.testing.assert_allclose(case.depth[mask], distances[mask], atol=0.1)

    def test_missing_pieces(self, opened, tmp_path):
        folder = tmp_path / "mvpmsData" / "bearPNG"
        for piece in ("Calib_Results.mat", "view_01/mask.png", "view_01/Normal_gt.mat", "mesh_Gt.ply"):
            away = (folder / piece).rename(tmp_path / "away")
            with pytest.raises(NormalMeshError, match=f"{re.escape(piece)}: there is no such file.*\n.*DiLiGenT-MV"):
                opened.load("bear/view_01")
            away.rename(folder / piece)
        assert opened.load("bear/view_01").name == "bear/view_01"

    def test_bad_calibrations(self, opened, tmp_path):
        path = tmp_path / "mvpmsData" / "bearPNG" / "Calib_Results.mat"
        scipy.io.savemat(path, {"KK": K})
        with pytest.raises(
            NormalMeshError,
            match=r"Calib_Results\.mat: the calibration of view 2 is missing: there is no variable Rc_2, Tc_2",
        ):
            opened.load("bear/view_02")
        scipy.io.savemat(path, {"KK": K, "Rc_1": np.diag([1.0, 1.0, 2.0]), "Tc_1": np.zeros(3)})
        with pytest.raises(NormalMeshError, match=r"Calib_Results\.mat: KK, Rc_1, Tc_1: R is not a rotation"):
            opened.load("bear/view_01")
        scipy.io.savemat(path, {"KK": K, "Rc_1": np.eye(2), "Tc_1": np.zeros(3)})
        with pytest.raises(NormalMeshError, match=r"Calib_Results\.mat: .* must be 3×3 .*, not 3×3, 2×2 and 3"):
            opened.load("bear/view_01")
        path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(200))
        with pytest.raises(NormalMeshError, match=r"Calib_Results\.mat: expected a MAT file .*, not HDF5.*'-v7'"):
            opened.load("bear/view_01")

    def test_pieces_that_do_not_belong_together(self, opened, tmp_path):
        folder = tmp_path / "mvpmsData" / "bearPNG"
        write_mask(folder / "view_01" / "mask.png", np.ones((5, 7), bool))
        with pytest.raises(NormalMeshError, match=r"mask\.png: mask is 5×7 but normals are 24×28"):
            opened.load("bear/view_01")
        R, T = world_pose(2)
        scipy.io.savemat(folder / "Calib_Results.mat", {"KK": K, "Rc_2": R, "Tc_2": T + 300 * np.eye(3)[0]})
        with pytest.raises(NormalMeshError, match=r"mesh_Gt\.ply: the mesh covers 0 of \d+ pixels of the mask"):
            opened.load("bear/view_02")


@CROPPED
class TestDiligent:
    def test_without_depth(self, tmp_path):
        case = open_dataset(write_diligent(tmp_path)).load("pot1")
        assert case.depth is None
        assert case.normal_map.camera == Perspective(3772.077471, 3759.005431, 306.375, 256.375)

    @pytest.mark.parametrize("place", ["pmsData/diligent_depth_GT", "diligent_depth_GT", "pmsData/bearPNG"])
    def test_depth_and_intrinsics_beside(self, tmp_path, place):
        opened = open_dataset(write_diligent(tmp_path))
        distances, _, mask = ball()
        (tmp_path / place).mkdir(exist_ok=True)
        scipy.io.savemat(tmp_path / place / "bear_gt.mat", {"depth_gt": distances})
        np.savetxt(tmp_path / "pmsData" / "bearPNG" / "K.txt", K)
        case = opened.load("bear")
        np.testing.assert_allclose(case.depth[mask], distances[mask])
        assert case.normal_map.camera.cx == K[0, 2] + 0.5
        assert case.units == "mm"

    def test_depth_of_another_picture(self, tmp_path):
        opened = open_dataset(write_diligent(tmp_path))
        scipy.io.savemat(tmp_path / "pmsData" / "bearPNG" / "bear_gt.mat", {"depth_gt": np.ones((4, 5))})
        with pytest.raises(NormalMeshError, match=r"bear_gt\.mat: depth is 4×5 but normals are 24×28"):
            opened.load("bear")


class TestLuces:
    def test_depth_and_camera(self, tmp_path):
        distances, _, mask = ball()
        opened = open_dataset(write_luces(tmp_path))
        case = opened.load("Bell")
        assert case.normal_map.camera == Perspective(61.5, 61.5, 13.75, 12.0)
        np.testing.assert_array_equal(np.isfinite(case.depth), mask)
        np.testing.assert_allclose(case.depth[mask], distances[mask])
        assert opened.load("Bell", "orthographic").depth[mask].max() < 0

    @pytest.mark.parametrize("line", ["", "52 28 24 61.5 13.25", "52 28 24 f 1 2 140", "52 28 24 -1 13 11 140"])
    def test_bad_setup(self, tmp_path, line):
        opened = open_dataset(write_luces(tmp_path))
        (tmp_path / "data" / "Bell" / "led_params.txt").write_text(f"header\n{line}\n")
        with pytest.raises(NormalMeshError, match=r"led_params\.txt: (line 2 must read|fx must be a positive)"):
            opened.load("Bell")

    def test_setup_of_another_size(self, tmp_path):
        opened = open_dataset(write_luces(tmp_path))
        (tmp_path / "data" / "Bell" / "led_params.txt").write_text("header\n52 2048 1536 61.5 13.25 11.5 140\n")
        with pytest.raises(NormalMeshError, match=r"led_params\.txt: is for 2048×1536 pixels but normals are 24×28"):
            opened.load("Bell")


class TestHarvard:
    def test_rows_the_wrong_way_round_are_warned_about(self, tmp_path):
        opened = open_dataset(write_harvard(tmp_path))
        y, x = np.mgrid[1:-1:96j, -1:1:96j] * 1.1
        normals = np.dstack([x, y, np.sqrt(np.where(x**2 + y**2 < 0.9, 1 - x**2 - y**2, np.nan))])
        path = tmp_path / "PSData" / "cat" / "result.mat"
        scipy.io.savemat(path, {"n": normals[::-1]})
        assert opened.load("cat").normal_map.shape == (96, 96)
        scipy.io.savemat(path, {"n": normals})
        with pytest.warns(NormalMeshWarning, match=r"result\.mat: the data contradict .* bottom row first"):
            opened.load("cat")

    def test_other_files(self, tmp_path):
        opened = open_dataset(write_harvard(tmp_path))
        path = tmp_path / "PSData" / "cat" / "result.mat"
        scipy.io.savemat(path, {"n": np.zeros((4, 5, 3))})
        with pytest.raises(NormalMeshError, match=r"result\.mat: no pixel holds a normal"):
            opened.load("cat")
        scipy.io.savemat(path, {"n": np.ones((4, 5, 3), np.uint8)})
        with pytest.raises(NormalMeshError, match=r"result\.mat: normals must be floats, not uint8"):
            opened.load("cat")
        path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(200))
        with pytest.raises(NormalMeshError, match=r"result\.mat: expected a MAT file .*, not HDF5.*'-v7'"):
            opened.load("cat")

    def test_there_is_no_perspective(self, tmp_path):
        opened = open_dataset(write_harvard(tmp_path))
        assert opened.cameras == ("orthographic",)
        with pytest.raises(NormalMeshError, match=r"the camera of cat of .* must be orthographic, not 'perspective'"):
            opened.load("cat", "perspective")


class TestRgbn:
    @pytest.mark.parametrize(
        "file", ["leaf-normals.png", "leaf_Normal.png", "leaf_n.png", "normal_leaf.png", "leaf/normalmap.png"]
    )
    def test_names(self, tmp_path, file):
        write_normals(tmp_path / file, ball()[1], np.uint8)
        write_normals(tmp_path / "pinecone-color.png", ball()[1], np.uint8)
        assert find_dataset("rgbn").names(tmp_path) == ["leaf"]

    def test_a_folder_of_normals(self, tmp_path):
        write_normals(tmp_path / "normals" / "leaf.png", ball()[1], np.uint8)
        assert open_dataset(tmp_path).names() == ["leaf"]

    def test_a_mask_beside(self, tmp_path):
        mask = ball()[2].copy()
        mask[:12] = False
        write_mask(write_rgbn(tmp_path) / "pinecone-mask.png", mask)
        np.testing.assert_array_equal(open_dataset(tmp_path).load("pinecone").normal_map.mask, mask)


class TestFolders:
    def test_depth_grows_away_from_the_camera(self, tmp_path):
        distances, _, mask = ball()
        opened = open_dataset(write_folders(tmp_path))
        seen, flat = opened.load("seen"), opened.load("flat")
        np.testing.assert_allclose(seen.depth[mask], distances[mask], rtol=1e-6)
        np.testing.assert_allclose(flat.depth[mask], -distances[mask], rtol=1e-6)
        assert seen.normal_map.camera == Perspective(60, 63, 13.75, 12)
        assert flat.normal_map.camera == Orthographic()
        assert (seen.units, flat.units) == ("units", "px")

    def test_a_folder_without_matrix_has_no_perspective(self, tmp_path):
        opened = open_dataset(write_folders(tmp_path))
        assert opened.names("perspective") == ["seen"]
        assert opened.names("orthographic") == ["flat", "seen"]
        with pytest.raises(NormalMeshError, match=r"the camera of flat of .* must be orthographic, not 'perspective'"):
            opened.load("flat", "perspective")

    def test_one_case_alone(self, tmp_path):
        folder = write_folders(tmp_path) / "seen"
        assert open_dataset(folder).names() == ["seen"]

    def test_normals_only(self, tmp_path):
        np.savez(tmp_path / "normals.npz", normals=ball()[1])
        case = next(open_dataset(tmp_path).cases())
        assert case.depth is None
        np.testing.assert_array_equal(case.normal_map.mask, ball()[2])

    @pytest.mark.parametrize("suffix", ["npy", "mat"])
    def test_formats_of_depth(self, tmp_path, suffix):
        distances, _, mask = ball()
        folder = write_folders(tmp_path) / "seen"
        (folder / "depth.npz").unlink()
        if suffix == "npy":
            np.save(folder / "depth.npy", distances)
        else:
            scipy.io.savemat(folder / "depth.mat", {"depth": distances})
        np.testing.assert_allclose(open_dataset(tmp_path).load("seen").depth[mask], distances[mask])

    def test_units(self, tmp_path):
        path = write_folders(tmp_path) / "seen" / "meta.json"
        path.write_text('{"units": "mm"}')
        assert open_dataset(tmp_path).load("seen").units == "mm"
        path.write_text("{")
        with pytest.raises(NormalMeshError, match=r"meta\.json: is not valid JSON"):
            open_dataset(tmp_path).load("seen")

    def test_the_shared_cases(self, cases, tmp_path):
        opened = open_dataset(cases)
        assert "diligent_bear" in opened.names("perspective")
        case = opened.load("sphere512")
        middle = np.nanmax(case.depth), np.nanmin(case.depth)
        assert np.isclose(case.depth[256, 256], middle[0], atol=1)
        shutil.copytree(cases / "diligent_bear", tmp_path / "bear")
        assert open_dataset(tmp_path).load("bear").normal_map.shape == (512, 612)


def test_the_ball_fills_the_picture():
    """The test map is a disc with background around it."""
    _, _, mask = ball()
    assert mask[1:-1, 1:-1].sum() == mask.sum() > 0.3 * ROWS * COLUMNS
