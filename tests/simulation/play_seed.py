"""Prints every line of the event log and history of one seed: ``python -m tests.simulation.play_seed 7``."""

import sys

from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.search.explorer import SweepOptions, explore


def main() -> None:
    """Plays the seed of the command line."""
    journal = Journal()
    explore(int(sys.argv[1]), SweepOptions(), journal=journal)
    sys.stdout.buffer.write(b"\n".join(journal.lines()))


if __name__ == "__main__":
    main()
