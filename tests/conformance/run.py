"""``python -m tests.conformance.run [DIR]``: runs every conformance vector of a directory against the core.

Prints one line per failure and ends with ``N passed, N failed, N skipped``; exit code 1 on any failure, 254 if the
vectors cannot be read.
"""

import logging
import sys
from pathlib import Path
from typing import TextIO

from tests.conformance.harness import VECTORS, VectorFileError, load_not_built, load_vectors, run_vectors
from tests.conformance.kinds import KINDS


def main(arguments: list[str]) -> int:
    """Runs and prints; returns the exit code."""
    if len(arguments) > 1:
        _print("usage: python -m tests.conformance.run [DIR]", to=sys.stderr)
        return 254
    directory = Path(arguments[0]) if arguments else VECTORS
    try:
        report = run_vectors(load_vectors(directory), KINDS, load_not_built())
    except VectorFileError as error:
        _print(f"conformance: {error}", to=sys.stderr)
        return 254
    for failure in report.failures:
        _print(failure.describe())
    for reason, ids in sorted(report.skipped.items()):
        _print(f"skipped {len(ids)}: {reason}")
    _print(report.summary())
    return 1 if report.failures else 0


def _print(line: str, *, to: TextIO | None = None) -> None:
    (to or sys.stdout).write(line + "\n")


if __name__ == "__main__":
    logging.getLogger("laststand.emulator").addHandler(
        logging.NullHandler()
    )  # vectors break logs; storage would warn of each
    sys.exit(main(sys.argv[1:]))
