"""Sessions of consumers (KIP-227): what is remembered, and which errors end them."""

from typing import Any

from laststand.emulator.kafka_listener.fetch_sessions import SLOTS, FetchSessions


def body(session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()) -> dict[str, Any]:
    topic = {
        "topic": "t",
        "topicId": None,
        "partitions": [{"partition": each, "fetchOffset": 0} for each in partitions],
    }
    left = [{"topic": "t", "topicId": None, "partitions": list(forgotten)}] if forgotten else []
    return {
        "sessionId": session_id,
        "sessionEpoch": epoch,
        "topics": [topic] if partitions else [],
        "forgottenTopicsData": left,
    }


def places(sessions: FetchSessions, *arguments: Any, **named: Any) -> list[int]:
    return [place[1] for place in sessions.resolve(body(*arguments, **named), is_by_id=False).partitions]


def answer(**given: Any) -> dict[str, Any]:
    quiet = {"highWatermark": 5, "logStartOffset": 0, "records": b"", "errorCode": 0, "preferredReadReplica": -1}
    return {**quiet, **given}


def test_a_session_remembers_adds_and_forgets() -> None:
    sessions = FetchSessions()
    opened = sessions.resolve(body(0, 0, 1, 2), is_by_id=False)
    assert opened.session_id > 0
    assert places(sessions, opened.session_id, 1) == [1, 2]
    assert places(sessions, opened.session_id, 2, 3, forgotten=(1,)) == [2, 3]
    emptied = sessions.resolve(body(opened.session_id, 3, forgotten=(2, 3)), is_by_id=False)
    assert (emptied.session_id, emptied.partitions) == (0, {})
    assert sessions.resolve(body(opened.session_id, 4), is_by_id=False).error == 70


def test_errors_are_those_of_kafka() -> None:
    sessions = FetchSessions()
    opened = sessions.resolve(body(0, 0, 1), is_by_id=False).session_id
    assert sessions.resolve(body(opened + 1, 1), is_by_id=False).error == 70
    assert sessions.resolve(body(opened, 2), is_by_id=False).error == 71
    assert sessions.resolve(body(opened, 1), is_by_id=True).error == 106


def test_a_request_without_a_session_leaves_none() -> None:
    sessions = FetchSessions()
    opened = sessions.resolve(body(0, 0, 1), is_by_id=False).session_id
    final = sessions.resolve(body(opened, -1, 1), is_by_id=False)
    assert (final.session_id, final.is_incremental) == (0, False)
    assert sessions.resolve(body(opened, 1), is_by_id=False).error == 70


def test_where_there_is_no_room_the_client_goes_on_without_a_session() -> None:
    sessions = FetchSessions()
    for _ in range(SLOTS):
        assert sessions.resolve(body(0, 0, 1), is_by_id=False).session_id
    assert sessions.resolve(body(0, 0, 1), is_by_id=False).session_id == 0


def test_an_answer_without_anything_opens_no_session() -> None:
    sessions = FetchSessions()
    opened = sessions.resolve(body(0, 0, 1), is_by_id=False)
    assert sessions.without_answer(opened) == 0
    assert sessions.resolve(body(opened.session_id, 1), is_by_id=False).error == 70
    opened = sessions.resolve(body(0, 0, 1), is_by_id=False)
    incremental = sessions.resolve(body(opened.session_id, 1), is_by_id=False)
    assert sessions.without_answer(incremental) == opened.session_id
    assert places(sessions, opened.session_id, 2) == [1]


def test_an_incremental_answer_has_what_is_new() -> None:
    session = FetchSessions().resolve(body(0, 0, 1), is_by_id=False).session
    assert session is not None
    assert session.has_news(("t", 1), answer())
    assert not session.has_news(("t", 1), answer())
    assert session.has_news(("t", 1), answer(highWatermark=6))
    assert session.has_news(("t", 1), answer(highWatermark=6, errorCode=3))
    assert session.has_news(("t", 1), answer(highWatermark=6, errorCode=3))


def test_a_partition_that_gave_records_comes_last_in_the_next_request() -> None:
    sessions = FetchSessions()
    opened = sessions.resolve(body(0, 0, 1, 2, 3), is_by_id=False)
    for place in opened.partitions:
        assert opened.is_sent(place, answer(records=b"x" if place[1] == 1 else b""))
    assert places(sessions, opened.session_id, 1) == [2, 3, 1]
