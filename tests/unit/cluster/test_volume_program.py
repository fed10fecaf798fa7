"""The program in the helper container, fed by hand: what it shows, what it does, and whom it turns away."""

import io
import os
import threading
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from laststand.emulator.cluster.containers import volume_messages
from laststand.emulator.cluster.containers.labels import HarnessLock
from laststand.emulator.cluster.containers.volume_program import VolumeProgram
from laststand.emulator.cluster.layout import data_directory, ledger_directory
from laststand.emulator.cluster.node_files import (
    ArmDisk,
    DiskChange,
    EmptyDisk,
    FlipBit,
    ListLogs,
    LosePower,
    PowerTaken,
)
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.types import NodeId, TopicPartition
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.os_filesystem import OsFileSystem

ResultT = TypeVar("ResultT")

NODE = NodeId(1)
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "events").mkdir()
    return tmp_path


def answers(run: Path, *orders: volume_messages.Order) -> list[volume_messages.Answer]:
    told = io.BytesIO()
    VolumeProgram(run, io.BufferedReader(io.BytesIO(b"".join(map(volume_messages.encode, orders)))), told).obey()
    return [volume_messages.ANSWERS.decode(message) for message in volume_messages.Splitter().messages(told.getvalue())]


def test_messages_are_split_whatever_pieces_they_come_in() -> None:
    stream = volume_messages.encode(volume_messages.CatchUp(number=1)) + volume_messages.encode(
        volume_messages.CatchUp(number=2)
    )
    splitter = volume_messages.Splitter()
    found = [message for byte in stream for message in splitter.messages(bytes([byte]))]
    assert found == list(volume_messages.Splitter().messages(stream))
    assert len(found) == 2


def test_events_are_shown_from_where_the_harness_has_them(run: Path) -> None:
    (run / "events/1-0.packed").write_bytes(b"abcdef")
    (run / "events/harness-0.jsonl").write_bytes(b"not of a node")
    begun = answers(run, volume_messages.Begin(sizes={"1-0.packed": 4}), volume_messages.CatchUp(number=7))
    assert begun == [
        volume_messages.Written(path="events/1-0.packed", offset=4, content=b"ef"),
        volume_messages.Begun(),
        volume_messages.Done(number=7, result=msgspec.Raw(msgspec.msgpack.encode(None))),
    ]
    assert (run / "events" / volume_messages.ATTACHED_MARK).exists()
    assert not (run / "events/.harness.lock").exists(), "whoever comes next finds it free"


def test_answers_to_clients_of_kafka_are_shown_like_events(run: Path) -> None:
    (run / "history").mkdir()
    (run / "history/kafka-1-0.packed").write_bytes(b"abcdef")
    (run / "history/client-0.packed").write_bytes(b"not of a node")
    assert answers(run, volume_messages.Begin(sizes={"kafka-1-0.packed": 4}))[0] == volume_messages.Written(
        path="history/kafka-1-0.packed", offset=4, content=b"ef"
    )


def test_the_transaction_log_of_a_zookeeper_server_is_shown_like_events(run: Path) -> None:
    log = data_directory(run, CONTROLLER) / "version-2/log.1"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"ZKLG")
    (log.parent / "snapshot.0").write_bytes(b"of no use")
    assert answers(run, volume_messages.Begin(sizes={}))[0] == volume_messages.Written(
        path="nodes/100/data/version-2/log.1", offset=0, content=b"ZKLG"
    )


def test_volumes_of_another_harness_are_left_alone(run: Path) -> None:
    lock = HarnessLock(run / "events")
    try:
        assert answers(
            run, volume_messages.Begin(sizes={}), volume_messages.DoWork(number=1, work=EmptyDisk(node_id=NODE))
        ) == [volume_messages.Taken()]
    finally:
        lock.release()
    assert not (run / "events" / volume_messages.ATTACHED_MARK).exists()


