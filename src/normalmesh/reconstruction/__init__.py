"""Reconstruction: from a normal map to a surface."""
