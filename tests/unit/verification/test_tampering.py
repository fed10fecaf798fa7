"""Evidence that was altered never stays valid: its seals tell, and where they were renewed, another account does."""

import json
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
import yaml

from laststand.emulator.core import events as e
from laststand.emulator.core import records
from laststand.emulator.core.types import BrokerEpoch, BrokerId, MetadataOffset, NodeId, ProducerId
from laststand.emulator.node.metadata_journal import MetadataJournal
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.slices.reading import UnfitError
from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.memory_filesystem import MemoryFileSystem
from tests.verification.packing import pack_run
from tests.verification.resealing import Line, reseal
from tests.verification.run_builder import CONTROLLER, ON, RunBuilder
from tests.verification.test_slices import sliced

Tamper = Callable[[Path], None]
LOG = f"data/orders-0/{0:020}.log"
HARNESS_FILE = "events/harness.jsonl"
METADATA = f"nodes/{CONTROLLER}/data/__cluster_metadata-0/{0:020}.log"


def keep_metadata_log(run: Path) -> None:
    """The controller's log on disk, as a controller writes it: its events beside records."""
    events: dict[int, list[e.Event]] = {}
    for line in (run / f"events/{CONTROLLER}-0.jsonl").read_bytes().splitlines():
        event = msgspec.json.decode(line, type=e.AnyEvent)
        offset = getattr(event, "metadata_offset", None)
        if offset is not None:
            events.setdefault(offset, []).append(event)
    data = run / f"nodes/{CONTROLLER}/data"
    (data / "__cluster_metadata-0").mkdir(parents=True)
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    journal = MetadataJournal(filesystem, "/data")
    record = records.ProducerIdsRecord(
        broker_id=BrokerId(NodeId(0)), broker_epoch=BrokerEpoch(0), next_producer_id=ProducerId(0)
    )
    for offset in sorted(events):
        batch = records.MetadataBatch(base_offset=MetadataOffset(offset), records=(record,))
        journal.append(batch, msgspec.convert(tuple(events[offset]), tuple[e.ControllerEvent, ...]))
    journal.sync()
    journal.close()
    log = filesystem.open("/data/__cluster_metadata-0/" + METADATA.rpartition("/")[2], OpenMode.READ)
    (run / METADATA).write_bytes(log.read(position=0, length=log.size))


def honest(path: Path) -> Path:
    """Broker 2 is killed, fenced and comes back; what is cut, paused and isolated is mended; the cluster settles."""
    run = RunBuilder(path, driver="process", ending="restore")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    for _ in range(3):
        run.poll([run.send()])
    run.end(2, e.IncarnationEnd.KILLED)
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.poll([run.send()])
    run.restart(2)
    run.unfence(2)
    run.append(2, run.logs[0, "orders", 0][-1])
    run.expand((0, 1, 2))
    run.fault("isolate", "1")
    run.heal("all", "all")
    run.fault("pause", "0")
    run.heal("pause", "0")
    run.fault("cut", "0->1")
    run.heal("cut", "0->1")
    run.settle()
    directory = run.finish()
    (directory / "cluster.yaml").write_text(
        yaml.safe_dump({"era": "kip-966", "driver": "process", "switches": dict(ON)})
    )
    keep_metadata_log(directory)
    return directory


