"""Commands of the command line that run in one process, one after the other.

To start a process for each takes far longer than what it does.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

Result: TypeAlias = subprocess.CompletedProcess[str]
Laststand: TypeAlias = Callable[..., Result]

_COMMANDS: Final = """
import contextlib, io, json, sys
from laststand.cli.main import main
for line in sys.stdin:
    sys.argv = ["laststand", *json.loads(line)]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        code = main()
    print(json.dumps([code, out.buffer.getvalue().decode(), err.getvalue()]), flush=True)
"""


@contextlib.contextmanager
def one_process(
    folder: Path, *, before: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> Iterator[Laststand]:
    """Runs each command in one process, which is started in a folder when the first command comes.

    Args:
        folder: where it starts.
        before: a command that starts the process in another way than usual, as ``setpriv`` does.
        environment: of the process; that of this one if not given.
    """
    command = [*before, sys.executable, "-c", _COMMANDS]
    with contextlib.ExitStack() as stack:

        @cache
        def process() -> subprocess.Popen[str]:
            started = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
            )
            return stack.enter_context(started)

        def run(*arguments: str) -> Result:
            commands, results = process().stdin, process().stdout
            assert commands is not None
            assert results is not None
            commands.write(json.dumps(arguments) + "\n")
            commands.flush()
            code, out, err = json.loads(results.readline())
            return Result(arguments, code, out, err)

        yield run
