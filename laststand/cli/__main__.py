"""The program ``laststand``, also as ``python -m laststand.cli``."""

import sys

_INTERRUPTED = 130


def main() -> int:
    """Runs the command line; returns the exit code of the process."""
    try:
        from laststand.cli.main import main as run
    except KeyboardInterrupt:  # the program does not handle it before
        return _INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
