"""Lines come as they are there, and the end of the input is not the end of the world."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from laststand.cli.standing.line_input import LineInput


async def test_lines_of_a_pipe_come_in_order_and_without_their_ends() -> None:
    read_fd, write_fd = os.pipe()
    lines = LineInput(read_fd)
    os.write(write_fd, b"one\ntwo\r\nth")
    got = await lines.next_lines()
    while len(got) < 2:
        got += await lines.next_lines()
    os.write(write_fd, b"ree")
    os.close(write_fd)
    while more := await lines.next_lines():
        got += more
    assert got == [b"one", b"two", b"three"]
    assert await lines.next_lines() == []
    os.close(read_fd)


async def test_a_file_with_more_lines_than_are_read_ahead(tmp_path: Path) -> None:
    count = 25_000
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(count)))
    with path.open("rb") as file:
        lines = LineInput(file.fileno())
        got: list[bytes] = []
        while more := await lines.next_lines():
            got += more
    assert got == [b"%d" % number for number in range(count)]


async def test_lines_that_come_within_the_linger_time_are_gathered() -> None:
    read_fd, write_fd = os.pipe()
    lines = LineInput(read_fd)
    os.write(write_fd, b"one\n")
    gathering = asyncio.ensure_future(lines.next_lines(linger_s=60))
    os.write(write_fd, b"two\nthree")
    os.close(write_fd)
    assert await gathering == [b"one", b"two", b"three"]
    assert await lines.next_lines(linger_s=60) == []
    os.close(read_fd)


async def test_a_line_waits_no_longer_than_the_linger_time() -> None:
    read_fd, write_fd = os.pipe()
    lines = LineInput(read_fd)
    os.write(write_fd, b"one\n")
    assert await lines.next_lines(linger_s=0.001) == [b"one"]
    os.write(write_fd, b"two\n")
    assert await lines.next_lines() == [b"two"]
    os.close(write_fd)
    assert await lines.next_lines() == []
    os.close(read_fd)


def test_a_process_ends_in_order_while_its_input_is_open() -> None:
    program = """
import asyncio
from laststand.cli.standing.line_input import LineInput

async def main():
    LineInput()

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        assert process.wait(60) == 0
