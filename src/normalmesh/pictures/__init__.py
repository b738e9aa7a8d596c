"""Pictures of normal maps and surfaces."""

from normalmesh.pictures.turning import pyvista_view

__all__ = ["pyvista_view"]
