"""Interactive view of a surface in a window, with PyVista."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normalmesh.mesh.walls import with_walls
from normalmesh.output.mesh_libraries import pyvista_of

if TYPE_CHECKING:
    from pyvista import Plotter

    from normalmesh.mesh.surface import Surface


def pyvista_view(surface: Surface, **options: Any) -> Plotter:
    """Return a PyVista plotter with the surface, from the camera's point of view.

    Parameters
    ----------
    options
        Options of :class:`pyvista.Plotter`, such as ``off_screen=True``.

    Returns
    -------
    pyvista.Plotter
        ``show()`` opens the window. The mesh is ``plotter.mesh``, with ``Normals`` at the vertices.

    Raises
    ------
    NormalMeshError
        If PyVista is not installed: ``pip install normalmesh[view3d]``.
    """
    mesh = pyvista_of(with_walls(surface))
    import pyvista

    plotter = pyvista.Plotter(**options)
    plotter.add_mesh(mesh, color="#e8e2d6", smooth_shading=True, backface_params={"color": "#8fa6cc"})
    plotter.view_xy()
    return plotter
