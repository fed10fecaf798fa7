"""``python -m emulator.cli``: the command line without its installed script."""

import sys

from emulator.cli.main import main

sys.exit(main())
