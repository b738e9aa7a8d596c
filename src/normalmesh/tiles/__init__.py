"""Reconstruction in tiles: maps that do not fit into memory, on many processes or machines."""
