"""Serves the live page on loopback: the page, a stream of looks at the clusters, and the actions that are clicked.

Viewers of the page need the token in its address; an action also needs the token in a header, which no form can send,
and must come from the page's own origin. A page under another name for this machine is refused (DNS rebinding). Only
actions that are offered at the moment are performed.

A look costs processor time, so the next one waits until its cost is at most ``_SHARE`` of the time since; without a
viewer, none is made. Drawing happens in a thread, so that the event loop continues.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Self

import msgspec
from aiohttp import web
from markupsafe import Markup

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.live.live_story import LiveStory
from laststand.emulator.live.picture import pictures_of
from laststand.emulator.live.stage import Stage, StageState
from laststand.emulator.report.assets import asset, digest, template
from laststand.emulator.report.moments import Moments

_HOST: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 18
_TOKEN_HEADER: Final = "X-Laststand-Token"
_SHARE: Final = 0.04
"""Part of a core that looks may take."""

_LOOK_EVERY_S: Final = (0.5, 10.0)
_ALIVE_EVERY_S: Final = 2.0
_CLOSE_WITHIN_S: Final = 1.0
_PACKAGE: Final = "laststand.emulator.live"

_log: Final = logging.getLogger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ViewPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a page: the port that listens, 0 for any free one, and the token that guards it."""

    port: int
    token: str


class _ClickedAction(msgspec.Struct, frozen=True, kw_only=True):
    """A clicked action: a step, and the place of the cluster on the page."""

    stage: int
    step: str


class _StageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    panel: str
    drawing: str
    moments: list[Moments]


class _Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    stages: list[_StageSnapshot]


