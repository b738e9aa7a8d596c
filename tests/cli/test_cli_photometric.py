"""The command photometric: photographs and lights to normals and albedo, in the right order."""

import json

import numpy as np
import PIL.Image
from click.testing import CliRunner

from normalmesh import read_normal_map
from normalmesh.cli import normalmesh
from normalmesh.evaluation.synthetic.medallion import Medallion
from rti_files import dome, photographed

LIGHTS = dome(12, 35)


def test_names_of_the_shell_and_of_lp_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = Medallion(64).normal_map
    names = [f"coin{k}.png" for k in range(1, 13)]
    for name, image in zip(names, photographed(truth.normals, LIGHTS, (0.8, 0.6, 0.4)), strict=True):
        PIL.Image.fromarray(np.round(250 * image).astype(np.uint8)).save(name)
    PIL.Image.fromarray(255 * truth.mask.astype(np.uint8)).save("mask.png")
    np.savetxt("lights.txt", LIGHTS)
    lines = [f"{name} {x} {y} {z}" for name, (x, y, z) in zip(names, LIGHTS, strict=True)]
    (tmp_path / "lights.lp").write_text("\n".join(["12", *lines[::-1]]))
    for images, lights in ((sorted(names), "lights.txt"), (["coin*.png"], "lights.txt"), (names[::-1], "lights.lp")):
        arguments = [*images, "--lights", lights, "--mask", "mask.png", "--albedo", "albedo.png", "--json"]
        result = CliRunner().invoke(normalmesh, ["photometric", *arguments])
        assert result.exit_code == 0, result.output
        figures = json.loads(result.stdout)
        assert figures["files"] == ["albedo.png", "normals.png"]
        assert figures["residual"] < 0.01
        found = read_normal_map("normals.png")
        assert (found.normals * truth.normals).sum(axis=2)[truth.mask].min() > 0.995
    assert PIL.Image.open("albedo.png").mode == "RGB"
    refused = CliRunner().invoke(normalmesh, ["photometric", *names, "--lights", "lights.txt", "-o", "coin1.png"])
    assert refused.exit_code == 1
    assert "this file is read, too" in refused.output
    (tmp_path / "coin.ptm").write_bytes(b"PTM_1.2")
    for given, message in (("nothing/", "nothing: there is no such file or folder"), ("coin.ptm", "needs no lights")):
        refused = CliRunner().invoke(normalmesh, ["photometric", given, "--lights", "lights.txt"])
        assert refused.exit_code == 1
        assert message in refused.output
