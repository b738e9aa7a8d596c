"""Reading lines of jumps."""

import imagecodecs
import numpy as np
import pytest

from normalmesh import NormalMeshError
from normalmesh.maps.point_files import read_jump_lines


def test_an_image_is_an_edge_image(tmp_path):
    edges = np.zeros((20, 30), np.uint8)
    edges[3:9, 12] = 255
    path = tmp_path / "edges.png"
    path.write_bytes(imagecodecs.png_encode(edges))
    assert np.array_equal(read_jump_lines(path), edges > 0)
    np.save(tmp_path / "edges.npy", edges)
    assert np.array_equal(read_jump_lines(tmp_path / "edges.npy"), edges > 0)


def test_empty_lines_separate_polylines(tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("# two lines\n\n1, 2\n3;4.5\n\n\n5 6\n7\t8 # end\n9,10\n")
    first, second = read_jump_lines(path)
    assert first.tolist() == [[1, 2], [3, 4.5]]
    assert second.tolist() == [[5, 6], [7, 8], [9, 10]]


@pytest.mark.parametrize(("text", "message"), [("1,2\n3\n", "line 2 is not a point"), ("# none\n", "no polyline")])
def test_what_is_no_line_is_refused(tmp_path, text, message):
    path = tmp_path / "lines.csv"
    path.write_text(text)
    with pytest.raises(NormalMeshError, match=message):
        read_jump_lines(path)
