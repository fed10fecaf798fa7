"""The supervisor of a standing cluster starts quickly: it imports nothing that only judges need."""

import subprocess
import sys


def test_a_supervisor_imports_neither_the_oracle_nor_numpy() -> None:
    code = (
        "import sys, laststand.chaos.standing.__main__\n"
        "heavy = [name for name in sys.modules if name.split('.')[0] == 'numpy' or name.endswith('.verification')]\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
