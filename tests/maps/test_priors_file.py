"""Control points from CSV files."""

import numpy as np
import pytest

from normalmesh import NormalMeshError
from normalmesh.maps.point_files import read_control_points


def read(tmp_path, text, encoding="utf-8"):
    (tmp_path / "points.csv").write_bytes(text.encode(encoding))
    return read_control_points(tmp_path / "points.csv")


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n4.5,6,-7e1\n",
        "u,v,depth\n1,2,3\n4.5,6,-70",
        "# measured on Monday\n\n u ; v ; depth\r\n1;2;3 # centre\r\n4.5; 6;-70\r\n",
        "1\t2\t3\n4.5 6  -70\n",
        "x, y, z\n1, 2, 3\n 4.5, 6, -70\n",
    ],
    ids=["plain", "header", "comments", "blanks", "spaces"],
)
def test_points(text, tmp_path):
    assert read(tmp_path, text).tolist() == [[1, 2, 3], [4.5, 6, -70]]


def test_weights_and_byte_order_marks(tmp_path):
    points = read(tmp_path, "u,v,depth,weight\n1,2,3,0.5\n", "utf-8-sig")
    assert points.dtype == np.float64
    assert points.tolist() == [[1, 2, 3, 0.5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u,v,depth\n1,2,3\n4,five,6\n", r"points.csv: line 3: '4 five 6' are not all finite numbers"),
        ("1,2,3\nu,v,depth\n", "line 2"),
        ("1,2,nan\n", "line 1: .* finite"),
        ("1,2\n", r"line 1: expected u,v,depth or u,v,depth,weight, not 2 numbers"),
        ("1,2,3,4,5\n", "line 1: expected .* not 5 numbers"),
        ("1,2,3\n\n1,2,3,4\n", "line 3: has 4 numbers but lines before have 3"),
        ("1,2,3,0\n", "line 1: the weight must be positive, not 0"),
        ("1,,3\n", "line 1"),
        ("# nothing\nu,v,depth\n", "holds no control point"),
        ("", "the file is empty"),
        ("\x89PNG\r\n\x1a\n\0\0", "is no text"),
    ],
)
def test_junk_is_refused_by_line(text, message, tmp_path):
    with pytest.raises(NormalMeshError, match=message):
        read(tmp_path, text, "latin-1")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(NormalMeshError, match=r"none.csv: there is no such file"):
        read_control_points(tmp_path / "none.csv")
