"""Surface: a triangle mesh in space, the result of a reconstruction, with its positions on the screen."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_bool, checked_image_shape, checked_instance
from normalmesh.array_types import Float, Float32, Int32, Integer
from normalmesh.errors import NormalMeshError
from normalmesh.mesh import _surface
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.flattening import Flattening, flattened, restored
from normalmesh.mesh.origin import Decimation, Discontinuities, Integration, Remeshing
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.relief import checked_strength, exaggerated_surface
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface_arrays import (
    check_components,
    check_faces,
    check_positions,
    check_units,
    copied_faces,
    copied_per_vertex,
    copied_positions,
)
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    import meshio
    import pyvista
    import trimesh
    from matplotlib.axes import Axes
    from open3d.geometry import TriangleMesh

    from normalmesh.files.georeference import GeoReference
    from normalmesh.integration.uncertainty import HeightDifference
    from normalmesh.mesh.solid import Solid
    from normalmesh.normals.noise import Noise
    from normalmesh.output.glb import Scale
    from normalmesh.output.mesh_libraries import MeshLike
    from normalmesh.output.textures import Texture


@dataclass(frozen=True, eq=False)
class Surface:
    """A triangle mesh in space: x right, y up, z towards the viewer.

    The arrays given are copied: float64, int32, float64 and int32. They may be written to, as other libraries require.
    Nothing that depends on them is kept: normals, maps and files are of the vertices as they are. Screen positions and
    components do not follow by themselves; make a new surface of other faces, by :meth:`from_mesh`.

    Parameters
    ----------
    vertices
        (N, 3) positions in the unit of the surface.
    faces
        (M, 3) vertex indices, counter-clockwise as the viewer sees them.
    screen
        (N, 2) positions at which the camera sees the vertices: u (right) and v (down) in pixels.
    camera
        The camera that saw the normals.
    shape
        Rows and columns of the image.
    units
        Unit of the vertices, such as ``"mm"``; default: pixels.
    components
        (N,) connected component of each vertex; default: found from the faces, numbered in the order of their first
        vertices.
    integration, decimation
        Reports on the depths and on the mesh, if they come from :func:`integrate` and from :func:`decimate` or
        :func:`remesh_isotropic`.
    discontinuities
        The edges at which depth jumps and the mesh is cut, if :func:`integrate` searched for them.
    coverage
        The pixels of the foreground that the surface loses, if it comes from :func:`integrate`.
    repeats
        The directions in which the surface repeats, if it was made with ``tileable``: copies of it, shifted by the size
        of the image, join without gap or crease.
    flattening
        What was taken away from the heights, if it comes from :meth:`flattened`.
    strength
        Factor by which :meth:`exaggerated` multiplied the heights; with another one than 1 they are no measurement.
    walls
        (W, 3) vertex indices of the walls between the two sides of cuts, if :func:`integrate` closed its gaps by them
        (``gaps``). They lie along the viewing rays and cover no pixel: they are not among the faces, and only files,
        pictures and meshes of other libraries have them, behind the faces. Default: none.

    Raises
    ------
    NormalMeshError
        Wrong shapes or types, numbers that are not finite, or faces that name vertices that do not exist.
    """

    vertices: Float
    faces: Int32
    screen: Float
    camera: Camera
    shape: tuple[int, int]
    units: str = "px"
    components: Int32 = None  # type: ignore[assignment]  # an array always, once made
    integration: Integration | None = None
    decimation: Decimation | Remeshing | None = None
    discontinuities: Discontinuities | None = None
    coverage: Coverage | None = None
    repeats: Repeats | None = None
    flattening: Flattening | None = None
    strength: float = 1.0
    walls: Int32 = None  # type: ignore[assignment]  # an array always, once made

    def __post_init__(self) -> None:
        vertices = copied_positions(self.vertices, 3, "vertices")
        faces = copied_faces(self.faces, len(vertices))
        screen = copied_positions(self.screen, 2, "screen")
        if len(screen) != len(vertices):
            raise NormalMeshError(f"screen has {len(screen)} positions but there are {len(vertices)} vertices")
        checked_camera(self.camera)
        self.camera.check_depths(self.camera.depth(vertices), "depths of the vertices")
        check_units(self.units)
        checked_strength(self.strength)
        self._check_origin()
        components = ScreenMesh(screen, faces).components if self.components is None else self.components
        components = copied_per_vertex(components, np.int32, len(vertices), "components")
        check_components(components)
        walls = (
            np.empty((0, 3), np.int32) if self.walls is None else copied_faces(self.walls, len(vertices), "walls", 0)
        )
        arrays: tuple[NDArray[Any], ...] = (vertices, faces, screen, components, walls)
        for name, array in zip(("vertices", "faces", "screen", "components", "walls"), arrays, strict=True):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "shape", checked_image_shape(self.shape))

    def _check_origin(self) -> None:
        """Raise an error if a report is of another type."""
        kinds: dict[str, type] = {
            "integration": Integration,
            "decimation": Remeshing if isinstance(self.decimation, Remeshing) else Decimation,
            "discontinuities": Discontinuities,
            "coverage": Coverage,
            "repeats": Repeats,
            "flattening": Flattening,
        }
        for name, kind in kinds.items():
            if (report := getattr(self, name)) is not None:
                checked_instance(report, kind, name)

    @classmethod
    def from_unknown(
        cls,
        mesh: ScreenMesh,
        unknown: ArrayLike,
        camera: Camera,
        shape: tuple[int, int],
        units: str = "px",
        **reports: Any,
    ) -> Surface:
        """Lift a mesh on the screen into space.

        Parameters
        ----------
        mesh
            Mesh with N vertices on the screen.
        unknown
            (N,) unknown of the camera: height (orthographic) or logarithm of the depth (perspective).
        camera, shape, units
            As for :class:`Surface`.
        reports
            Its attributes integration, decimation, discontinuities, coverage, repeats and walls.
        """
        checked_instance(mesh, ScreenMesh, "mesh")
        checked_camera(camera)
        unknown = copied_per_vertex(unknown, np.float64, len(mesh.vertices), "unknown")
        points = camera.points(mesh.vertices, unknown)
        return cls(points, mesh.faces, mesh.vertices, camera, shape, units, mesh.components, **reports)

    def check_arrays(self) -> None:
        """Raise :class:`NormalMeshError` if what was written into the arrays cannot be used: kernels rely on it."""
        check_positions(self.vertices, 3, "vertices")
        check_positions(self.screen, 2, "screen")
        check_faces(self.faces, len(self.vertices))
        check_faces(self.walls, len(self.vertices), "walls", 0)
        check_components(self.components)

    @property
    def mesh(self) -> ScreenMesh:
        """The mesh on the screen."""
        return ScreenMesh(self.screen, self.faces)

    @property
    def all_faces(self) -> Int32:
        """The faces, and behind them the walls (M + W, 3)."""
        return np.concatenate([self.faces, self.walls]) if len(self.walls) else self.faces

    @property
    def texture_coordinates(self) -> Float:
        """Texture coordinates (N, 2), from (0, 0) at the image's bottom left to (1, 1) at its top right.

        They are (u/W, 1 − v/H), the convention of OBJ, PLY and Blender. In glTF the origin is at the top left: GLB
        files are written with the second coordinate reversed.
        """
        rows, columns = self.shape
        return np.stack([self.screen[:, 0] / columns, 1.0 - self.screen[:, 1] / rows], axis=1)

    @property
    def face_normals(self) -> Float:
        """Unit normals (M, 3) of the faces, towards the viewer; zero for a face without area. Computed at each use."""
        self.check_arrays()
        return face_normals(self.vertices, self.faces)

    @property
    def vertex_normals(self) -> Float:
        """Unit normals (N, 3) of the vertices: means of the adjacent faces' normals, weighted by area.

        A vertex without faces, or with faces without area, gets the direction towards the viewer. Where the surface
        repeats, vertices on opposite sides have the same normal. Computed at each use.
        """
        self.check_arrays()
        if self.repeats is None:
            normals = vertex_normals(self.vertices, self.faces, self.faces)
        else:
            twins = self.repeats.wrap(self.mesh).first_twins
            normals = vertex_normals(self.vertices, self.faces, twins[self.faces])[twins]
        bare = ~normals.any(axis=1)
        to_viewer = self.camera.towards_viewer * self.camera.rays(self.screen[bare, 0], self.screen[bare, 1])
        normals[bare] = to_viewer / np.linalg.norm(to_viewer, axis=1, keepdims=True)
        return normals

    def exaggerated(self, strength: float) -> Surface:
        """Return the surface with its relief exaggerated or flattened: all heights are multiplied.

        Slopes are multiplied, too: the result is that of a normal map whose slopes are. Files and reports name the
        factor, because such heights are no measurement.

        Parameters
        ----------
        strength
            Factor of the heights: 0.5 flattens, 2 exaggerates, −1 makes the relief of a mould.

        Returns
        -------
        Surface
            Its :attr:`strength` is the product of all factors so far.

        Raises
        ------
        NormalMeshError
            The factor is 0 or not finite, or the camera is perspective.
        """
        self.check_arrays()
        return exaggerated_surface(self, strength)

    def depth_map(self, shape: tuple[int, int] | None = None) -> Float:
        """Sample the depth at the pixel centres.

        Orthographic: height towards the viewer. Perspective: distance along the optical axis, away from the viewer.

        Parameters
        ----------
        shape
            Rows and columns to sample the whole image at; default: those of the image.

        Returns
        -------
        (H, W) float64
            Depth in the unit of the surface, NaN outside the mesh.
        """
        mesh, owners = self.owners(shape)
        depth_map = np.empty(owners.shape, np.float64)
        depth = np.ascontiguousarray(self.camera.depth(self.vertices))
        faces = (owners, mesh.vertices, mesh.faces, depth, self.camera.arrays)
        in_parallel(_surface.fill_depth, len(owners), *faces, depth_map, grain=64)
        return depth_map

    def normal_map(self, shape: tuple[int, int] | None = None) -> Float32:
        """Sample the normals of the faces at the pixel centres.

        Parameters
        ----------
        shape
            Rows and columns to sample the whole image at; default: those of the image.

        Returns
        -------
        (H, W, 3) float32
            Unit normals towards the viewer, zero outside the mesh.
        """
        _, owners = self.owners(shape)
        # Owner −1 is the last.
        return np.append(self.face_normals, np.zeros((1, 3)), axis=0).astype(np.float32)[owners]

    def owners(self, shape: tuple[int, int] | None = None) -> tuple[ScreenMesh, Int32]:
        """Return the mesh in pixels of an image of this shape, and the face (H, W) of each pixel or −1."""
        self.check_arrays()
        rows, columns = self.shape if shape is None else checked_image_shape(shape)
        screen = self.screen
        if (rows, columns) != self.shape:
            screen = screen * [columns / self.shape[1], rows / self.shape[0]]
        mesh = ScreenMesh(screen, self.faces)
        return mesh, pixel_faces(mesh, (rows, columns))

    def uncertainty(self, noise: float | Noise | None = None, mesh: bool = True) -> Float:
        """Estimate the standard deviation of the height, or depth, of each vertex.

        The noise of the normals is propagated through the equations of the integration, without sampling. To that the
        deviation of the flat faces from the curved surface is added in quadrature, as the slopes of the pixels below
        them show it. Other errors are not included: of normals that are all wrong in the same way, of the camera, of
        jumps.

        Parameters
        ----------
        noise
            Standard deviation of white noise on the normals in degrees, or a :class:`.Noise`; default: what
            :func:`integrate` was given or has estimated, for each component.
        mesh
            Whether to include the deviation of the mesh. Of a surface that was made from a file it is not known, and
            left out.

        Returns
        -------
        (N,) float64
            In the unit of the surface, relative to the mean of each connected part (:attr:`components`; parts that
            meet across a side of a surface that repeats are one); absolute for parts that a prior holds, whose depths
            count as exact. So does what :meth:`flattened` took away; :meth:`exaggerated` multiplies deviations, too.

        Raises
        ------
        NormalMeshError
            The noise is not known: the surface does not come from :func:`integrate`.
        """
        from normalmesh.integration.uncertainty import vertex_uncertainty

        self.check_arrays()
        return vertex_uncertainty(self, noise, checked_bool(mesh, "mesh"))

    def height_difference(self, a: ArrayLike, b: ArrayLike, noise: float | Noise | None = None) -> HeightDifference:
        """Measure how much higher, nearer to the viewer, one point is than another, with its standard deviation.

        Parameters
        ----------
        a, b
            Each the number of a vertex, or a position u, v on the screen in pixels, which need not be integers.
        noise
            As for :meth:`uncertainty`.

        Returns
        -------
        HeightDifference
            Printed as ``0.1320 ± 0.0041 mm``, with the parts of noise and mesh as attributes. Its standard deviation is
            infinite for points on parts of the surface that nothing connects: normals say nothing about their distance.

        Raises
        ------
        NormalMeshError
            A point is not on the surface, or the noise is not known.

        Examples
        --------
        >>> surface = nm.reconstruct("normals.png", compression=0.9)
        >>> step = surface.height_difference((40.5, 52.5), (60.5, 52.5))
        >>> print("higher by", step)  # doctest: +ELLIPSIS
        higher by ... ± ... px
        """
        from normalmesh.integration.uncertainty import difference_of_heights

        self.check_arrays()
        return difference_of_heights(self, a, b, noise)

    def save(
        self,
        path: str | PathLike[str],
        texture: Texture | None = None,
        normals: NormalMap | None = None,
        *,
        scale: Scale = "auto",
        centred: bool = True,
    ) -> None:
        """Write the surface as PLY, OBJ, GLB or STL, by the suffix of ``path``, or as 3D Tiles to a folder.

        Vertices keep their number and order (STL has none), in the unit of the surface, as float32 (OBJ: text); copies
        for :attr:`walls` follow. Where float32 would round positions by more than a thousandth of a pixel, PLY stores
        float64, GLB an origin apart; STL warns.
        The scene of a GLB file is in metres and centred, see ``scale`` and ``centred``; normalmesh reads it in the
        coordinates of the surface again.

        All but STL carry normals and texture coordinates, which readers interpolate linearly in space. If the camera
        is perspective, colours are therefore off by up to ``L·|d₁ − d₂| / 2(d₁ + d₂)`` pixels within a face, for an
        edge of L pixels between the depths d₁ and d₂; the normal texture accounts for this.

        A path that ends with a separator, or that is a folder without suffix, is for 3D Tiles 1.1, for surfaces too
        large for one file: ``tileset.json`` and GLB tiles of up to about 100 000 faces, with levels of detail that fit
        without cracks. Coordinates, with z up, and geometric errors are in the unit of the surface. The folder must be
        new, empty, or a tileset of this function, which is replaced.

        Old files, with the MTL and PNG of an OBJ, are replaced only when all new ones are complete.

        Parameters
        ----------
        texture
            Colours of the image: a uint8 array (H', W', 3 or 4), or a file, of the map's aspect ratio. GLB embeds it,
            at most 8192 pixels wide and high; OBJ refers to ``<name>_texture.png`` in the same folder; PLY stores
            its colours at the vertices; each 3D tile embeds its part, as JPEG unless it has alpha.
        normals
            For GLB: embedded as a normal texture, so that a coarse mesh is shaded like the full map. It must show the
            same image, at any resolution; it is reduced to 8192 pixels if it is larger. What was taken
            away from the surface, a tilt or a mean slope, is taken away from it, too, and it is exaggerated likewise.
        scale
            For GLB: metres per unit of the surface. ``"auto"``: as its unit says (mm, m, µm, …), or, if that is no
            length (px), such that the longest side of the bounding box is 1. ``"none"``: 1.
        centred
            For GLB: whether to move the centre of the bounding box to the origin.

        Raises
        ------
        NormalMeshError
            The suffix is unknown, the texture unusable, the path cannot be written, or the folder has other files in
            it; an old file stays.

        Warns
        -----
        NormalMeshWarning
            The format cannot hold the texture or the normals, or rounds away the relief.
        """
        from normalmesh.output.mesh_writing import write_surface

        self.check_arrays()
        write_surface(self, path, texture, normals, scale, centred)

    def save_depth(self, path: str | PathLike[str], georeference: GeoReference | None = None) -> None:
        """Write the :meth:`depth_map` as TIFF, EXR, NPY or PNG, by the suffix of ``path``.

        TIFF files are cloud-optimised GeoTIFFs: tiles of 512² pixels, compressed without loss, with overviews, NaN as
        the value of missing data. They are made row of tiles by row of tiles, so the image may be larger than memory.
        Numbers are float32, or float64 in TIFF and NPY where float32 would round away the relief.

        PNG files are displacement maps: grey, 16 bit, bright towards the viewer, in 65 534 steps from the lowest to the
        highest point; 0 (black) where there is no surface. Their range and unit are in their text and in a JSON file
        of the same name, from which :func:`read_depth_map` and :func:`read_height_range` read them.

        Parameters
        ----------
        georeference
            For TIFF: where on a map the image lies.

        Raises
        ------
        NormalMeshError
            The suffix is unknown, or the path cannot be written; an old file stays.

        Warns
        -----
        NormalMeshWarning
            The format cannot hold the georeference, or rounds away the relief.
        """
        from normalmesh.output.mesh_writing import write_depth

        write_depth(self, path, georeference)

    def flattened(self, shape: str) -> Surface:
        """Take the best plane or quadratic away from the heights: the tilt, or also the bend, of the whole.

        A bend is typical of photometric stereo with lights that are nearer than assumed. All components have the same
        tilt and bend, as on one table, and are then at the same height: what a prior determined is lost. Parts that
        only jumps separate keep their steps. The fit is robust: relief that stands out from the rest, like lettering,
        has little influence. x and y are kept.

        Parameters
        ----------
        shape
            ``"plane"`` or ``"quadratic"``. A quadratic also takes away what is truly bent, such as a bowl.

        Returns
        -------
        Surface
            ``surface.flattening`` records what was taken away.

        Raises
        ------
        NormalMeshError
            The camera is perspective, the surface repeats, or it is flattened already.
        """
        self.check_arrays()
        return flattened(self, shape)

    @property
    def before_flattening(self) -> Surface:
        """The surface with the heights that :meth:`flattened` took away, as the normals have it."""
        return restored(self)

    def solid(self, thickness: float | str, width: float | str | None = None) -> Solid:
        """Close the surface by walls and a flat base, for 3D printing.

        The base is perpendicular to the optical axis, behind the lowest point. Walls run to it along the viewing rays:
        straight back, or ever further apart if the camera is perspective, so that they never meet. Where the depth
        jumps, a wall joins both sides of the cut: each component of the mask becomes one piece.

        Parameters
        ----------
        thickness
            From the lowest point of the surface to the base, after scaling: a text with a unit, such as ``"3mm"``,
            ``"0.2cm"`` or ``"12px"``, or a number in the unit of the solid.
        width
            Scale the solid to this width, from left to right. The unit of the solid is then that of the width, else
            that of the surface.

        Returns
        -------
        Solid
            Watertight, checked.

        Raises
        ------
        NormalMeshError
            A length is invalid, or in millimetres while the size of the surface is unknown.

        Examples
        --------
        >>> surface = nm.reconstruct("normals.png")
        >>> surface.solid("3mm", width="80mm").save("coin.stl")
        """
        from normalmesh.mesh.solid import solid_of

        self.check_arrays()
        return solid_of(self, thickness, width)

    @classmethod
    def from_mesh(
        cls,
        mesh: MeshLike,
        camera: Camera | None = None,
        shape: tuple[int, int] | None = None,
        units: str | None = None,
    ) -> Surface:
        """Return the surface of a mesh of another library, or of a file.

        Parameters
        ----------
        mesh
            A mesh of trimesh, Open3D, PyVista or meshio, vertices (N, 3) and faces (M, 3), or the path of a PLY, OBJ,
            STL or GLB file, in the frame of the camera. If the viewer would see more backs than fronts of its faces,
            they are turned over. Faces that the camera sees edge-on, with two corners at one place on the screen, are
            walls, and share the vertices of other faces.
        camera
            The camera that sees the mesh. Default :class:`Orthographic`.
        shape
            Rows and columns of the image. Default: those of the smallest image that holds the mesh.
        units
            Unit of the vertices. Default: that of a trimesh mesh, else pixels.

        Raises
        ------
        NormalMeshError
            The mesh is invalid, or not in front of the camera.
        """
        from normalmesh.output.mesh_libraries import surface_of

        return surface_of(mesh, camera, shape, units)

    def to_trimesh(self) -> trimesh.Trimesh:
        """Return a ``trimesh.Trimesh`` of the same vertices and faces, with normals and texture coordinates."""
        from normalmesh.output.mesh_libraries import trimesh_of

        return trimesh_of(self)

    def to_open3d(self) -> TriangleMesh:
        """Return an ``open3d.geometry.TriangleMesh``, like :meth:`to_trimesh`; needs ``normalmesh[open3d]``."""
        from normalmesh.output.mesh_libraries import open3d_of

        return open3d_of(self)

    def to_pyvista(self) -> pyvista.PolyData:
        """Return a ``pyvista.PolyData``, like :meth:`to_trimesh`; needs ``normalmesh[view3d]``."""
        from normalmesh.output.mesh_libraries import pyvista_of

        return pyvista_of(self)

    def to_meshio(self) -> meshio.Mesh:
        """Return a ``meshio.Mesh``, for formats of simulation programs, with normals; needs ``normalmesh[meshio]``."""
        from normalmesh.output.mesh_libraries import meshio_of

        return meshio_of(self)

    def plot(self) -> tuple[Axes, Axes]:
        """Plot the shaded surface and its wireframe side by side with matplotlib; needs ``normalmesh[plots]``."""
        from normalmesh.pictures.plots import plot_surface

        return plot_surface(self)

    def view(self) -> pyvista.Plotter:
        """Show the surface in a PyVista plotter, whose ``show()`` opens a window; needs ``normalmesh[view3d]``."""
        from normalmesh.pictures.plots import pyvista_view

        return pyvista_view(self)

    def _repr_html_(self) -> str | None:
        """Return a viewer for notebooks, in which the surface can be turned."""
        from normalmesh.report.notebook import html_or_none, surface_html

        return html_or_none(surface_html, self)

    def __repr__(self) -> str:
        return f"Surface({len(self.vertices)} vertices, {len(self.faces)} faces, {self.camera}, in {self.units})"


def face_normals(vertices: Float, faces: Integer) -> Float:
    """Compute unit normals (M, 3) of triangles in space, zero for those without area."""
    return _unit_vectors(face_crosses(vertices, faces))


def vertex_normals(vertices: Float, faces: Integer, owners: Integer) -> Float:
    """Return unit means (N, 3) of the adjacent faces' normals weighted by area, zero if there is none.

    ``owners`` (M, 3) are the vertices to which the normals of faces are added: the faces (M, 3) themselves, or twins.
    """
    crosses = np.repeat(face_crosses(vertices, faces), 3, axis=0)
    return _unit_vectors(np.stack([np.bincount(owners.ravel(), each, len(vertices)) for each in crosses.T], axis=1))


def face_crosses(vertices: Float, faces: Integer) -> Float:
    """Return the normals (M, 3) of triangles in space, twice as long as their areas are large."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _unit_vectors(vectors: Float) -> Float:
    """Scale vectors (K, 3) to length one, without overflow or underflow of their squares; zero stays zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    x, y, z = scaled.T
    length = np.sqrt(x * x + y * y + z * z)
    return scaled / np.where(length > 0, length, 1.0)[:, None]
