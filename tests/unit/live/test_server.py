"""The server of the live page: whom it answers, what it has done, what it tells."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientTimeout, StreamReader

from laststand.emulator.live.server import LiveView, ViewPlace
from tests.unit.live.packed_runs import packed_events
from tests.unit.live.stages import FAIL, KILL, PlayedStage
from tests.unit.report.judged_runs import lost

DEADLINE_S = 60.0
NAME = "<script>alert(1)</script>"


@pytest.fixture
async def stage(tmp_path: Path) -> PlayedStage:
    packed_events(lost(tmp_path / "run" / "1").directory, tmp_path / "live" / "events")
    return PlayedStage(tmp_path / "live", name=NAME)


@pytest.fixture
async def view(stage: PlayedStage) -> AsyncIterator[LiveView]:
    async with LiveView([stage], title=NAME) as view:
        yield view


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    async with ClientSession(timeout=ClientTimeout(total=DEADLINE_S)) as session:
        yield session


def origin(view: LiveView) -> str:
    return f"http://127.0.0.1:{view.place.port}"


async def post(session: ClientSession, view: LiveView, body: bytes, **headers: str) -> tuple[int, dict[str, str]]:
    given = {"Origin": origin(view), "X-Laststand-Token": view.place.token}
    given.update({name.replace("_", "-"): value for name, value in headers.items()})
    async with session.post(f"{origin(view)}/actions", data=body, headers=given) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if text.startswith("{") else {"text": text}


def action_body(step: str, stage: int = 0) -> bytes:
    return json.dumps({"stage": stage, "step": step}).encode()


async def test_the_page_needs_its_token_and_its_own_name(view: LiveView, session: ClientSession) -> None:
    async with session.get(view.address) as answer:
        page = await answer.text()
        assert answer.status == 200
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert NAME not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for path in ("/", "/?token=", f"/?token={view.place.token}x", "/stream", "/stream?token=no"):
        async with session.get(f"{origin(view)}{path}") as answer:
            assert answer.status == 403, path
    async with session.get(view.address, headers={"Host": "elsewhere.example"}) as answer:
        assert answer.status == 403


async def test_an_action_needs_the_token_in_a_header_and_the_origin_of_the_page(
    view: LiveView, stage: PlayedStage, session: ClientSession
) -> None:
    for headers in (
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": origin(view).replace("127.0.0.1", "localhost")},
        {"X_Laststand_Token": "no"},
        {"Host": "elsewhere.example"},
    ):
        status, _ = await post(session, view, action_body(KILL.step), **headers)
        assert status == 403, headers
    async with session.post(f"{view.address.replace('/?', '/actions?')}", data=action_body(KILL.step)) as answer:
        assert answer.status == 403
    assert stage.played == []


async def test_only_what_is_offered_is_done(view: LiveView, stage: PlayedStage, session: ClientSession) -> None:
    assert await post(session, view, action_body("{replace_disk: {node: 1}}")) == (
        409,
        {"reason": "that is not possible now"},
    )
    assert await post(session, view, action_body(KILL.step, stage=1)) == (400, {"reason": "this is no action"})
    assert await post(session, view, b"{}") == (400, {"reason": "this is no action"})
    assert await post(session, view, action_body(FAIL.step)) == (409, {"reason": "it did not work"})
    assert stage.played == []
    assert await post(session, view, action_body(KILL.step)) == (200, {"seen": "process 7 was killed"})
    assert await post(session, view, action_body(KILL.step)) == (409, {"reason": "that is not possible now"})
    assert stage.played == [KILL.step]


async def told(lines: StreamReader, event: str) -> str:
    """Returns the data of the next event of a kind."""
    is_next = False
    async for line in lines:
        if is_next and line.startswith(b"data: "):
            return line.removeprefix(b"data: ").decode()
        is_next = line.strip() == f"event: {event}".encode()
    raise AssertionError(f"no {event}")


async def test_the_stream_sends_looks_that_are_escaped_until_it_is_over(view: LiveView, session: ClientSession) -> None:
    async with session.get(f"{origin(view)}/stream?token={view.place.token}") as answer:
        first = json.loads(await told(answer.content, "look"))
        [shown] = first["stages"]
        assert "<svg" in shown["drawing"]
        assert 'class="gone"' not in shown["drawing"]
        assert "down" not in shown["panel"]
        assert "&lt;script&gt;" in shown["panel"]
        assert NAME not in shown["panel"] + shown["drawing"]
        await post(session, view, action_body(KILL.step))
        while "down" not in shown["panel"]:
            [shown] = json.loads(await told(answer.content, "look"))["stages"]
        await view.end("the run is over")
        assert json.loads(await told(answer.content, "over")) == "the run is over"
    assert (await post(session, view, action_body(FAIL.step)))[0] == 409


async def test_a_view_that_is_served_again_at_its_place_has_the_same_address(stage: PlayedStage) -> None:
    async with LiveView([stage], title="first") as first:
        place = first.place
    async with LiveView([stage], title="second", place=place) as second:
        assert second.place == place == ViewPlace(port=place.port, token=first.place.token)
        assert second.address == first.address


async def test_a_look_that_fails_ends_the_view_and_says_so(
    view: LiveView, stage: PlayedStage, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ValueError("nothing to see")

    monkeypatch.setattr(stage, "state", broken)
    async with session.get(f"{origin(view)}/stream?token={view.place.token}") as answer:
        assert json.loads(await told(answer.content, "over")) == "the view failed: nothing to see"
