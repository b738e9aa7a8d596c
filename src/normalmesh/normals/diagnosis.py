"""Diagnosing which convention a normal map follows, from its data.

There are three kinds of evidence. Visible surface faces the viewer; the right gradient has no curl
(:mod:`.integrability`); at an object's outline normals lean outwards (:mod:`.silhouette`).
Each either excludes a convention against another or is neutral; what remains is reported, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array
from normalmesh.array_types import Bool, Float, Float32, Floating
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.component_maps import window_camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.integrability import (
    CANDIDATES,
    FRONT,
    Integrability,
    Preference,
    Tiles,
    integrability,
    lengths,
    sample_tiles,
    undo_srgb,
)
from normalmesh.normals.normal_map import NormalMap, checked_mask
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.overview import FEW, Pixels, overview_of
from normalmesh.normals.silhouette import Silhouette, silhouette
from normalmesh.normals.windows import whole_window

_FACING = 2**16  # number of pixels of the overview that are sampled for the side that they face
_AWAY = 0.15  # a convention in which a larger share of the surface faces away is excluded
_WORLD = 0.05  # if more faces away in every convention, the normals are not in the camera's frame
#: For each of the CANDIDATES, the index into FRONT of the convention with the same gradient.
_FRONT_OF = [FRONT.index(axes if axes[4] == "+" else axes.translate(str.maketrans("+-", "-+"))) for axes in CANDIDATES]


@dataclass(frozen=True)
class _Thresholds:
    """Thresholds of evidence."""

    significance: float
    agreement: float
    curl_effect: float
    silhouette_effect: float


_SUFFICIENT = _Thresholds(significance=4.0, agreement=0.5, curl_effect=0.05, silhouette_effect=0.4)
# An outline is never strong evidence: a steep bowl masked at its rim has the outline of a ball turned inside out.
_STRONG = _Thresholds(significance=6.0, agreement=0.7, curl_effect=0.1, silhouette_effect=np.inf)


@dataclass(frozen=True)
class Diagnosis:
    """The convention of a normal map as its data show it. ``print`` it for a summary.

    Attributes
    ----------
    axes
        The convention that the data determine, such as ``"+x-y+z"``; None if they determine none.
    candidates
        The conventions that the data do not exclude, best first. Only one if ``axes`` is not None.
    confidence
        0 if ``axes`` is None. Otherwise how unanimous the evidence is against the closest rival: (for − against) /
        (for + against) of its weighted votes, at least 0.5; 1: no vote against.
    excluded
        Conventions that contradict the data so clearly that using one of them causes a warning.
    curl
        For each candidate, curl of its gradient as a share of all bending; 0 is a perfect surface.
    outline
        For each candidate, the share of the outline where normals lean outwards by more than 53°, less the share
        where they lean inwards; None without an outline.
    unit_length
        Share of the normals within 3 % of unit length.
    eight_bit
        Whether the values lie on the 256 levels of 2v/255 − 1; None for a NormalMap, which does not keep them.
    srgb
        Whether lengths are wrong as decoded and right after undoing the sRGB curve: the file was gamma-encoded. The
        rest of the diagnosis is then about the undone channels. None for a NormalMap.
    world_space
        Whether much of the surface faces away in every convention, though neighbours agree: world or object space,
        or a wide-angle camera that was not given.
    mean_z
        Mean of the third channel.
    """

    axes: str | None
    candidates: tuple[str, ...]
    confidence: float
    excluded: frozenset[str]
    curl: dict[str, float]
    outline: dict[str, float] | None
    unit_length: float
    eight_bit: bool | None
    srgb: bool | None
    world_space: bool
    mean_z: float

    def strongly_excludes(self, convention: Convention) -> bool:
        """Return whether the data contradict this convention so clearly that it causes a warning."""
        return convention.axes in self.excluded

    def summary(self) -> str:
        """Return a summary of a few lines."""
        values = f"values: {self.unit_length:.0%} of the normals have unit length" + ", 8 bit" * bool(self.eight_bit)
        curve = ["values: stored through the sRGB curve (gamma); undo it before use"] * bool(self.srgb)
        return "\n".join([*self._about_convention(), values, *curve])

    __str__ = summary

    def _about_convention(self) -> list[str]:
        if self.world_space:
            return [
                "convention: undetermined; much of the surface faces away from the viewer whatever the convention. "
                "Normals in world or object space, or of a wide-angle camera that was not given?"
            ]
        if self.axes is not None:
            verdict = f"convention: {_named(self.axes)}, confidence {self.confidence:.2f}"
        else:
            verdict = f"convention: undetermined; possible are {', '.join(map(_named, self.candidates))}"
        return [verdict, *self._reasons()]

    def _reasons(self) -> list[str]:
        best = self.candidates[0]
        towards = "towards" if best.endswith("+z") else "away from"
        reasons = [f"z: mean of the third channel {self.mean_z:+.2f}, so it points {towards} the viewer"]
        flipped = _flip(best, "y")
        if flipped not in self.candidates and self.curl[best] > 0 and self.curl[flipped] > 1.05 * self.curl[best]:
            ratio = self.curl[flipped] / self.curl[best]
            reasons.append(f"relative sign of x and y: {ratio:.2g}× more integrable than with y reversed")
        elif flipped in self.candidates:
            reasons.append("relative sign of x and y is undetermined: the surface does not twist")
        if _flip(_flip(best, "x"), "y") in self.candidates:
            why = "no outline" if self.outline is None else "normals do not lean steeply outwards along the outline"
            reasons.append(f"bumps and dents cannot be distinguished: {why}")
        elif self.outline is not None and self.outline[best] > _SUFFICIENT.silhouette_effect / 2:
            reasons.append(f"outline: normals lean steeply outwards along {self.outline[best]:.0%} of it")
        return reasons


def diagnose(normals: NormalMap | ArrayLike, mask: ArrayLike | None = None, camera: Camera | None = None) -> Diagnosis:
    """Diagnose from the data which convention a normal map follows.

    Parameters
    ----------
    normals
        A :class:`NormalMap` (the convention it was read with is then judged: right is ``"+x+y+z"``), or float
        channels (H, W, 3) as decoded from a file, in [−1, 1]. NaN, zero length, black and white are background.
    mask
        (H, W), nonzero = foreground. Not with a NormalMap, which has its own.
    camera
        Default :class:`Orthographic`. Not with a NormalMap, which has its own.

    Returns
    -------
    Diagnosis
        The convention, the candidates, and the evidence. ``print`` it for a summary.

    Notes
    -----
    Large maps are sampled: the cost does not grow beyond one million pixels.
    """
    channels, usable, camera_of_map = _checked(normals, mask, camera)
    whole = whole_window((usable.shape[0], usable.shape[1]))
    pixels = Pixels(lambda window: (channels[window], usable[window]), [whole], whole)
    return diagnose_pixels(pixels, camera_of_map, raw=not isinstance(normals, NormalMap))


def diagnose_pixels(pixels: Pixels, camera: Camera, raw: bool) -> Diagnosis:
    """Diagnose the convention of pixels in memory or on disk; ``raw``: they are as decoded from a file."""
    step, overview, foreground = overview_of(pixels)
    if step > 1 and np.count_nonzero(foreground) < FEW:
        # A small object in a large image: look where it is.
        pixels, top, left = pixels.around_foreground()
        camera = window_camera(camera, left, top)
        step, overview, foreground = overview_of(pixels)
    if not foreground.any():
        raise NormalMeshError("no pixel holds a normal: all are NaN, zero, black, white or outside the mask")
    values = overview[foreground]
    srgb = _is_srgb(values) if raw else None
    if srgb:
        overview = undo_srgb(overview)
    overview /= np.where(foreground, lengths(overview), 1)[..., None]

    tiles = [sample_tiles(pixels, each, bool(srgb)) for each in sorted({1, step})]
    evidence = _Evidence(
        _facing_away(overview, foreground, step, camera),
        integrability(tiles, camera),
        silhouette(overview, foreground, step, camera),
    )
    candidates, confidence = evidence.verdict()
    return Diagnosis(
        axes=candidates[0] if len(candidates) == 1 else None,
        candidates=candidates,
        confidence=confidence,
        excluded=evidence.excluded(),
        curl=_by_candidate(evidence.curl_scores),
        outline=None if evidence.outline is None else _by_candidate(evidence.outline.scores),
        unit_length=float(np.mean(np.abs(lengths(values) - 1) < 0.03)),
        eight_bit=_is_eight_bit(values) if raw else None,
        srgb=srgb,
        world_space=not evidence.faces_viewer and _is_smooth(tiles[0]),
        mean_z=float(np.mean(values[:, 2], dtype=np.float64)),
    )


@dataclass(frozen=True)
class _Evidence:
    """The three kinds of evidence, and the conclusions from all of them."""

    away: Float  # (16,) share of the foreground that faces away from the viewer in each candidate
    curl: Integrability
    outline: Silhouette | None

    @property
    def faces_viewer(self) -> bool:
        """Whether there is a candidate in which nearly all of the surface faces the viewer."""
        return bool(self.away.min() <= _WORLD)

    def verdict(self) -> tuple[tuple[str, ...], float]:
        """Return the remaining candidates, best first, and the confidence in the first."""
        order = sorted(range(len(CANDIDATES)), key=self._rank)
        if not self.faces_viewer:
            return tuple(CANDIDATES[k] for k in order), 0.0
        facing = [k for k in order if self.away[k] <= _AWAY]
        against = {k: max(self._agreement(other, k, _SUFFICIENT) for other in facing) for k in facing}
        left = [k for k in facing if against[k] == 0] or facing
        confidence = min((against[k] for k in facing if k not in left), default=1.0) if len(left) == 1 else 0.0
        return tuple(CANDIDATES[k] for k in left), confidence

    def excluded(self) -> frozenset[str]:
        """Return the candidates that clearly contradict the data."""
        if not self.faces_viewer:
            return frozenset()
        facing = np.flatnonzero(self.away <= _AWAY).tolist()
        return frozenset(
            axes
            for k, axes in enumerate(CANDIDATES)
            if self.away[k] > 2 * _AWAY or any(self._agreement(other, k, _STRONG) > 0 for other in facing)
        )

    @cached_property
    def curl_scores(self) -> Float:
        """Curl (16,) of each candidate as a share of all bending."""
        return self.curl.scores[_FRONT_OF]

    def _rank(self, k: int) -> tuple[float, float, float, int]:
        away = self.away[k] if self.away[k] > _AWAY else 0.0
        lean = 0.0 if self.outline is None else -self.outline.scores[k]
        return away, round(float(np.nan_to_num(self.curl_scores[k])), 6), lean, k

    def _agreement(self, first: int, second: int, thresholds: _Thresholds) -> float:
        """Return the agreement of the evidence for the first candidate against the second; 0 if it is insufficient."""
        if any(self._agreements(second, first, _SUFFICIENT)):
            return 0.0
        return max(self._agreements(first, second, thresholds))

    def _agreements(self, first: int, second: int, thresholds: _Thresholds) -> tuple[float, float]:
        """Return those of curl and of the outline: of curl, the largest of all scales, 0 if these contradict."""
        scales, curl, lean = list(self.curl.preferences(_FRONT_OF[first], _FRONT_OF[second])), 0.0, 0.0
        if not any(scale.significance < -_SUFFICIENT.significance and scale.effect < -0.02 for scale in scales):
            curl = max((_passes(scale, thresholds, thresholds.curl_effect) for scale in scales), default=0.0)
        if self.outline is not None:
            lean = _passes(self.outline.preference(first, second), thresholds, thresholds.silhouette_effect)
        return curl, lean


def _passes(evidence: Preference, thresholds: _Thresholds, effect: float) -> float:
    """Return the agreement if the evidence reaches the thresholds, else 0."""
    reaches = (
        evidence.significance >= thresholds.significance
        and evidence.effect >= effect
        and evidence.agreement >= thresholds.agreement
    )
    return evidence.agreement if reaches else 0.0


def _by_candidate(scores: Float) -> dict[str, float]:
    return dict(zip(CANDIDATES, scores.tolist(), strict=True))


def _facing_away(channels: Float32, foreground: Bool, step: int, camera: Camera) -> Float:
    """Return the share (16,) of the foreground turned more than 93° away from the viewer in each candidate."""
    pixels = np.flatnonzero(foreground)
    rows, columns = np.divmod(pixels[:: pixels.size // _FACING + 1], foreground.shape[1])
    towards = camera.to_viewer(columns * step + 0.5, rows * step + 0.5)
    found = channels[rows, columns]
    facing = (np.sum(Convention(axes).to_project(found) * towards, axis=-1) for axes in FRONT)
    shares = np.array([[np.mean(cosine < -0.05), np.mean(cosine > 0.05)] for cosine in facing])
    return np.concatenate([shares[:, 0], shares[_FRONT_OF[len(FRONT) :], 1]])


def _is_srgb(channels: Float32) -> bool:
    """Return whether most of the channels (N, 3) have unit length only after undoing the sRGB curve."""
    error = np.median(np.abs(lengths(channels) - 1))
    undone = np.median(np.abs(lengths(undo_srgb(channels)) - 1))
    return bool(error > 0.05 and undone < 0.03)


def _is_eight_bit(channels: Float32) -> bool:
    """Return whether the channels (N, 3) lie on the 256 levels of 2v/255 − 1."""
    level = (channels.astype(np.float64) + 1) * 127.5
    return bool(np.mean(np.abs(level - np.rint(level)) < 2e-3) > 0.999)


def _is_smooth(tiles: Tiles) -> bool:
    """Return whether most horizontal neighbours are within 20° of each other."""
    both = tiles.foreground[:, :, 1:] & tiles.foreground[:, :, :-1]
    cosine = np.einsum("...c,...c->...", tiles.channels[:, :, 1:], tiles.channels[:, :, :-1])[both]
    return bool(cosine.size and np.median(cosine) > np.cos(np.deg2rad(20)))


def _checked(
    normals: NormalMap | ArrayLike, mask: ArrayLike | None, camera: Camera | None
) -> tuple[Floating, Bool, Camera]:
    """Return channels, mask and camera, or raise :class:`NormalMeshError`."""
    if isinstance(normals, NormalMap):
        if mask is not None or camera is not None:
            raise NormalMeshError("a NormalMap has its own mask and camera: give neither beside it")
        return normals.normals, normals.mask, normals.camera
    channels = checked_array(normals, "normals", kinds=None)
    if channels.ndim != 3 or channels.shape[2] != 3 or channels.dtype.kind != "f" or channels.size == 0:
        raise NormalMeshError(
            f"normals must be floats of the shape (rows, columns, 3), not {channels.dtype} {shape_text(channels.shape)}"
        )
    view = Orthographic() if camera is None else checked_camera(camera)
    return channels, checked_mask(mask, channels.shape[:2]), view


def _named(axes: str) -> str:
    name = Convention(axes).name
    return axes if name == axes else f"{axes} ({name})"


def _flip(axes: str, axis: str) -> str:
    """Return the convention with one axis reversed."""
    at = axes.index(axis) - 1
    return axes[:at] + ("-" if axes[at] == "+" else "+") + axes[at + 1 :]
