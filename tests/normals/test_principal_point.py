"""Test that a principal point that does not belong to the image is questioned, and no other."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshWarning, Orthographic, Perspective, read_normal_map
from normalmesh.maps.cameras import principal_point_question

SHAPE = (480, 640)


@pytest.mark.parametrize(
    ("cx", "cy", "text"),
    [
        (240, 320, "swapped"),
        (250, 315, "swapped"),
        (320, 240, None),
        (240, 240, None),  # a crop of the left side, perhaps
        (5, 470, None),
        (-3, 240, "outside"),
        (1280, 960, "outside"),
        (320, 481, "outside"),
    ],
)
def test_questions(cx, cy, text):
    question = principal_point_question(Perspective(800, 800, cx, cy), SHAPE)
    assert question is None if text is None else text in question


def test_a_square_image_and_parallel_rays_are_not_questioned():
    assert principal_point_question(Perspective(800, 800, 300, 340), (640, 640)) is None
    assert principal_point_question(Orthographic(), SHAPE) is None


def test_readers_question_the_camera(tmp_path):
    normals = np.zeros((24, 32, 3), np.float32)
    normals[..., 2] = 1
    np.save(tmp_path / "flat.npy", normals)
    for read in (read_normal_map, NormalMap.open):
        with pytest.warns(NormalMeshWarning, match="are cx and cy swapped"):
            read(tmp_path / "flat.npy", camera=Perspective(40, 40, 12, 16), convention="opengl")
