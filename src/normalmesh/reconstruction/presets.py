"""Presets: options of all stages under one name, and their checks before work begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

from normalmesh.arguments import checked_choice, replaced_options
from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.integration.cotangent import PAPER_CLAMP
from normalmesh.integration.integration_options import IntegrationKeywords, IntegrationOptions
from normalmesh.integration.levelling import check_repeating, check_sides
from normalmesh.integration.prior import check_prior
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.repeats import Repeats, checked_tileable
from normalmesh.normals.normal_map import NormalMap


@dataclass(frozen=True)
class Preset:
    """Options of both stages under one name."""

    decimation: DecimationOptions
    integration: IntegrationOptions


#: The presets; ``"paper"`` is the method as published.
PRESETS = {
    "default": Preset(DecimationOptions(), IntegrationOptions()),
    "paper": Preset(
        DecimationOptions(start="pixels", rounds=5, passes=10, align="each", keep_thin=False),
        IntegrationOptions(
            formulation="vertices", parameters="tight", metric="surface", clamp=PAPER_CLAMP, noise=0.0, refine=0
        ),
    ),
}

#: Share of the vertices that the paper's method saves if no rule is given.
PAPER_COMPRESSION = 0.98


def rule_of(
    preset: str, vertices: int | None, threshold: float | None, compression: float | None, detail: str | None
) -> StoppingRule:
    """Return where a reconstruction with a preset ends: the paper knows no detail."""
    if isinstance(preset, str) and preset == "paper" and (vertices, threshold, compression, detail) == (None,) * 4:
        compression = PAPER_COMPRESSION
    return StoppingRule(vertices, threshold, compression, detail)


def checked_options(
    normal_map: NormalMap | MapOnDisk,
    preset: str,
    decimation: DecimationOptions | DecimationKeywords | None,
    integration: IntegrationKeywords,
    tileable: bool | str = False,
) -> Preset:
    """Return the options of a preset with some of them replaced, or raise an error before work begins."""
    base = PRESETS[checked_choice(preset, PRESETS, "preset")]
    options = Preset(
        replaced_options(base.decimation, decimation, "decimation"),
        replaced_options(base.integration, integration, "integration"),
    )
    if checked_tileable(tileable):
        options = replace(options, decimation=replace(options.decimation, tileable=tileable))
    if checked_tileable(options.decimation.tileable):
        check_repeating(options.integration)
    if options.integration.prior is not None:
        check_prior(options.integration.prior, options.integration.prior_weight, normal_map)
    return options


def check_in_tiles(normal_map: NormalMap | MapOnDisk, options: Preset) -> None:
    """Raise an error for options that are not possible in several tiles, or if the map should repeat and cannot."""
    decimation, integration = options.decimation, options.integration
    for name, value, is_possible in (
        ("start", decimation.start, decimation.start == "adaptive"),
        ("locked", decimation.locked, decimation.locked is None),
        ("formulation", integration.formulation, integration.formulation == "facets"),
    ):
        if not is_possible:
            raise NormalMeshError(
                f"{name}={repr_for_error(value)} is not possible in several tiles; reconstruct without them"
            )
    repeats = Repeats.of(options.decimation.tileable, normal_map.shape)
    if repeats is not None:
        check_sides(normal_map.camera, repeats, normal_map.mask_window)
