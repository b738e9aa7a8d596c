"""Test that 3D Tiles come back as the surface that they were made of, or coarser."""

import json

import numpy as np
import pytest

import normalmesh as nm
from normalmesh import NormalMeshError
from normalmesh.output.mesh_reading import read_tileset
from normalmesh.output.tileset import write_tileset
from surfaces import waves


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of tiles of at most 60 faces, and their surface."""
    surface = nm.reconstruct(waves((48, 48))[0], vertices=300)
    folder = tmp_path_factory.mktemp("tiles") / "t"
    write_tileset(surface, folder, max_faces=60)
    return folder, surface


def test_all_faces_come_back(folder):
    vertices, faces, complete = read_tileset(folder[0], np.inf)
    expected = folder[1].vertices[folder[1].faces]
    assert complete
    assert len(faces) == len(expected)
    found, wanted = (np.sort(np.round(each.mean(axis=1), 3), axis=0) for each in (vertices[faces], expected))
    np.testing.assert_allclose(found, wanted, atol=2e-3)


def test_coarser_tiles_within_a_limit(folder):
    counts = []
    for limit in (1, 200, 400):
        vertices, faces, complete = read_tileset(folder[0], limit)
        assert not complete
        counts.append(len(faces))
        # What is shown covers the whole surface once.
        sides = [vertices[faces[:, k], :2] - vertices[faces[:, 0], :2] for k in (1, 2)]
        area = np.abs(sides[0][:, 0] * sides[1][:, 1] - sides[0][:, 1] * sides[1][:, 0]).sum() / 2
        assert area == pytest.approx(48 * 48, rel=1e-3)
    assert counts == sorted(counts)
    assert counts[1] <= 200 < counts[2] <= 400


def test_tiles_outside_the_folder_are_refused(folder, tmp_path):
    description = json.loads((folder[0] / "tileset.json").read_bytes())
    description["root"]["content"]["uri"] = "../../secret.glb"
    (tmp_path / "tileset.json").write_text(json.dumps(description))
    with pytest.raises(NormalMeshError, match="outside the folder"):
        read_tileset(tmp_path, 10)
