"""The sending end of a bidirectional stream that carries requests one way and their answers the other.

States: *closed* (no call; the next ``send`` opens one) and *open* (a writer and a reader run). When the call ends, for
whatever reason, every unanswered request fails as DISCONNECTED and the stream is closed again: no request is ever sent
twice. Each request has its own deadline, kept here; an answer after that is dropped.

Requests that wait for the writer share a frame, so a busy stream needs fewer, larger writes.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar, cast

import grpc.aio

from laststand.emulator.core import messages
from laststand.emulator.core.types import CauseId, CorrelationId, RequestFailure
from laststand.emulator.rpc.channel import StreamCall
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.data_codec import Payload, Streamed, join_frame

_log: Final = logging.getLogger(__name__)

FRAME_BYTES_MAX: Final = 4 << 20
"""A frame ends with the message that reaches this size; a larger message has a frame of its own."""

OUTSTANDING_MAX: Final = 1024
"""Unanswered requests per stream; one more fails at once."""

ResponseT = TypeVar("ResponseT", messages.ProduceResponse, messages.FetchResponse)

OnFailure: TypeAlias = Callable[[CorrelationId, CauseId, RequestFailure], None]


class AnswerPolicy(Enum):
    """The kind of request: answered, or not."""

    ANSWERED = "answered"
    UNANSWERED = "unanswered"
    """Produce with acks=0: forgotten once written. If the call ends after that, the last one written is reported, so
    that its sender hears of a broker that refuses them: closing the connection is all that it can do."""


class RequestStream(Generic[ResponseT]):
    """Requests to one peer for one API.

    Args:
        tasks: owns the stream's tasks.
        open_call: starts a call; called again after a failure, once there is something to send.
        decode: reads the responses of a frame.
        on_answer: called with each answer that arrives in time.
        on_failure: called once for each request that will not be answered.
    """

    def __init__(
        self,
        *,
        tasks: asyncio.TaskGroup,
        open_call: Callable[[], StreamCall],
        decode: Callable[[bytes], list[Streamed[ResponseT]]],
        on_answer: Callable[[Streamed[ResponseT]], None],
        on_failure: OnFailure,
    ) -> None:
        self._tasks = tasks
        self._open_call = open_call
        self._decode: Callable[[bytes], list[Streamed[ResponseT]]] = decode
        self._on_answer: Callable[[Streamed[ResponseT]], None] = on_answer
        self._on_failure = on_failure
        self._outstanding: dict[CorrelationId, tuple[asyncio.TimerHandle, CauseId]] = {}
        self._last_forgotten: tuple[CorrelationId, CauseId] | None = None
        self._waiting: deque[tuple[CorrelationId, Payload, AnswerPolicy]] = deque()
        self._wakeup = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def send(
        self,
        *,
        correlation_id: CorrelationId,
        cause_id: CauseId,
        payload: Payload,
        timeout_ms: int,
        answer: AnswerPolicy,
    ) -> None:
        """Queues a request; its outcome is reported within ``timeout_ms``.

        Args:
            correlation_id: unique among the unanswered requests of this stream.
            cause_id: repeated if the request fails.
            payload: the encoded request, which carries the same correlation id.
            timeout_ms: from now until TIMED_OUT.
            answer: whether to expect one.
        """
        loop = asyncio.get_running_loop()
        if len(self._outstanding) >= OUTSTANDING_MAX:
            loop.call_soon(self._on_failure, correlation_id, cause_id, RequestFailure.DISCONNECTED)
            return
        timer = loop.call_later(timeout_ms / 1000, self._expire, correlation_id)
        self._outstanding[correlation_id] = (timer, cause_id)
        self._waiting.append((correlation_id, payload, answer))
        self._wakeup.set()
        if self._task is None:
            self._task = self._tasks.create_task(self._run())

    def close(self) -> None:
        """Ends the stream; unanswered requests fail as DISCONNECTED."""
        if self._task is not None:
            self._task.cancel()

    def _expire(self, correlation_id: CorrelationId) -> None:
        _, cause_id = self._outstanding.pop(correlation_id)
        self._on_failure(correlation_id, cause_id, RequestFailure.TIMED_OUT)

    async def _run(self) -> None:
        call = self._open_call()
        writer = self._tasks.create_task(self._write(call))
        try:
            while (frame := await call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # stubs lack it
                for response in self._decode(cast(bytes, frame)):
                    entry = self._outstanding.pop(response.correlation_id, None)
                    if entry is not None:
                        entry[0].cancel()
                        self._on_answer(response)
        except grpc.aio.AioRpcError:
            pass  # The reason does not matter: no answer will come on this call any more.
        except CodecError as error:
            _log.warning("stream closed reason=%s", error)
        finally:
            writer.cancel()
            call.cancel()
            self._task = None
            self._fail_all()

    async def _write(self, call: StreamCall) -> None:
        try:
            while True:
                await self._wakeup.wait()
                self._wakeup.clear()
                while payloads := self._next_payloads():
                    await call.write(join_frame(payloads))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            call.cancel()  # ends the reader, which reports the failure

    def _next_payloads(self) -> list[Payload]:
        payloads: list[Payload] = []
        size = 0
        while self._waiting and size < FRAME_BYTES_MAX:
            if payloads and size + self._waiting[0][1].size > FRAME_BYTES_MAX:
                break
            correlation_id, payload, answer = self._waiting.popleft()
            if correlation_id not in self._outstanding:
                continue  # timed out before it could be sent
            if answer is AnswerPolicy.UNANSWERED:
                timer, cause_id = self._outstanding.pop(correlation_id)
                timer.cancel()
                self._last_forgotten = correlation_id, cause_id
            payloads.append(payload)
            size += payload.size
        return payloads

    def _fail_all(self) -> None:
        failed, self._outstanding = self._outstanding, {}
        self._waiting.clear()
        forgotten, self._last_forgotten = self._last_forgotten, None
        if forgotten is not None:
            self._on_failure(*forgotten, RequestFailure.DISCONNECTED)
        for correlation_id, (timer, cause_id) in failed.items():
            timer.cancel()
            self._on_failure(correlation_id, cause_id, RequestFailure.DISCONNECTED)
