"""The sending end of a stream, with a call that the test plays: what a broken answer and a broken call set off."""

import asyncio
from typing import cast

import grpc.aio

from laststand.emulator.core import messages
from laststand.emulator.core.types import CauseId, CorrelationId, RequestFailure
from laststand.emulator.rpc.channel import StreamCall
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.data_codec import Payload, Streamed
from laststand.emulator.rpc.request_stream import AnswerPolicy, RequestStream


class Call:
    """A call whose answers the test puts in."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.frames: asyncio.Queue[object] = asyncio.Queue()
        self.is_cancelled = False

    async def write(self, frame: bytes) -> None:
        self.written.append(frame)

    async def read(self) -> object:
        return await self.frames.get()

    def cancel(self) -> None:
        self.is_cancelled = True


def decode(frame: bytes) -> list[Streamed[messages.FetchResponse]]:
    if frame == b"broken":
        raise CodecError(message="FetchResponse", reason="no whole batch")
    answer = messages.FetchResponse(partitions=())
    return [Streamed(correlation_id=CorrelationId(int(frame)), cause_id=CauseId("unit"), message=answer)]


class Ends:
    """A stream, its calls, and what it told."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.calls: list[Call] = []
        self.answered: list[int] = []
        self.failed: list[tuple[int, RequestFailure]] = []
        self.has_failed = asyncio.Event()
        self.stream: RequestStream[messages.FetchResponse] = RequestStream(
            tasks=tasks,
            open_call=self.open_call,
            decode=decode,
            on_answer=lambda answer: self.answered.append(answer.correlation_id),
            on_failure=self.fail,
        )

    def fail(self, correlation_id: CorrelationId, _cause_id: CauseId, failure: RequestFailure) -> None:
        self.failed.append((correlation_id, failure))
        self.has_failed.set()

    def open_call(self) -> StreamCall:
        self.calls.append(Call())
        return cast(StreamCall, self.calls[-1])

    async def send(self, correlation_id: int, *, timeout_ms: int = 60_000) -> None:
        self.stream.send(
            correlation_id=CorrelationId(correlation_id),
            cause_id=CauseId("unit"),
            payload=Payload((b"request",), 7),
            timeout_ms=timeout_ms,
            answer=AnswerPolicy.ANSWERED,
        )
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_an_answer_that_cannot_be_read_fails_what_waits_and_opens_a_new_call() -> None:
    async with asyncio.TaskGroup() as tasks:
        ends = Ends(tasks)
        await ends.send(1)
        ends.calls[0].frames.put_nowait(b"broken")
        await ends.settle()
        assert ends.failed == [(1, RequestFailure.DISCONNECTED)]
        assert ends.calls[0].is_cancelled
        await ends.send(2)
        ends.calls[1].frames.put_nowait(b"2")
        await ends.settle()
        assert ends.answered == [2]
        ends.stream.close()


async def test_the_end_of_a_call_fails_what_waits_once() -> None:
    async with asyncio.TaskGroup() as tasks:
        ends = Ends(tasks)
        await ends.send(1)
        await ends.send(2)
        ends.calls[0].frames.put_nowait(b"1")
        ends.calls[0].frames.put_nowait(grpc.aio.EOF)  # type: ignore[attr-defined]  # stubs lack it
        await ends.settle()
        assert ends.answered == [1]
        assert ends.failed == [(2, RequestFailure.DISCONNECTED)]


async def test_an_answer_after_the_deadline_is_dropped() -> None:
    async with asyncio.TaskGroup() as tasks:
        ends = Ends(tasks)
        await ends.send(1, timeout_ms=0)
        await ends.has_failed.wait()
        ends.calls[0].frames.put_nowait(b"1")
        await ends.settle()
        assert ends.failed == [(1, RequestFailure.TIMED_OUT)]
        assert ends.answered == []
        ends.stream.close()
