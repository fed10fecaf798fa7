"""Judges runs: ``python -m tests.independent RUN...``. Ends with 0 if all are valid, 1 at a violation, else 2."""

import sys
from pathlib import Path

from tests.independent.judge import judge


def main(arguments: list[str]) -> int:
    """Prints the verdict of each run with its findings by check; returns the exit code."""
    codes = []
    for argument in arguments:
        verdict = judge(Path(argument))
        codes.append({"valid": 0, "violation": 1, "unknown": 2}[verdict.verdict])
        guarantee = f", guarantee {verdict.guarantee}" if verdict.guarantee else ""
        _print(f"{verdict.verdict}{guarantee}, {verdict.lost_records} acks=all records lost: {argument}")
        for check, findings in verdict.findings.items():
            _print(f"  {check}: {len(findings)}, such as {findings[0]}")
        for doubt in verdict.doubts:
            _print(f"  unknown: {doubt}")
    return 1 if 1 in codes else max(codes, default=2)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
