"""The program ``normalmesh``, and ``python -m normalmesh``."""

from normalmesh.interruption import watch


def main() -> None:
    """Run the command line. Signals come first: they may come while it is imported."""
    watch()

    from normalmesh.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
