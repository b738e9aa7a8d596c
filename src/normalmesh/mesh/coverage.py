"""Coverage: the foreground pixels that a mesh loses, and the background pixels that it covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool
from normalmesh.errors import count_text
from normalmesh.mesh.components import components
from normalmesh.mesh.raster import covered_pixels
from normalmesh.mesh.screen_mesh import ScreenMesh


@dataclass(frozen=True)
class Coverage:
    """How the faces of a mesh agree with the foreground of the normal map.

    Attributes
    ----------
    foreground
        Number of foreground pixels.
    uncovered
        Foreground pixels whose centres lie in no face.
    spilled
        Background pixels whose centres lie in a face.
    lost_components
        4-connected components of the foreground without any covered pixel.
    """

    foreground: int
    uncovered: int
    spilled: int
    lost_components: int = 0

    @classmethod
    def of(cls, mesh: ScreenMesh, mask: Bool) -> Coverage:
        """Compare a mesh on the screen with a mask (H, W)."""
        covered = covered_pixels(mesh, mask.shape)
        kept = mask & covered
        foreground, inside, all_covered = (int(np.count_nonzero(pixels)) for pixels in (mask, kept, covered))
        lost_components = _lost_components(mask, kept) if inside < foreground else 0
        return cls(foreground, foreground - inside, all_covered - inside, lost_components)

    @property
    def uncovered_share(self) -> float:
        """Uncovered pixels as a fraction of the foreground."""
        return self.uncovered / self.foreground

    @property
    def spilled_share(self) -> float:
        """Background pixels that are covered, as a fraction of the foreground."""
        return self.spilled / self.foreground

    def __str__(self) -> str:
        inside, outside = 100 * (1 - self.uncovered_share), 100 * self.spilled_share
        text = f"{inside:.2f} % of the foreground, and {outside:.2f} % outside it"
        if self.lost_components:
            text += f"; {count_text(self.lost_components, 'component is', 'components are')} lost"
        return text


def _lost_components(mask: Bool, kept: Bool) -> int:
    """Count the components of a mask that contain no pixel of ``kept``, a part of it."""
    (rows, columns), is_kept = mask.shape, kept.ravel()
    # Lost pixels are few: lists of them are faster than images.
    lost = np.flatnonzero(mask & ~kept)
    row, column = np.divmod(lost, columns)
    beside, joined = np.zeros(len(lost), np.bool_), []
    for step, inside in ((1, column < columns - 1), (-1, column > 0), (columns, row < rows - 1), (-columns, row > 0)):
        beside[inside] |= is_kept[lost[inside] + step]
        place = np.minimum(np.searchsorted(lost, lost + step), len(lost) - 1)
        neighbours = np.flatnonzero(inside & (lost[place] == lost + step))
        joined.append(np.stack([neighbours, place[neighbours]], axis=1))
    part = components(np.concatenate(joined), len(lost))
    return int(part.max(initial=-1)) + 1 - len(np.unique(part[beside]))
