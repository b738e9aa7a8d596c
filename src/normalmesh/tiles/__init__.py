"""Reconstruction in tiles, of maps that do not fit into memory: its stages, on one process or a cluster."""
