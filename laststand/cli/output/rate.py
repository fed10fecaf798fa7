"""Shows the progress of a transfer as one line on stderr that is overwritten; only on a terminal."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import click

_INTERVAL_S: Final = 0.5
_MEGABYTE: Final = 1_000_000
_CLEAR_LINE: Final = "\r\x1b[K"


def rate_line(what: str, records: int, transferred: int, seconds: float) -> str:
    """Returns a text with the number of records, and the mean rates since the start; ``transferred`` is in bytes."""
    seconds = max(seconds, 1e-3)
    return (
        f"{records} records {what}, {transferred / _MEGABYTE:.1f} MB; "
        f"{records / seconds:.0f} records/s, {transferred / _MEGABYTE / seconds:.1f} MB/s"
    )


@asynccontextmanager
async def showing_rate(what: str, progress: Callable[[], tuple[int, int]]) -> AsyncIterator[None]:
    """Shows the numbers of records and bytes while the block runs, if stderr is a terminal.

    Args:
        what: what happened to the records, in one word, such as ``read``.
        progress: returns records and bytes so far.
    """
    if not sys.stderr.isatty():
        yield
        return
    showing = asyncio.ensure_future(_show(what, progress))
    try:
        yield
    finally:
        showing.cancel()
        click.echo(_CLEAR_LINE, nl=False, err=True)


async def _show(what: str, progress: Callable[[], tuple[int, int]]) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(_INTERVAL_S)
        records, transferred = progress()
        text = rate_line(what, records, transferred, time.monotonic() - started)
        click.echo(f"{_CLEAR_LINE}{text}", nl=False, err=True)
