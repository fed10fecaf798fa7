"""The Docker engine: connecting to it, and its errors in the project's terms.

Only this package imports the Docker SDK. Calls of the SDK block, so they run in threads; ``in_thread`` converts every
error of such a call to an ``EngineError`` of one line.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound

from laststand.emulator.core.errors import EmulatorError, MissingToolError

_DEFAULT_HOST: Final = "unix:///var/run/docker.sock"
_CALL_TIMEOUT_S: Final = 60
_CONNECTIONS_MAX: Final = 64
"""The connections of one client: each running container has one that waits for its end."""

CONFINED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "init": True,
        "read_only": True,
        "tmpfs": {"/tmp": ""},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": 512,
        "healthcheck": {"test": ["NONE"]},
    }
)
"""The settings of every container of a harness: it can change nothing but what is mounted."""

_NOBODY: Final = "nothing listens at its socket; start it, for example with: systemctl start docker"
_DIAL_TIMEOUT_S: Final = 5.0

ResultT = TypeVar("ResultT")


class EngineError(EmulatorError):
    """The engine refused, or went away.

    Attributes:
        what: was tried.
        reason: the engine's own words, in one line.
    """

    def __init__(self, *, what: str, reason: str) -> None:
        super().__init__(f"Docker engine, {what}: {reason}")
        self.what = what
        self.reason = reason


def connect() -> docker.DockerClient:
    """Returns a client of the engine that the environment names, by default this machine's.

    Raises:
        MissingToolError: no engine answers, or this user may not use it.
    """
    try:
        _dial(os.environ.get("DOCKER_HOST") or _DEFAULT_HOST)
        return docker.from_env(timeout=_CALL_TIMEOUT_S, max_pool_size=_CONNECTIONS_MAX)
    except (OSError, ValueError, DockerException) as error:  # those of requests are OSErrors
        raise MissingToolError(tool="a Docker engine", expected=f"one that answers ({reason_of(error)})") from None


def _dial(host: str) -> None:
    """Connects to the engine's socket and hangs up: if nothing listens, the SDK would leave its own socket open."""
    found = urlsplit(host)
    if found.scheme == "unix":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(found.path)
    elif found.scheme in ("tcp", "http", "https") and found.hostname is not None and found.port is not None:
        socket.create_connection((found.hostname, found.port), timeout=_DIAL_TIMEOUT_S).close()


def require_image(client: docker.DockerClient, name: str, *, made_by: str) -> None:
    """Checks that an image is there; nothing is pulled.

    Args:
        client: of the engine.
        name: of the image.
        made_by: the command that builds it.

    Raises:
        MissingToolError: the image is missing.
        EngineError: the engine went away.
    """
    try:
        client.images.get(name)
    except ImageNotFound:
        raise MissingToolError(tool=f"image {name}", expected=f"it on this machine; make it with: {made_by}") from None
    except (DockerException, requests.RequestException) as error:
        raise EngineError(what=f"image {name}", reason=reason_of(error)) from None


async def in_thread(what: str, call: Callable[[], ResultT]) -> ResultT:
    """Runs a call of the SDK.

    Raises:
        EngineError: the call failed.
    """
    return await asyncio.to_thread(checked, what, call)


def checked(what: str, call: Callable[[], ResultT]) -> ResultT:
    """Runs a call of the SDK here and now.

    Raises:
        EngineError: the call failed.
    """
    try:
        return call()
    except (DockerException, requests.RequestException) as error:
        raise EngineError(what=what, reason=reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """Returns the error in one line, in the engine's words if it answered."""
    text = error.explanation or str(error) if isinstance(error, APIError) else str(error)
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return _NOBODY
    if "PermissionError" in text or "Permission denied" in text:
        return "permission denied: this user may not use it; add the user to the group docker"
    if "FileNotFoundError" in text or "ConnectionRefusedError" in text:
        return _NOBODY
    return " ".join(str(text).split())
