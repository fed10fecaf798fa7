"""``python -m laststand.emulator.client --config FILE``: one client process, controlled over a loopback connection."""

import argparse
import logging
import signal
import sys
from pathlib import Path

from laststand.emulator.client.config import read_config
from laststand.emulator.client.history import History
from laststand.emulator.client.process import run_client
from laststand.emulator.core.errors import ConfigError


def main() -> int:
    """Runs the process; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m laststand.emulator.client", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="JSON file, see laststand.emulator.client.config")
    arguments = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # The harness decides when a run ends; an interrupt from the terminal reaches it, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        config = read_config(arguments.config)
    except ConfigError as error:
        parser.error(str(error))
    with History(Path(config.history_path)) as history:
        run_client(config, history)
    return 0


if __name__ == "__main__":
    sys.exit(main())
