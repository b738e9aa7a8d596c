"""Interactive view of a surface in a window, with PyVista."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normalmesh.errors import NormalMeshError

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
    try:
        import pyvista
    except ImportError as error:
        raise NormalMeshError("viewing requires PyVista; pip install 'normalmesh[view3d]'") from error

    counted = np.insert(surface.faces, 0, 3, axis=1)
    mesh = pyvista.PolyData(surface.vertices.copy(), counted.ravel())
    mesh.point_data["Normals"] = surface.vertex_normals.copy()
    mesh.point_data.active_normals_name = "Normals"
    plotter = pyvista.Plotter(**options)
    plotter.add_mesh(mesh, color="#e8e2d6", smooth_shading=True, backface_params={"color": "#8fa6cc"})
    plotter.view_xy()
    return plotter
