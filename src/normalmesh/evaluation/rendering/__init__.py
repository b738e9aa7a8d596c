"""Render normal maps and depth maps of triangle models."""
