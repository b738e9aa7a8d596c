"""Tiles: reconstruction of maps that are larger than memory, window by window."""
