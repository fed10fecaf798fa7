"""``python -m laststand.cli``: the command line without its installed script."""

import sys

from laststand.cli.main import main

sys.exit(main())
