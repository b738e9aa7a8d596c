"""Entry point of the program ``normalmesh`` and of ``python -m normalmesh``."""

import os
import sys

#: Exit status after Ctrl-C.
INTERRUPTED = 130


def main() -> None:
    """Run the command line. Signals are handled from the start, because one may arrive during the imports."""
    open_missing_streams()
    try:
        from normalmesh.cli.interruption import watch

        watch()
    except KeyboardInterrupt:
        print("normalmesh: interrupted, nothing written", file=sys.stderr)
        sys.exit(INTERRUPTED)

    from normalmesh.cli import main as command_line

    command_line()


def open_missing_streams() -> None:
    """Replace closed standard streams by the null device, so that no output file gets their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


if __name__ == "__main__":
    main()
