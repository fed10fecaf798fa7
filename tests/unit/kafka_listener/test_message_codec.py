"""Messages are read with bounds, in every version, and what is written is read again."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laststand.emulator.kafka_listener.message_codec import Writer, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import all_apis, api_named, parse_fields
from laststand.emulator.storage.fields import FieldError as MalformedMessageError
from laststand.emulator.storage.fields import FieldReader as Reader

METADATA = api_named("Metadata").key
PRODUCE = api_named("Produce").key
EVERY_VERSION = [
    (api.key, version) for api in all_apis().values() for version in range(api.versions.first, api.versions.last + 1)
]
PRODUCED = {
    "acks": -1,
    "timeoutMs": 7,
    "topicData": [{"name": "t", "topicId": "A" * 21 + "Q", "partitionData": [{"index": 3, "records": b"abc"}]}],
}


def written(key: int, version: int, message: dict[str, object]) -> bytes:
    writer = Writer()
    request_codec(key, version).write(message, writer)
    return b"".join(writer.buffers())


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_a_message_of_defaults_is_read_as_it_was_written(key: int, version: int) -> None:
    for codec in (request_codec(key, version), response_codec(key, version)):
        writer = Writer()
        codec.write({}, writer)
        data = b"".join(writer.buffers())
        reader = Reader(data)
        message = codec.read(reader)
        assert reader.position == len(data)
        again = Writer()
        codec.write(message, again)
        assert b"".join(again.buffers()) == data


@pytest.mark.parametrize("version", range(3, 14))
def test_fields_are_those_of_the_version(version: int) -> None:
    message = request_codec(PRODUCE, version).read(Reader(written(PRODUCE, version, PRODUCED)))
    (topic,) = message["topicData"]
    assert topic["partitionData"] == [{"index": 3, "records": b"abc"}]
    assert (topic["name"], topic["topicId"]) == (("t", None) if version < 13 else ("", "A" * 21 + "Q"))


def test_the_bytes_are_kafkas() -> None:
    # Metadata version 9 for topic "t", as a client of Kafka sends it (without its header).
    data = bytes.fromhex("02 02 74 00 00 00 00 00".replace(" ", ""))
    asked = request_codec(METADATA, 9).read(Reader(data))
    assert [topic["name"] for topic in asked["topics"]] == ["t"]
    assert asked["allowAutoTopicCreation"] is False


def test_unknown_tagged_fields_are_skipped() -> None:
    data = bytes.fromhex("0000000000" + "01" + "63" + "02" + "abcd")[1:]
    asked = request_codec(METADATA, 9).read(Reader(b"\x00" + data))
    assert asked["topics"] is None


def test_null_where_nothing_may_be_null_is_refused() -> None:
    assert request_codec(METADATA, 9).read(Reader(bytes.fromhex("0000000000")))["topics"] is None
    with pytest.raises(MalformedMessageError, match="topicData is null"):
        request_codec(PRODUCE, 9).read(Reader(bytes.fromhex("00ffff0000000000" + "00")))


def test_an_element_that_is_null_is_refused() -> None:
    one_null_group = b"\0\0\0\1\xff\xff"
    with pytest.raises(MalformedMessageError, match="an element is null"):
        request_codec(api_named("DescribeGroups").key, 0).read(Reader(one_null_group))


def test_a_count_that_no_message_can_hold_is_refused_before_anything_is_reserved() -> None:
    with pytest.raises(MalformedMessageError, match="announced"):
        request_codec(METADATA, 9).read(Reader(bytes.fromhex("ffffffff0f")))


@pytest.mark.parametrize("cut", range(len(written(PRODUCE, 9, PRODUCED))))
def test_a_message_that_ends_too_soon_is_refused(cut: int) -> None:
    with pytest.raises(MalformedMessageError):
        request_codec(PRODUCE, 9).read(Reader(written(PRODUCE, 9, PRODUCED)[:cut]))


@given(data=st.binary(max_size=200), place=st.sampled_from(EVERY_VERSION))
def test_any_bytes_are_a_message_or_malformed(data: bytes, place: tuple[int, int]) -> None:
    with contextlib.suppress(MalformedMessageError):
        request_codec(*place).read(Reader(data))


def test_a_definition_in_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no field"):
        parse_fields("a:int8, -")
