"""The program ``normalmesh``, and ``python -m normalmesh``."""

import os
import sys

from normalmesh.cli.interruption import watch


def main() -> None:
    """Run the command line. Signals come first: they may come while it is imported."""
    open_missing_streams()
    watch()

    from normalmesh.cli import main as command_line

    command_line()


def open_missing_streams() -> None:
    """Standard streams that a service has closed lead nowhere, and their numbers are not those of files we write."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


if __name__ == "__main__":
    main()