def lines_of(run: Path, name: str) -> list[Line]:
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def altered(name: str, change: Callable[[list[Line]], list[Line]]) -> Tamper:
    def tamper(run: Path) -> None:
        lines = change(lines_of(run, name))
        (run / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    return tamper


def without(name: str, kind: str) -> Tamper:
    """The last event of a kind is gone, and those after it are numbered as if it had never been."""

    def change(lines: list[Line]) -> list[Line]:
        victim = max(index for index, line in enumerate(lines) if line["type"] == kind)
        return [line | {"sequence": n} for n, line in enumerate([*lines[:victim], *lines[victim + 1 :]])]

    return altered(name, change)


def with_fields(name: str, *, kind: str, **fields: object) -> Tamper:
    key = "f" if name == "history.jsonl" else "type"
    return altered(name, lambda lines: [line | fields if line[key] == kind else line for line in lines])


def with_event(name: str, **fields: object) -> Tamper:
    """An event is added where the file's last one is."""

    def change(lines: list[Line]) -> list[Line]:
        end = next(index for index, line in enumerate(lines) if line["type"] in ("NodeStopped", "RunEnded"))
        envelope = {key: lines[0][key] for key in ("run", "node", "incarnation", "time_ns", "cause_id")}
        found = [*lines[:end], envelope | fields, *lines[end:]]
        return [line | {"sequence": n} for n, line in enumerate(found)]

    return altered(name, change)


def cut_tail(run: Path) -> None:
    path = run / "events/2-0.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-4]))


def rename(run: Path) -> None:
    (run / "events/2-0.jsonl").rename(run / "events/2-7.jsonl")


def empty_switches(run: Path) -> None:
    for node in (0, 1, 2, CONTROLLER):
        with_fields(f"events/{node}-0.jsonl", kind="NodeStarted", switches={})(run)
    with_fields("events/2-1.jsonl", kind="NodeStarted", switches={})(run)


def other_switches(run: Path) -> None:
    for name in ("0-0", "1-0", "2-0", "2-1", f"{CONTROLLER}-0"):
        with_fields(f"events/{name}.jsonl", kind="NodeStarted", switches=ON | {"elr": "off"})(run)


def reorder_records(run: Path) -> None:
    for node in (0, 1, 2):
        path = run / f"nodes/{node}" / LOG
        content = path.read_bytes()
        size = len(content) // 4
        path.write_bytes(content[size : 2 * size] + content[:size] + content[2 * size :])


def swap_offsets(run: Path) -> None:
    for node in (0, 1, 2):
        path = run / f"nodes/{node}" / LOG
        content = bytearray(path.read_bytes())
        size = len(content) // 4
        content[:8], content[size : size + 8] = struct.pack(">q", 10), struct.pack(">q", 0)
        path.write_bytes(content)


def raise_log_start(run: Path) -> None:
    for node in (0, 1, 2):
        (run / f"nodes/{node}/data/log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")


def acknowledge_twice(lines: list[Line]) -> list[Line]:
    answered = next(line for line in lines if line["type"] == "ok" and line["f"] == "send")
    return [*lines[:-1], answered | {"index": len(lines) - 1}, lines[-1] | {"index": len(lines)}]


CONTROLLERS = f"events/{CONTROLLER}-0.jsonl"
STARTED = {"type": "LogStartOffsetRaised", "topic": "orders", "partition": 0, "topic_id": "orders-id"}
DELETED = {"type": "TopicDeleted", "topic": "orders", "topic_id": "orders-id"}
BEYOND = 2**70


def numbered_anew(run: Path) -> None:
    """One fencing is gone from the controller's events, and all that comes after it has another metadata offset."""

    def change(lines: list[Line]) -> list[Line]:
        gone = next(line for line in lines if line["type"] == "BrokerFenced")
        at = msgspec.convert(gone["metadata_offset"], int)
        kept = [line for line in lines if line is not gone]
        found = [line | moved(line, at) for line in kept]
        return [line | {"sequence": n} for n, line in enumerate(found)]

    def moved(line: Line, at: int) -> Line:
        offset = line.get("metadata_offset")
        return {"metadata_offset": offset - 1} if isinstance(offset, int) and offset > at else {}

    altered(CONTROLLERS, change)(run)


def end_of_the_log(run: Path) -> None:
    path = run / METADATA
    path.write_bytes(path.read_bytes()[:-20])


def records_of_the_log(run: Path) -> None:
    """The log ends before its last batch."""
    path = run / METADATA
    content, ends = path.read_bytes(), [0]
    while ends[-1] < len(content):
        ends.append(ends[-1] + 12 + int.from_bytes(content[ends[-1] + 8 : ends[-1] + 12], "big"))
    path.write_bytes(content[: ends[-2]])


def rule_of_the_plan(run: Path) -> None:
    path = run / "cluster.yaml"
    path.write_text(path.read_text().replace("elr: 'on'", "elr: 'off'"))


def rules_of_all_but_the_plan(run: Path) -> None:
    """A rule of which no check is missed."""
    for name in ("0-0", "1-0", "2-0", "2-1", f"{CONTROLLER}-0"):
        with_fields(f"events/{name}.jsonl", kind="NodeStarted", switches=ON | {"session_check": "unfenced"})(run)


def without_heal(fault: str) -> Tamper:
    return altered(HARNESS_FILE, lambda lines: [line for line in lines if not is_heal(line, fault)])


def is_heal(line: Line, fault: str) -> bool:
    return line["type"] == "FaultHealed" and line["fault"] == fault


def nothing_mended(run: Path) -> None:
    """Neither did the cluster settle, so that nobody says that all was mended."""
    told = ("FaultHealed", "ClusterSettled")
    altered(HARNESS_FILE, lambda lines: [line for line in lines if line["type"] not in told])(run)


def without_log_and_plan(run: Path) -> None:
    (run / METADATA).unlink()
    (run / "cluster.yaml").unlink()


def of_the_simulator(run: Path) -> None:
    """The simulator's controller has no log on disk."""
    (run / METADATA).unlink()
    path = run / "cluster.yaml"
    path.write_text(path.read_text().replace("driver: process", "driver: simulator"))


TOLD_BY_SEALS: Mapping[str, Tamper] = {
    "the tail of a killed process cut off": cut_tail,
    "the end of a fencing's explanation": without(HARNESS_FILE, "FaultInjected"),
    "a high watermark removed": without("events/0-0.jsonl", "HighWatermarkAdvanced"),
}
"""Alterations that only seals tell of. Somebody who renews the seals as well is not found out, and need not be: nothing
that decides is altered."""

TOLD_BY_ACCOUNTS: Mapping[str, Tamper] = {
    "a taking over removed": without("events/0-0.jsonl", "BecameLeader"),
    "a registration removed": without(CONTROLLERS, "BrokerRegistered"),
    "a fencing removed": without(CONTROLLERS, "BrokerFenced"),
    "a change removed": without(CONTROLLERS, "PartitionChanged"),
    "an answer removed": without("events/0-0.jsonl", "ProduceAnswered"),
    "events of another run": altered("events/1-0.jsonl", lambda lines: [line | {"run": "another"} for line in lines]),
    "a renamed event file": rename,
    "a topic deleted at a record's offset": with_event(CONTROLLERS, **DELETED, metadata_offset=8),
    "a topic deleted at the end": with_event(CONTROLLERS, **DELETED, metadata_offset=12),
    "a log start raised": with_event("events/0-0.jsonl", **STARTED, old=0, new=20),
    "a log start raised out of bounds": with_event("events/0-0.jsonl", **STARTED, old=0, new=BEYOND),
    "a log start raised on disk": raise_log_start,
    "an exit code that is not zero": with_fields(HARNESS_FILE, kind="IncarnationEnded", exit_code=3),
    "links not mended at the end": without(HARNESS_FILE, "FaultHealed"),
    "an isolation not mended": without_heal("all"),
    "a pause not mended": without_heal("pause"),
    "nothing mended, and nothing settled": nothing_mended,
    "nothing settled": without(HARNESS_FILE, "ClusterSettled"),
    "switches emptied in every node": empty_switches,
    "switches changed in every node": other_switches,
    "records reordered in every replica": reorder_records,
    "offsets swapped in every replica": swap_offsets,
    "an operation acknowledged twice": altered("history.jsonl", acknowledge_twice),
    "an ack without an offset": with_fields("history.jsonl", kind="send", base_offset=None),
    "an ack beyond 64 bits": with_fields("history.jsonl", kind="send", base_offset=BEYOND),
    "a time beyond 64 bits": with_fields("events/0-0.jsonl", kind="BatchAppended", time_ns=BEYOND),
    "an offset beyond 64 bits": with_fields("events/2-0.jsonl", kind="FollowerHighWatermarkUpdated", new=BEYOND),
    "a time of a client beyond 64 bits": with_fields("history.jsonl", kind="poll", time_ns=BEYOND),
    "another reason of a fencing": with_fields(CONTROLLERS, kind="BrokerFenced", reason="requested"),
    "another min ISR of a change": with_fields(CONTROLLERS, kind="PartitionChanged", effective_min_isr=1),
    "a fencing gone and all offsets after it moved": numbered_anew,
    "the controller's log removed": lambda run: (run / METADATA).unlink(),
    "the controller's log and the plan removed": without_log_and_plan,
    "the controller's log removed, and the driver altered": of_the_simulator,
    "the driver altered": with_fields(HARNESS_FILE, kind="NodeStarted", driver="simulator"),
    "the plan removed": lambda run: (run / "cluster.yaml").unlink(),
    "the controller's log torn": end_of_the_log,
    "the controller's log without its last records": records_of_the_log,
    "a rule of the plan": rule_of_the_plan,
    "a rule of all nodes, and not of the plan": rules_of_all_but_the_plan,
    "a metadata offset beyond 64 bits": with_fields(CONTROLLERS, kind="BrokerUnfenced", metadata_offset=BEYOND),
}


def verdict_on(run: Path) -> VerdictReport:
    return judge(plan_run(0, open_run_directory(run))).report


def verdict_in_slices(run: Path) -> VerdictReport:
    """One process says what is wrong with what is unfit for slices."""
    try:
        return sliced(plan_run(0, open_run_directory(run)), SLICE_BYTES).report
    except UnfitError:
        return verdict_on(run)


def packed(run: Path) -> Path:
    return pack_run(run, run.parent / "packed")


SLICE_BYTES = 700
FORMS: Mapping[str, Callable[[Path], VerdictReport]] = {
    "JSON": verdict_on,
    "JSON in slices": verdict_in_slices,
    "packed": lambda run: verdict_on(packed(run)),
    "packed in slices": lambda run: verdict_in_slices(packed(run)),
}
"""Forms in which evidence is written and read. Packing renews the digests of seals."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("tampering") / "honest" / "1")


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "altered" / "1"))


@pytest.mark.parametrize("form", FORMS)
def test_an_unaltered_run_is_valid(form: str, run: Path) -> None:
    report = FORMS[form](run)
    assert (report.unknown_reasons, report.verdict) == ((), Verdict.VALID)


@pytest.mark.parametrize("form", FORMS)
def test_renewed_seals_alone_alter_nothing(form: str, run: Path) -> None:
    reseal(run)
    assert FORMS[form](run).verdict is Verdict.VALID


@pytest.mark.parametrize("form", ["JSON", "JSON in slices"])
@pytest.mark.parametrize("name", [*TOLD_BY_SEALS, *TOLD_BY_ACCOUNTS])
def test_an_altered_run_is_not_valid(name: str, form: str, run: Path) -> None:
    {**TOLD_BY_SEALS, **TOLD_BY_ACCOUNTS}[name](run)
    assert FORMS[form](run).verdict is not Verdict.VALID


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TOLD_BY_ACCOUNTS)
def test_a_run_that_was_altered_and_sealed_again_is_not_valid(name: str, form: str, run: Path) -> None:
    TOLD_BY_ACCOUNTS[name](run)
    reseal(run)
    assert FORMS[form](run).verdict is not Verdict.VALID


@pytest.mark.parametrize("name", [name for name in TOLD_BY_ACCOUNTS if "beyond 64 bits" in name])
def test_a_line_that_cannot_be_read_proves_no_loss(name: str, run: Path) -> None:
    TOLD_BY_ACCOUNTS[name](run)
    reseal(run)
    assert verdict_on(run).verdict is Verdict.UNKNOWN


def sends_changed(change: Callable[[Line], Line | None]) -> Tamper:
    """A tampering that alters the first send in all its lines, or takes it out; later lines are numbered again."""

    def of_history(lines: list[Line]) -> list[Line]:
        first = next(line["operation_id"] for line in lines if line["f"] == "send")
        found = [change(line) if line.get("operation_id") == first else line for line in lines]
        return [line | {"index": n} for n, line in enumerate(line for line in found if line is not None)]

    return altered("history.jsonl", of_history)


def outcome(type_: str) -> Tamper:
    return sends_changed(lambda line: line if line["type"] == "invoke" else line | {"type": type_, "base_offset": None})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (sends_changed(lambda _: None), "orders-0: 1 sends that brokers answered are in no history, such as that"),
        (outcome("fail"), "orders-0: 1 sends certainly failed by the history, and brokers answered them without error"),
    ],
    ids=["taken out", "failed"],
)
def test_what_brokers_answered_is_held_against_the_history(tamper: Tamper, told: str, form: str, run: Path) -> None:
    """Else that would be a finding: a record that nobody sent, or one that was refused."""
    tamper(run)
    reseal(run)
    report = FORMS[form](run)
    assert report.verdict is Verdict.UNKNOWN
    assert [reason.startswith(told) for reason in report.unknown_reasons] == [True]


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_no_client_saw_is_reported(form: str, run: Path) -> None:
    """A response may be lost, so that this alone is no doubt."""
    assert [partition.unseen for partition in FORMS[form](run).partitions] == [0]
    shutil.rmtree(run.parent / "packed", ignore_errors=True)
    outcome("info")(run)
    reseal(run)
    report = FORMS[form](run)
    assert (report.unknown_reasons, report.verdict) == ((), Verdict.VALID)
    assert [partition.unseen for partition in report.partitions] == [10]
    assert "  10 records were acknowledged by brokers, and no client saw it" in summary(report).splitlines()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("times", [1, 2])
def test_an_order_is_given_as_often_as_it_is_received(times: int, form: str, run: Path) -> None:
    order: Line = {"api": "UnregisterBroker", "order": '{"broker_id":2}'}
    with_event(HARNESS_FILE, type="OrderGiven", given_to=CONTROLLER, **order)(run)
    for _ in range(times):
        with_event(CONTROLLERS, type="OrderReceived", giver="ipv4:127.0.0.1:1", **order)(run)
    reseal(run)
    told = 'got an order that the harness did not give, from ipv4:127.0.0.1:1: UnregisterBroker {"broker_id":2}'
    doubts = () if times == 1 else (f"node {CONTROLLER} {told}",)
    assert FORMS[form](run).unknown_reasons == doubts


@pytest.mark.parametrize("form", FORMS)
def test_an_order_that_a_broker_passed_on_for_a_client_of_kafka_is_no_doubt(form: str, run: Path) -> None:
    order: Line = {"api": "UnregisterBroker", "order": '{"broker_id":2}'}
    with_event(
        "events/0-0.jsonl",
        type="OrderRelayed",
        given_to=CONTROLLER,
        client="kafka:app@0-0.1",
        metadata_offset=1,
        **order,
    )(run)
    with_event(CONTROLLERS, type="OrderReceived", giver="ipv4:127.0.0.1:1", **order)(run)
    reseal(run)
    assert FORMS[form](run).unknown_reasons == ()


@pytest.mark.parametrize("victim", ["events/1-0", "history"])
def test_a_packed_file_that_was_exchanged_is_not_valid(victim: str, original: Path, run: Path) -> None:
    """It is whole and has a seal of its own, and is not what the harness found at the end."""
    altered_run = Path(shutil.copytree(original, run.parent / "other"))
    with_fields(f"{victim}.jsonl", kind="send" if victim == "history" else "BatchAppended", time_ns=7)(altered_run)
    reseal(altered_run)
    honest_run, other = packed(run), pack_run(altered_run, run.parent / "other-packed")
    shutil.copyfile(other / f"{victim}.packed", honest_run / f"{victim}.packed")
    doubts = [doubt.sentence for doubt in verdict_on(honest_run).doubts]
    assert doubts
    assert all("is not what the harness found at the end" in doubt for doubt in doubts)
