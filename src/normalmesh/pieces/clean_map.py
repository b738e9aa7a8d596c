"""CleanMap: windows of a map without its noise, and of one of its components only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from normalmesh.array_types import Bool
from normalmesh.normals.camera import Camera
from normalmesh.normals.component_maps import window_camera
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
    origin : (int, int)
        Row and column in the image from which windows count.
    """

    source: WindowedMap
    components: MaskComponents
    noise: MapNoise | None = None
    number: int | None = None
    origin: tuple[int, int] = (0, 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns from the origin on."""
        rows, columns = self.source.shape
        return rows - self.origin[0], columns - self.origin[1]

    @property
    def camera(self) -> Camera:
        """Camera of the image, whose first pixel is the origin."""
        top, left = self.origin
        return window_camera(self.source.camera, left, top) if top or left else self.source.camera

    def only(self, number: int | None, origin: tuple[int, int] = (0, 0)) -> CleanMap:
        """Return the map of one component, or of all for None, from an origin on."""
        return replace(self, number=number, origin=origin)

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return a window, None without foreground."""
        window = self._in_image(rows, columns)
        clean = self._clean(window)
        if clean is None or self.number is None or self.components.count == 1:
            return clean
        mask = self.components.labels(window) == self.number + 1
        return NormalMap.derived(clean.normals, mask, clean.camera) if mask.any() else None

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask of a window."""
        window = self._in_image(rows, columns)
        if self.number is None or self.components.count == 1:
            return self.source.mask_window(window.rows, window.columns)
        own: Bool = self.components.labels(window) == self.number + 1
        return own

    def _in_image(self, rows: slice, columns: slice) -> Window:
        """Return a window that counts from the origin as one of the image."""
        return Window(rows.start, columns.start, rows.stop, columns.stop).moved(*self.origin)

    def _clean(self, window: Window) -> NormalMap | None:
        """Return a window of all components without noise."""
        if self.noise is None or self.noise.largest.degrees < NEGLIGIBLE:
            return self.source.window(window.rows, window.columns)
        around = window.grown(filter_reach(self.noise), Window.whole(self.source.shape))
        noisy = self.source.window(around.rows, around.columns)
        inner = window.place_in(around)
        if noisy is None or not noisy.mask[inner].any():
            return None
        smooth = without_noise(noisy, self.noise, self.components.maps(around, noisy))
        return smooth.window(*inner)
