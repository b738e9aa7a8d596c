"""Synthetic cases: surfaces that are known exactly."""
