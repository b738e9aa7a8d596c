"""Parts of benchmarks.scale: a terrain made in windows, errors in windows, and processes under watch."""
