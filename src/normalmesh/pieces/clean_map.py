"""CleanMap: windows of a map without its noise, and of one of its components only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from normalmesh.array_types import Bool
from normalmesh.normals.camera import Camera
from normalmesh.normals.noise import NEGLIGIBLE, MapNoise, filter_reach, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.map_windows import Window, WindowedMap
from normalmesh.pieces.mask_components import MaskComponents


@dataclass(frozen=True, eq=False)
class CleanMap:
    """A map without its noise. Windows are the same as those of :func:`.without_noise` of the whole map.

    Attributes
    ----------
    source : WindowedMap
    components : MaskComponents
    noise : MapNoise
        Noise of the components, or None to leave it.
    number : int
        The component to which the mask is restricted, or None for all.
    """

    source: WindowedMap
    components: MaskComponents
    noise: MapNoise | None = None
    number: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.shape

    @property
    def camera(self) -> Camera:
        """Camera of the whole image."""
        return self.source.camera

    def only(self, number: int | None) -> CleanMap:
        """Return the map of one component, or of all for None."""
        return replace(self, number=number)

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return a window, None without foreground."""
        window = Window(rows.start, columns.start, rows.stop, columns.stop)
        clean = self._clean(window)
        if clean is None or self.number is None or self.components.count == 1:
            return clean
        mask = self.components.labels(window) == self.number + 1
        return NormalMap.derived(clean.normals, mask, clean.camera) if mask.any() else None

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask of a window."""
        if self.number is None or self.components.count == 1:
            return self.source.mask_window(rows, columns)
        window = Window(rows.start, columns.start, rows.stop, columns.stop)
        own: Bool = self.components.labels(window) == self.number + 1
        return own

    def _clean(self, window: Window) -> NormalMap | None:
        """Return a window of all components without noise."""
        if self.noise is None or self.noise.largest.degrees < NEGLIGIBLE:
            return self.source.window(window.rows, window.columns)
        around = window.grown(filter_reach(self.noise), Window.whole(self.shape))
        noisy = self.source.window(around.rows, around.columns)
        inner = window.place_in(around)
        if noisy is None or not noisy.mask[inner].any():
            return None
        smooth = without_noise(noisy, self.noise, self.components.maps(around, noisy))
        return smooth.window(*inner)