def test_logs_are_copied_the_empty_ones_too(run: Path) -> None:
    log = data_directory(run, NODE) / "orders-0"
    log.mkdir(parents=True)
    (log / "0.log").write_bytes(b"batches")
    (log / "1.log").touch()
    copied = [
        each
        for each in answers(run, volume_messages.Begin(sizes={}), volume_messages.CopyLogs(number=1, node_id=NODE))
        if type(each) is volume_messages.Written
    ]
    assert [(each.path, each.content) for each in copied] == [
        ("nodes/1/data/orders-0/0.log", b"batches"),
        ("nodes/1/data/orders-0/1.log", b""),
    ]


def test_a_power_loss_takes_what_was_not_synced(run: Path) -> None:
    data, ledger = data_directory(run, NODE), ledger_directory(run, NODE)
    data.mkdir(parents=True)
    files = OsFileSystem(ledger_folder=str(ledger))
    files.sync_directory(str(data))
    file = files.open(str(data / "some"), OpenMode.APPEND)
    files.sync_directory(str(data))
    file.append((b"synced",))
    file.sync()
    file.append((b" and not synced",))
    file.close()
    files.close()
    work = LosePower(node_id=NODE, keep=Keep.NONE, seed=1, exact=None, partitions=(ORDERS,))
    taken = result_of(
        answers(run, volume_messages.Begin(sizes={}), volume_messages.DoWork(number=1, work=work)), PowerTaken
    )
    assert taken.report.has_losses
    assert (data / "some").read_bytes() == b"synced"


def test_every_other_work_has_its_answer(run: Path) -> None:
    (data_directory(run, NODE) / "orders-0").mkdir(parents=True)
    listed = answers(
        run, volume_messages.Begin(sizes={}), volume_messages.DoWork(number=1, work=ListLogs(node_id=NODE))
    )
    assert result_of(listed, frozenset[str]) == {"orders-0"}
    armed = volume_messages.DoWork(number=1, work=ArmDisk(node_id=NODE, change=DiskChange(sync_delay_ms=5)))
    assert result_of(answers(run, volume_messages.Begin(sizes={}), armed), bool)
    assert not result_of(answers(run, volume_messages.Begin(sizes={}), armed), bool), "it is so already"
    flip = volume_messages.DoWork(number=1, work=FlipBit(node_id=NODE, partition=ORDERS))
    assert result_of(answers(run, volume_messages.Begin(sizes={}), flip), type(None)) is None
    assert result_of(
        answers(run, volume_messages.Begin(sizes={}), volume_messages.DoWork(number=1, work=EmptyDisk(node_id=NODE))),
        bool,
    )


def test_what_cannot_be_done_is_said(run: Path) -> None:
    work = LosePower(node_id=NODE, keep=Keep.NONE, seed=1, exact=None, partitions=())
    [_, failed] = answers(run, volume_messages.Begin(sizes={}), volume_messages.DoWork(number=3, work=work))
    assert isinstance(failed, volume_messages.Failed)
    assert failed.number == 3
    assert "No such file" in failed.reason


def test_new_events_are_shown_without_being_asked_for(run: Path) -> None:
    (orders_end, asking), (telling_end, told) = os.pipe(), os.pipe()
    with (
        os.fdopen(orders_end, "rb") as orders,
        os.fdopen(asking, "wb") as harness,
        os.fdopen(telling_end, "rb") as shown,
        os.fdopen(told, "wb") as telling,
    ):
        program = threading.Thread(target=VolumeProgram(run, orders, telling).obey)
        program.start()
        harness.write(volume_messages.encode(volume_messages.Begin(sizes={})))
        harness.flush()
        begun = volume_messages.encode(volume_messages.Begun())
        assert shown.read(len(begun)) == begun
        (run / "events/1-0.jsonl").write_bytes(b"{}")
        written = volume_messages.encode(volume_messages.Written(path="events/1-0.jsonl", offset=0, content=b"{}"))
        empty = volume_messages.encode(volume_messages.Written(path="events/1-0.jsonl", offset=0, content=b""))
        found = shown.read(len(empty))
        found += shown.read(len(written) if found == empty else len(written) - len(empty))
        assert found in (written, empty + written)
        harness.close()
        program.join(20)


def result_of(told: list[volume_messages.Answer], kind: type[ResultT]) -> ResultT:
    [done] = [each for each in told if isinstance(each, volume_messages.Done)]
    return msgspec.msgpack.decode(done.result, type=kind)
