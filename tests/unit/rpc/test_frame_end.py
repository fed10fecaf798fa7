"""Frames arrive whole and in order, however their bytes come."""

import asyncio
from collections.abc import Sequence

import pytest

from laststand.emulator.rpc.frame_end import FrameEnd
from laststand.emulator.rpc.limits import MESSAGE_BYTES_MAX

FRAMES = [b"\0\0\0\0", b"\0\0\0\1a", b"\0\0\0\5bcdef", b"\0\2\0\0" + bytes(1 << 17), b"\0\0\0\2gh"]


class Connection(asyncio.Transport):
    """A transport without a socket; ``receive`` is what its peer sends."""

    def __init__(self, end: FrameEnd) -> None:
        super().__init__()
        self.is_reading_paused = False
        self.written: list[bytes] = []
        self._end = end
        end.connection_made(self)

    def receive(self, content: bytes) -> None:
        while content:
            buffer = self._end.get_buffer(-1)
            size = min(len(buffer), len(content))
            buffer[:size], content = content[:size], content[size:]
            self._end.buffer_updated(size)

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return False


def connected(frames: list[bytes]) -> tuple[FrameEnd, Connection]:
    """Returns an end that notes its frames, and its connection."""
    end = FrameEnd(on_frame=lambda frame: frames.append(bytes(frame)), on_lost=lambda: None)
    return end, Connection(end)


@pytest.mark.parametrize("sizes", [[1], [3], [4, 1, 5], [1 << 16], [1 << 20]])
def test_frames_are_whole(sizes: Sequence[int]) -> None:
    frames: list[bytes] = []
    end, connection = connected(frames)
    end.release()
    content = b"".join(FRAMES)
    turn = 0
    while content:
        size = sizes[turn % len(sizes)] if len(content) < 100 or turn < 40 else 1 << 14
        connection.receive(content[:size])
        content = content[size:]
        turn += 1
    assert frames == FRAMES


def test_a_held_end_hands_nothing_on_and_does_not_read() -> None:
    frames: list[bytes] = []
    end, connection = connected(frames)
    assert connection.is_reading_paused
    connection.receive(FRAMES[1])
    end.hold()
    end.release()
    assert (frames, connection.is_reading_paused) == ([], True)
    end.release()
    assert (frames, connection.is_reading_paused) == ([FRAMES[1]], False)


def test_an_end_that_is_held_by_a_frame_keeps_those_that_came_with_it() -> None:
    frames: list[bytes] = []

    def hold(frame: bytes | bytearray) -> None:
        frames.append(bytes(frame))
        end.hold()

    end = FrameEnd(on_frame=hold, on_lost=lambda: None)
    connection = Connection(end)
    end.release()
    connection.receive(FRAMES[1] + FRAMES[2])
    assert frames == FRAMES[1:2]
    end.release()
    assert frames == FRAMES[1:3]


def test_a_peer_that_does_not_read_holds_the_other_end() -> None:
    end, _ = connected([])
    other, connection = connected([])
    end.other = other
    other.release()
    end.pause_writing()
    assert connection.is_reading_paused
    end.resume_writing()
    assert not connection.is_reading_paused


def test_a_frame_that_no_message_can_be_is_refused() -> None:
    end, connection = connected([])
    end.release()
    with pytest.raises(ConnectionAbortedError, match="bytes"):
        connection.receive((MESSAGE_BYTES_MAX + 1).to_bytes(4, "big"))
