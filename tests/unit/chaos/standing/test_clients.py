"""A dead client's history is completed: what nobody knows the outcome of becomes ``info``, and nothing else changes."""

from pathlib import Path

import msgspec
import pytest

from laststand.chaos.standing.clients import ClientRegister, complete_histories
from laststand.emulator.client.history import complete_history, read_history
from laststand.emulator.core.history import HistorySealed, OperationType, SendOperation
from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.core.packed.writing import LinePacker
from laststand.emulator.core.types import CauseId
from laststand.emulator.storage.file_digest import content_of

INVOKE, OK, INFO = OperationType.INVOKE, OperationType.OK, OperationType.INFO


def send(index: int, kind: OperationType, first_record_id: int) -> SendOperation:
    return SendOperation(
        index=index,
        time_ns=index,
        type=kind,
        process="client-0",
        operation_id=CauseId(f"client-0:{first_record_id}"),
        topic="orders",
        topic_id=None,
        partition=0,
        acks=-1,
        first_record_id=first_record_id,
        record_count=5,
        base_offset=None,
        attempts=(),
        error=None,
    )


def written(path: Path, *operations: SendOperation, torn: bytes = b"") -> Path:
    if path.suffix == SUFFIX:
        packer = LinePacker({})
        for each in operations:
            packer.add(each, number=each.index, time_ns=each.time_ns, text=lambda: b"")
        path.write_bytes(packer.pop() + torn)
    else:
        path.write_bytes(msgspec.json.Encoder().encode_lines(operations) + torn)
    return path


@pytest.mark.parametrize(
    ("before", "unfinished"),
    [
        ([], []),
        ([(INVOKE, 0), (OK, 0)], []),
        ([(INVOKE, 0)], [0]),
        ([(INVOKE, 0), (INVOKE, 5), (OK, 0), (INVOKE, 10)], [5, 10]),
    ],
)
@pytest.mark.parametrize(
    ("suffix", "torn"), [(".jsonl", b""), (".jsonl", b'{"index":9,"ty'), (SUFFIX, b""), (SUFFIX, bytes([8] * 40))]
)
def test_what_has_no_outcome_gets_one(
    before: list[tuple[OperationType, int]], unfinished: list[int], suffix: str, torn: bytes, tmp_path: Path
) -> None:
    operations = [send(index, kind, record) for index, (kind, record) in enumerate(before)]
    path = written(tmp_path / f"client-0{suffix}", *operations, torn=torn)
    assert complete_history(path) == len(unfinished)
    *after, seal = read_history(path)
    assert isinstance(seal, HistorySealed)
    assert (seal.lines, seal.digest) == content_of(path)
    assert after[: len(operations)] == operations
    assert [operation.index for operation in after] == list(range(len(after)))
    endings = [operation for operation in after[len(operations) :] if isinstance(operation, SendOperation)]
    assert [(each.type, each.first_record_id, each.error) for each in endings] == [
        (INFO, record, "CLIENT_GONE") for record in unfinished
    ]
    assert complete_history(path) == 0


def test_names_are_given_once_and_a_client_without_a_line_is_no_error(tmp_path: Path) -> None:
    clients = ClientRegister(tmp_path)
    assert [clients.open("produce"), clients.open("consume")] == ["client-0", "client-1"]
    assert clients.connected == ("client-0 (produce)", "client-1 (consume)")
    clients.close("client-0")
    assert clients.bury("client-1") == 0
    assert content_of(clients.history_path("client-1")).lines == 0
    assert not clients.connected
    assert clients.open("produce") == "client-2"


def test_what_a_broker_writes_of_clients_of_kafka_is_left_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    written(folder / f"client-0{SUFFIX}", send(0, INVOKE, 0))
    of_broker = written(folder / f"kafka-0-0{SUFFIX}", send(0, INVOKE, 0))
    before = of_broker.read_bytes()
    assert complete_histories(tmp_path) == 1
    assert of_broker.read_bytes() == before
