"""Lines come as they are there, and the end of the input is not the end of the world."""

import io
import os

from emulator.cli.line_input import LineInput


async def test_lines_of_a_pipe_come_in_order_and_without_their_ends() -> None:
    read_fd, write_fd = os.pipe()
    with os.fdopen(read_fd, "rb") as stream:
        lines = LineInput(stream)
        os.write(write_fd, b"one\ntwo\r\n")
        got = await lines.next_lines()
        while len(got) < 2:
            got += await lines.next_lines()
        os.write(write_fd, b"three")
        os.close(write_fd)
        while more := await lines.next_lines():
            got += more
        assert got == [b"one", b"two", b"three"]
        assert await lines.next_lines() == []


async def test_more_lines_than_are_read_ahead() -> None:
    count = 25_000
    lines = LineInput(io.BytesIO(b"".join(b"%d\n" % number for number in range(count))))
    got: list[bytes] = []
    while more := await lines.next_lines():
        got += more
    assert got == [b"%d" % number for number in range(count)]
