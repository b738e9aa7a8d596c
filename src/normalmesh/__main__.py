"""``python -m normalmesh``."""

from normalmesh.cli import main

main()
