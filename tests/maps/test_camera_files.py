"""Camera matrices from text, NPY, JSON and YAML."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normalmesh import NormalMeshError, Perspective
from normalmesh.maps.cameras import read_camera_matrix

K = [[3759.5, 1.25, 305.5], [0, 3760.75, 255.5], [0, 0, 1]]

OPENCV = """%YAML:1.0
---
image_width: 640
distortion: !!opencv-matrix
   rows: 1
   cols: 5
   dt: d
   data: [ 0.1, 0., 0., 0., 0. ]
{name}: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 3.7595000000000000e+03, 1.25, 305.5, 0., 3760.75, 2.555e+02,
       0., 0., 1. ]
"""

ROS = """image_width: 640
camera_name: left
camera_matrix:
  rows: 3
  cols: 3
  data: [3759.5, 1.25, 305.5, 0, 3760.75, 255.5, 0, 0, 1]
rectification_matrix:
  rows: 3
  cols: 3
  data: [1, 0, 0, 0, 1, 0, 0, 0, 1]
"""


def matrix(name: str, numbers: str) -> str:
    return f"{name}: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n   data: [ {numbers} ]\n"


def reads(tmp_path, text: str, name: str = "K.txt") -> np.ndarray:
    (tmp_path / name).write_text(text, encoding="utf-8")
    result = read_camera_matrix(tmp_path / name)
    assert result.shape == (3, 3)
    assert result.dtype == np.float64
    return result


@pytest.mark.parametrize(
    "text",
    [
        "3759.5 1.25 305.5\n0 3760.75 255.5\n0 0 1\n",
        "3759.5, 1.25, 305.5\n0, 3760.75, 255.5\n0, 0, 1",
        "3759.5;1.25;305.5\n0;3760.75;255.5\n0;0;1\n",
        "# left camera\n3.7595e3\t1.25 305.5 # pixels\n\n0 3760.75 255.5\n0 0 1\n",
        "[3759.5 1.25 305.5; 0 3760.75 255.5; 0 0 1]",
        "[[3759.5, 1.25, 305.5], [0, 3760.75, 255.5], [0, 0, 1]]",
        "3759.5 1.25 305.5 0 3760.75 255.5 0 0 1",
        "\ufeff3759.5 1.25 305.5\r\n0 3760.75 255.5\r\n0 0 1\r\n",
    ],
)
def test_text(tmp_path, text):
    np.testing.assert_array_equal(reads(tmp_path, text), K)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=9, max_size=9))
def test_text_keeps_every_digit(tmp_path_factory, numbers):
    expected = np.reshape(numbers, (3, 3))
    text = "\n".join(" ".join(map(repr, row)) for row in expected.tolist())
    np.testing.assert_array_equal(reads(tmp_path_factory.mktemp("K"), text), expected)


@pytest.mark.parametrize(
    "content",
    [
        K,
        {"K": K},
        {"camera_matrix": K, "distortion": [0, 0]},
        {"intrinsics": K},
        {"K": [number for row in K for number in row]},
        {"fx": 3759.5, "fy": 3760.75, "cx": 305.5, "cy": 255.5, "skew": 1.25},
        {"intrinsics": {"fx": 3759.5, "fy": 3760.75, "cx": 305.5, "cy": 255.5, "skew": 1.25}},
    ],
)
def test_json(tmp_path, content):
    np.testing.assert_array_equal(reads(tmp_path, json.dumps(content, indent=1), "K.json"), K)


def test_json_without_skew(tmp_path):
    text = json.dumps({"fx": 1, "fy": 2, "cx": 3, "cy": 4})
    np.testing.assert_array_equal(reads(tmp_path, text), [[1, 0, 3], [0, 2, 4], [0, 0, 1]])


@pytest.mark.parametrize("name", ["camera_matrix", "K", "cameraMatrix", "M1", "anything"])
def test_yaml_of_opencv(tmp_path, name):
    np.testing.assert_array_equal(reads(tmp_path, OPENCV.format(name=name), "camera.yml"), K)


def test_yaml_of_ros(tmp_path):
    np.testing.assert_array_equal(reads(tmp_path, ROS, "camera.yaml"), K)


def test_yaml_with_two_cameras_takes_the_first(tmp_path):
    text = "%YAML:1.0\n---\n" + matrix("M2", "1,0,0,0,1,0,0,0,1") + matrix("M1", "2,0,0,0,2,0,0,0,1")
    np.testing.assert_array_equal(reads(tmp_path, text), np.diag([2, 2, 1]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_npy(tmp_path, dtype):
    np.save(tmp_path / "K.npy", np.diag([500, 500, 1]).astype(dtype))
    result = read_camera_matrix(tmp_path / "K.npy")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.diag([500, 500, 1]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("500 0 304\n0 500 256\n", "has 9 numbers, 3 in each row; found 6"),
        ("500 0 x\n0 500 256\n0 0 1", "'x' is not a number"),
        ("500 0 nan\n0 500 256\n0 0 1", "NaN or infinite"),
        ("{", "is not valid JSON"),
        ('{"fx": 1, "cx": 2}', r"or fx, fy, cx and cy \(fy, cy missing\); found fx, cx"),
        ("{}", "found nothing"),
        ('{"K": [[1, 2], [3, 4]]}', "must be 3×3, not 2×2"),
        ('{"K": [[1, 2, 3], [4]]}', "must be 3×3 numbers"),
        ('{"K": "none"}', "must be 3×3 numbers"),
        ("%YAML:1.0\n---\nwidth: 640\n", "there is no 3×3 matrix in this YAML"),
        (
            "%YAML:1.0\n---\n" + matrix("R", "1,0,0,0,1,0,0,0,1") + matrix("S", "1,0,0,0,1,0,0,0,1"),
            r"several matrices are 3×3 \(R, S\); rename the camera's to camera_matrix",
        ),
        ("%YAML:1.0\n---\n" + matrix("K", "1, 2, 3"), "found 3"),
        ('<?xml version="1.0"?>\n<opencv_storage/>', "XML is not read"),
        ("", "the file is empty"),
    ],
)
def test_refused(tmp_path, text, reason):
    (tmp_path / "K.txt").write_text(text)
    with pytest.raises(NormalMeshError, match=rf"K\.txt: .*{reason}"):
        read_camera_matrix(tmp_path / "K.txt")


def test_refused_files(tmp_path):
    with pytest.raises(NormalMeshError, match="there is no such file"):
        read_camera_matrix(tmp_path / "none.txt")
    with pytest.raises(NormalMeshError, match="is a folder"):
        read_camera_matrix(tmp_path)
    (tmp_path / "K.bin").write_bytes(b"\xff\xfe\x00\x81" * 9)
    with pytest.raises(NormalMeshError, match="expected a camera matrix as text, NPY, JSON or YAML"):
        read_camera_matrix(tmp_path / "K.bin")
    np.save(tmp_path / "K.npy", np.ones((3, 4)))
    with pytest.raises(NormalMeshError, match=r"K\.npy: the camera matrix must be 3×3, not 3×4"):
        read_camera_matrix(tmp_path / "K.npy")


def test_perspective_from_file(tmp_path):
    path = tmp_path / "K.txt"
    np.savetxt(path, K)
    assert Perspective.from_file(path) == Perspective(3759.5, 3760.75, 306, 256, 1.25)
    assert Perspective.from_file(path, "half") == Perspective(3759.5, 3760.75, 305.5, 255.5, 1.25)
    np.savetxt(path, np.transpose(K))
    with pytest.raises(NormalMeshError, match=r"K\.txt: the camera matrix must read"):
        Perspective.from_file(path)
