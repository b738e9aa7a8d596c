"""The report of a run: one page that shows the surface, and needs nothing but a browser."""
