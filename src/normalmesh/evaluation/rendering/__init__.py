"""Rendering: normal maps and depths of triangle models."""
