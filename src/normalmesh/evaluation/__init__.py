"""Ground truth and measures: what reconstructions are checked with."""
