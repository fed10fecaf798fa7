"""Shows actions as annotations in Grafana: lines on its dashboards, sent when an action is performed.

Only if ``LASTSTAND_GRAFANA`` names a Grafana: ``http://127.0.0.1:3000``, or ``http://USER:PASSWORD@HOST:3000`` if
writing needs a user. A thread sends them to its HTTP API (``POST /api/annotations``), so no action waits for Grafana.
An error is logged once and changes nothing else: annotations are no evidence.
"""

import asyncio
import base64
import json
import logging
import os
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from laststand.emulator.cluster.containers.monitoring import ANNOTATION_TAG
from laststand.emulator.core.errors import ConfigError

VARIABLE: Final = "LASTSTAND_GRAFANA"
_TIMEOUT_S: Final = 2.0
_WAITING_MAX: Final = 1000
"""Annotations that are not sent yet; more are dropped."""

_NS_PER_MS: Final = 1_000_000

_log: Final = logging.getLogger(__name__)


class Annotations:
    """Sends annotations to one Grafana.

    Args:
        url: of Grafana; ``None`` for nowhere.

    Raises:
        ConfigError: the text is not an HTTP URL.
    """

    def __init__(self, url: str | None) -> None:
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING_MAX)
        self._sender: threading.Thread | None = None
        if not url:
            return
        self._url, self._headers = _endpoint(url)
        self._sender = threading.Thread(target=self._send_all, name="annotations", daemon=True)
        self._sender.start()

    def send(self, text: str, *, tags: Sequence[str], begun_ns: int, ended_ns: int) -> None:
        """Sends one, soon.

        Args:
            text: description of the action.
            tags: tags in addition to ``ANNOTATION_TAG``.
            begun_ns: when it was begun, in nanoseconds since 1970.
            ended_ns: when it was done.
        """
        if self._sender is None:
            return
        body = {
            "time": begun_ns // _NS_PER_MS,
            "timeEnd": ended_ns // _NS_PER_MS,
            "tags": [ANNOTATION_TAG, *tags],
            "text": text,
        }
        try:
            self._waiting.put_nowait(json.dumps(body).encode())
        except queue.Full:
            _log.debug("annotation dropped text=%s", text)

    def close(self) -> None:
        """Sends the waiting annotations, as far as that takes no longer than one answer may."""
        if self._sender is not None:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                return
            self._sender.join(_TIMEOUT_S)

    def _send_all(self) -> None:
        """Runs in the thread."""
        # A machine's proxies are for the world outside.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        has_failed = False
        while (body := self._waiting.get()) is not None:
            request = urllib.request.Request(self._url, data=body, headers=self._headers, method="POST")
            try:
                with opener.open(request, timeout=_TIMEOUT_S):
                    pass
            except (OSError, ValueError) as error:  # those of urllib are OSErrors
                if not has_failed:
                    _log.info("no annotations in Grafana: %s", error)
                has_failed = True


@asynccontextmanager
async def annotated() -> AsyncIterator[Annotations]:
    """Yields the sender to the Grafana that the environment names, if any; waiting annotations are sent at the end.

    Raises:
        ConfigError: the text is not an HTTP URL.
    """
    annotations = Annotations(os.environ.get(VARIABLE))
    try:
        yield annotations
    finally:
        await asyncio.to_thread(annotations.close)


def _endpoint(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(key=VARIABLE, value=parts.scheme or url, expected="http://HOST:PORT of a Grafana")
    headers = {"Content-Type": "application/json"}
    if parts.username is not None:
        given = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(given.encode()).decode()}"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, f"{parts.path.rstrip('/')}/api/annotations", "", "")), headers