class LiveView:
    """Use it as an asynchronous context manager: inside, the page is served.

    Args:
        stages: clusters that are shown, one below the other.
        title: of the page.
        place: the previous address, so that open pages find it again; ``None`` for any port and a new token.
    """

    def __init__(self, stages: Sequence[Stage], *, title: str, place: ViewPlace | None = None) -> None:
        self._stages = tuple(stages)
        self._title = title
        self._place = place or ViewPlace(port=0, token=secrets.token_urlsafe(_TOKEN_BYTES))
        self._stories = [LiveStory(stage.directory) for stage in self._stages]
        self._stack = contextlib.AsyncExitStack()
        self._watchers = 0
        self._watched = asyncio.Event()
        self._soon = asyncio.Event()
        self._changed = asyncio.Condition()
        self._latest: bytes | None = None
        self._number = 0
        self._over: str | None = None

    @property
    def place(self) -> ViewPlace:
        """The address of the page, once it is served."""
        return self._place

    @property
    def address(self) -> str:
        """The URL of the page, with its token."""
        return f"{self._origin}/?token={self._place.token}"

    @property
    def _origin(self) -> str:
        return f"http://{_HOST}:{self._place.port}"

    async def __aenter__(self) -> Self:
        """Starts to serve.

        Raises:
            OSError: the port is taken.
        """
        async with contextlib.AsyncExitStack() as stack:
            application = web.Application(middlewares=[self._guard])
            application.add_routes(
                [web.get("/", self._page), web.get("/stream", self._stream), web.post("/actions", self._do)]
            )
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=_CLOSE_WITHIN_S)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, _HOST, self._place.port)
            await site.start()
            self._place = msgspec.structs.replace(self._place, port=runner.addresses[0][1])
            looking = asyncio.create_task(self._refresh_while_watched(), name="live view")
            stack.push_async_callback(_cancelled, looking)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Informs the pages that the view has ended, and stops."""
        await self.end("over")
        await self._stack.aclose()

    async def end(self, words: str) -> None:
        """Informs the pages why no more updates come. Only the first call counts."""
        if self._over is None:
            self._over = words
            async with self._changed:
                self._changed.notify_all()

    # --- Who may ask ----------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if request.headers.get("Host") != self._origin.removeprefix("http://"):
            raise web.HTTPForbidden(text="this page has another address\n")
        is_post = request.method == "POST"
        if is_post and request.headers.get("Origin") != self._origin:
            raise web.HTTPForbidden(text="this request comes from another page\n")
        given = request.headers.get(_TOKEN_HEADER, "") if is_post else request.query.get("token", "")
        if not hmac.compare_digest(given.encode(), self._place.token.encode()):
            raise web.HTTPForbidden(text="the token is missing or wrong: open the address that was printed\n")
        return await handler(request)

    # --- What is asked --------------------------------------------------------------------------------------------

    async def _page(self, _: web.Request) -> web.Response:
        style = asset("report.css") + asset("live.css", package=_PACKAGE)
        script = asset("theme.js") + asset("picture.js") + asset("live.js", package=_PACKAGE)
        html = template("live.html.j2", package=_PACKAGE).render(
            title=self._title,
            stages=self._stages,
            patterns=Markup(asset("patterns.svg")),
            style=Markup(style),
            script=Markup(script),
        )
        policy = (
            f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        return web.Response(text=html, content_type="text/html", headers=headers)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        self._watchers += 1
        self._watched.set()
        try:
            await self._send_snapshots(response)
        except ConnectionError:
            _log.debug("a page was closed")
        finally:
            self._watchers -= 1
            if not self._watchers:
                self._watched.clear()
        return response

    async def _send_snapshots(self, response: web.StreamResponse) -> None:
        sent_number = 0

        def has_news() -> bool:
            return self._number != sent_number or self._over is not None

        while self._over is None:
            if self._latest is not None and self._number != sent_number:
                sent_number = self._number
                await response.write(b"event: look\ndata: %s\n\n" % self._latest)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ALIVE_EVERY_S), self._changed:
                    await self._changed.wait_for(has_news)
            await response.write(b"event: alive\ndata: 1\n\n")
        await response.write(b"event: over\ndata: %s\n\n" % msgspec.json.encode(self._over))

    async def _do(self, request: web.Request) -> web.Response:
        try:
            clicked = msgspec.json.decode(await request.read(), type=_ClickedAction)
            stage = self._stages[clicked.stage]
        except (msgspec.MsgspecError, IndexError):
            return _answer(400, reason="this is no action")
        if self._over is not None or clicked.step not in stage.state().steps:
            return _answer(409, reason="that is not possible now")
        _log.info("clicked step=%s", clicked.step)
        try:
            seen = await stage.play(clicked.step)
        except EmulatorError as error:
            return _answer(409, reason=str(error))
        finally:
            self._soon.set()
        return _answer(200, seen=seen)

    # --- Looks ----------------------------------------------------------------------------------------------------

    async def _refresh_while_watched(self) -> None:
        """Makes looks while there is a viewer. If a look fails, the view ends; the cluster continues."""
        try:
            while True:
                await self._watched.wait()
                cost_s = await self._refresh()
                least_s, most_s = _LOOK_EVERY_S
                self._soon.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(max(cost_s / _SHARE, least_s), most_s)):
                        await self._soon.wait()
        except Exception as error:
            _log.exception("the live view failed")
            await self.end(f"the view failed: {error}")

    async def _refresh(self) -> float:
        states = [stage.state() for stage in self._stages]
        self._latest, cost_s = await asyncio.to_thread(self._snapshot_of, states)
        async with self._changed:
            self._number += 1
            self._changed.notify_all()
        return cost_s

    def _snapshot_of(self, states: Sequence[StageState]) -> tuple[bytes, float]:
        """Returns a look as one line of JSON, and its cost."""
        begun_s = time.thread_time()
        looks = [self._stage_snapshot(place, state) for place, state in enumerate(states)]
        return msgspec.json.encode(_Snapshot(stages=looks)), time.thread_time() - begun_s

    def _stage_snapshot(self, place: int, state: StageState) -> _StageSnapshot:
        story = self._stories[place].read(now_ns=time.monotonic_ns())
        broken = sum(bool(link.broken) for link in state.links)
        pictures = pictures_of(story, prefix=f"s{place}-")
        return _StageSnapshot(
            panel=template("panel.html.j2", package=_PACKAGE).render(state=state, broken=broken),
            drawing=template("drawing.html.j2", package=_PACKAGE).render(pictures=pictures),
            moments=[picture.moments for picture in pictures],
        )


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _answer(status: int, **fields: str) -> web.Response:
    return web.json_response(fields, status=status)
