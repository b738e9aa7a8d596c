"""Synthetic cases with exact ground truth."""
