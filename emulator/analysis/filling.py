"""Fills the tables from one run, which is read once: rows of all tables.

Rows are JSON objects, some thousands of them in a compressed block, so that one table can be read without decompressing
the others. A run whose rows are kept (``kept_tables``) is not decoded.
"""

import gc
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.analysis.catalogue import EVENT_TABLES, FILLED
from laststand.emulator.analysis.event_rows import encode_event, events_of
from laststand.emulator.analysis.kept_tables import evidence_key, store_rows, stored_rows
from laststand.emulator.analysis.run_source import BrokenRunError, RunSource, read_source
from laststand.emulator.analysis.schema import Nanoseconds
from laststand.emulator.analysis.tables import Identity, Moment
from laststand.emulator.verification.reading.run_plan import RunPlan

ROWS_PER_BLOCK: Final = 5_000
BROKEN: Final = ""
"""In place of a table's name: the block says why a run filled no tables."""

_COMPRESSION_LEVEL: Final = 1
_ENCODER: Final = msgspec.json.Encoder()


class Block(NamedTuple):
    """Some rows of one table.

    Attributes:
        number: of the run among those that are read together.
        content: JSON objects, a line each, compressed.
    """

    table: str
    number: int
    content: bytes

    def text(self) -> bytes:
        """Returns the rows, one a line, without a line end after the last row."""
        return zlib.decompress(self.content)

    def lines(self) -> list[str]:
        """Returns the rows."""
        return self.text().decode().split("\n")


def fill_from(plans: Sequence[RunPlan], program: bytes | None) -> Iterator[Block]:
    """Yields the rows of some runs, and for each run that cannot be read the reason.

    Args:
        plans: which files of each run are to be read.
        program: digest of the code, part of the key of kept rows; ``None`` to keep no rows.
    """
    for plan in plans:
        # The facts of a run have no cycles worth looking for, and looking takes a third of the time.
        gc.disable()
        try:
            # All or nothing: a run that breaks half way leaves no rows.
            yield from list(_blocks(plan)) if program is None else _blocks_by_key(plan, program)
        except BrokenRunError as error:
            yield _block(BROKEN, plan, [str(error).encode()])
        except Exception as error:
            yield _block(BROKEN, plan, [f"reading it failed: {type(error).__name__}: {error}".encode()])
        finally:
            gc.enable()


def _blocks_by_key(plan: RunPlan, program: bytes) -> list[Block]:
    key = evidence_key(plan, program)
    kept = stored_rows(plan.run.path, key)
    if kept is not None:
        return [Block(table=table, number=plan.number, content=content) for table, content in kept]
    blocks = list(_blocks(plan))
    if evidence_key(plan, program) == key:  # nobody altered the evidence meanwhile
        store_rows(plan.run.path, key, [(block.table, block.content) for block in blocks])
    return blocks


def _blocks(plan: RunPlan) -> Iterator[Block]:
    source = read_source(plan)
    for name in FILLED:
        yield from _packed(name, plan, _rows(name, source))
    for name in EVENT_TABLES:
        yield from _packed(name, plan, _events(name, source))


def _rows(name: str, source: RunSource) -> Iterator[bytes]:
    _, fill = FILLED[name]
    head = _identity(source)
    for time_ns, row in fill(source):
        yield _line(head, _moment(source, time_ns), _ENCODER.encode(row))


def _events(name: str, source: RunSource) -> Iterator[bytes]:
    head = _identity(source)
    for collected in events_of(source, EVENT_TABLES[name]):
        yield _line(head, _moment(source, collected.time_ns), encode_event(collected))


def _identity(source: RunSource) -> bytes:
    run = source.run
    return _ENCODER.encode(
        Identity(run=str(run.path), scenario=run.scenario, era=run.era, changed=", ".join(run.changed), seed=run.seed)
    )


def _moment(source: RunSource, time_ns: int) -> Moment:
    return Moment(time_ns=Nanoseconds(time_ns), time_s=source.clock.seconds(time_ns))


def _line(head: bytes, moment: Moment, row: bytes) -> bytes:
    return head[:-1] + b"," + _ENCODER.encode(moment)[1:-1] + b"," + row[1:]


def _packed(name: str, plan: RunPlan, lines: Iterable[bytes]) -> Iterator[Block]:
    left = iter(lines)
    while batch := tuple(itertools.islice(left, ROWS_PER_BLOCK)):
        yield _block(name, plan, batch)


def _block(name: str, plan: RunPlan, lines: Sequence[bytes]) -> Block:
    return Block(table=name, number=plan.number, content=zlib.compress(b"\n".join(lines), _COMPRESSION_LEVEL))
