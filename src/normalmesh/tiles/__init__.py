"""Tiles: reconstruction of maps that do not fit into memory, piece by piece."""
