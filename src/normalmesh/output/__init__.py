"""Surfaces, meshes, heights and normal maps to files and to other libraries, and back."""
