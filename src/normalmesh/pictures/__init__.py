"""Pictures of normal maps and surfaces."""

from normalmesh.pictures.pyvista_viewer import pyvista_view

__all__ = ["pyvista_view"]
