"""A program for hooks that does what ``laststand`` does: one process carries all of them out.

A hook asks several times whether it took effect: to start Python with all of laststand takes longer than the answer.
"""

import json
import shlex
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.unit.cli.one_process import one_process

_ASK: Final = """\
import json, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    server.sendall(json.dumps(sys.argv[2:]).encode() + b"\\n")
    code, out, err = json.loads(server.makefile().readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


@contextmanager
def hook_program(folder: Path) -> Iterator[str]:
    """Yields the words of a shell that stand for ``laststand`` while the block lasts; ``folder`` is the current one."""
    with tempfile.TemporaryDirectory() as place, one_process(folder) as laststand:
        turn = threading.Lock()

        class Answer(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                words = json.loads(self.rfile.readline())
                with turn:
                    done = laststand(*words)
                self.wfile.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode() + b"\n")

        ask, address = Path(place, "ask.py"), str(Path(place, "socket"))
        ask.write_text(_ASK)
        with socketserver.ThreadingUnixStreamServer(address, Answer) as server:
            threading.Thread(target=server.serve_forever).start()
            yield shlex.join((sys.executable, "-I", "-S", str(ask), address))
            server.shutdown()
