"""The HTML report of a reconstruction, a single page with the surface in 3D."""
