"""Ground truth and error measures for reconstructions."""
