"""Whatever is missing from a run makes its verdict unknown, and unknown is never success."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from laststand.emulator.core import events as e
from laststand.emulator.core.types import LogDeletedReason, MessageFate, MetadataOffset, NodeId, Offset, TopicId, Way
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.conftest import Judge
from tests.verification.resealing import reseal
from tests.verification.run_builder import (
    CAUSE,
    CONTROLLER,
    HARNESS,
    RunBuilder,
    healthy,
    last_replica_standing,
    zookeeper_run,
)

Build = Callable[[Path], Path]
EVENT_FILES = ("harness.jsonl", "100-0.jsonl", "0-0.jsonl", "1-0.jsonl", "2-0.jsonl", "2-1.jsonl")


def spoiled(spoil: Callable[[Path], object]) -> Build:
    def build(path: Path) -> Path:
        run = healthy(path).finish()
        spoil(run)
        return run

    return build


def built(change: Callable[[RunBuilder], None]) -> Build:
    def build(path: Path) -> Path:
        run = healthy(path)
        change(run)
        return run.finish()

    return build


def fault_then_fencing(fault: str, target: str, *, broker: int) -> Build:
    def change(run: RunBuilder) -> None:
        run.fault(fault, target)
        run.fence(broker)

    return built(change)


LOST_ANSWER = ("lose_messages", "0->100 AlterPartition response")
HELD_ANSWER = ("hold", "0->100 AlterPartition response")


def answer_touched(
    run: RunBuilder,
    fault: tuple[str, str],
    *,
    api: str = "AlterPartition",
    broker: int = 0,
    fate: MessageFate | None = None,
    begun_s: float | None = None,
) -> None:
    run.fault(*fault, begun_s=begun_s)
    run.note(
        CONTROLLER,
        e.MessageIntercepted(
            cause_id=CAUSE,
            source=NodeId(broker),
            target=NodeId(CONTROLLER),
            api=api,
            way=Way.RESPONSE,
            fate=fate or (MessageFate.HELD if fault[0] == "hold" else MessageFate.LOST),
        ),
    )


def nothing_lost_any_more(run: RunBuilder) -> None:
    """Of two faults of the same messages, only the first has a message."""
    run.at(100)
    answer_touched(run, LOST_ANSWER, begun_s=100)
    run.at(200)
    run.fault(*LOST_ANSWER, begun_s=200)


def nothing_lost_at_first(run: RunBuilder) -> None:
    """Of two faults of the same messages, only the second has a message."""
    run.at(100)
    run.fault(*LOST_ANSWER, begun_s=100)
    run.at(201)
    answer_touched(run, LOST_ANSWER, begun_s=200)


def lost_twice(run: RunBuilder) -> None:
    for begun_s in (100, 200):
        run.at(begun_s)
        answer_touched(run, LOST_ANSWER, begun_s=begun_s)


def nothing_held_by_a_drawn_plan(run: RunBuilder) -> None:
    run.may_miss_steps = True
    run.fault(*HELD_ANSWER)


def fenced_while_answers_are_held(run: RunBuilder) -> None:
    answer_touched(run, ("hold", "1->100 BrokerHeartbeat response"), api="BrokerHeartbeat", broker=1)
    run.fence(1)


def killed_then_fenced(path: Path) -> Path:
    run = healthy(path)
    run.end(1, e.IncarnationEnd.KILLED)
    run.fence(1)
    return run.finish()


def killed_about_when_it_is_fenced(path: Path, *, is_killed_first: bool) -> Path:
    """The harness sees the process end, and asks how much is committed, when the session has ended long since."""
    run = healthy(path)
    before = run.metadata_offset
    run.fence(1)
    run.end(1, e.IncarnationEnd.KILLED)
    run.fault("kill", "1", committed=before if is_killed_first else run.metadata_offset)
    return run.finish()


def without_event_file(name: str) -> Build:
    def build(path: Path) -> Path:
        run = last_replica_standing(path, era="kip-966").finish()
        (run / "events" / name).unlink()
        return run

    return build


def client_believes_in_a_former_term(path: Path) -> Path:
    """Its broker leads again by then, and nobody has that broker's events."""
    run = healthy(path)
    for leader in (1, 0):
        run.alter(reason="elect_leaders", leader=leader, election=e.Election.ISR, isr=(0, 1, 2))
    run.send()
    (attempt,) = cast(list[dict[str, object]], run.history[-1]["attempts"])
    attempt["leader_epoch"] = 0
    directory = run.finish()
    (directory / "events/0-0.jsonl").unlink()
    return directory


def edit(name: str, change: Callable[[list[str]], list[str]]) -> Build:
    def spoil(run: Path) -> None:
        path = run / name
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return spoiled(spoil)


def renumbered(lines: list[str]) -> list[str]:
    """One line before these is gone, and nobody sees it by the numbers."""
    fields = [json.loads(line) for line in lines]
    return [json.dumps(f | {"index": f["index"] - 1}) + "\n" for f in fields]


def without_field(line: str) -> str:
    fields = json.loads(line)
    del fields["crc"]
    return json.dumps(fields) + "\n"


def ended_with_a_problem(path: Path) -> Path:
    run = healthy(path)
    run.read_all()
    run.stop_all(problem="step 3 waited 30 s for orders-0 leader 1")
    return run.write()


def harness_died(path: Path) -> Path:
    run = healthy(path).finish()
    lines = (run / "events/harness.jsonl").read_text().splitlines(keepends=True)
    (run / "events/harness.jsonl").write_text("".join(lines[:-1]))
    return run


def process_ended_by_itself(path: Path) -> Path:
    run = healthy(path)
    run.end(2, e.IncarnationEnd.UNEXPECTED)
    return run.finish()


def process_ended_by_a_signal(path: Path) -> Path:
    run = healthy(path)
    run.end(2, e.IncarnationEnd.UNEXPECTED, by_signal=True)
    return run.finish()


def nothing_acked(path: Path) -> Path:
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send(acks=0)
    run.advance(10)
    return run.finish()


def not_read_at_the_end(path: Path) -> Path:
    run = healthy(path)
    run.final_read("orders", 0, end_offset=None, error="LEADER_NOT_AVAILABLE")
    run.stop_all()
    return run.write()


def fenced_again_after_a_heal(path: Path, *, fault: str, healed: tuple[str, str]) -> Path:
    run = healthy(path)
    run.start(9)
    run.fault(fault, "2")
    run.fence(2)
    run.heal(*healed)
    run.end(9, e.IncarnationEnd.STOPPED)  # The harness learns an offset, which bounds the heal.
    run.unfence(2)
    run.fence(2)
    return run.finish()


def fenced_twice_during_a_fault(path: Path, *, is_disk_held: bool) -> Path:
    """Decisions of the controller before the heal are committed after it, where its disk is held up."""
    run = healthy(path)
    if is_disk_held:
        answer_touched(run, ("hold", f"{CONTROLLER}->{CONTROLLER} Sync response"), api="Sync", broker=CONTROLLER)
    run.fault("isolate", "2")
    run.heal("isolate", "2", committed=0)
    if is_disk_held:
        run.heal("hold", f"{CONTROLLER}->{CONTROLLER} Sync response", committed=0)
    for _ in range(2):
        run.fence(2)
        run.unfence(2)
    return run.finish()


def torn(path: Path, *, how: e.IncarnationEnd) -> Path:
    run = healthy(path)
    run.end(2, how)
    directory = run.finish()
    with (directory / "events/2-0.jsonl").open("a") as file:
        file.write('{"run": "r", "node": 2, "incarn')
    return directory


def controller_forgets_a_record(path: Path) -> Path:
    run = healthy(path)
    run.fault("kill", str(CONTROLLER))
    run.end(CONTROLLER, e.IncarnationEnd.KILLED)
    run.start(CONTROLLER, role="controller")
    run.metadata_offset += 1
    run.alter(reason="alter_partition", broker=0, isr=(0, 1))
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2))
    return run.finish()


def without_one_event(kind: str) -> Build:
    """An event of the controller is gone, and those after it are numbered as if it had never been."""

    def spoil(run: Path) -> None:
        path = run / f"events/{CONTROLLER}-0.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines.remove(next(line for line in lines if line["type"] == kind))
        path.write_text("".join(json.dumps(line | {"sequence": n}) + "\n" for n, line in enumerate(lines)))

    return spoiled(spoil)


def with_a_client(path: Path, change: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> Path:
    """The sends are those of a client that came by itself: the harness noted it, and it has a history of its own."""
    run = healthy(path)
    run.note(HARNESS, e.ClientStarted(cause_id=CAUSE, process="producer-0", history_file="history/producer-0.jsonl"))
    directory = run.finish()
    lines = [json.loads(line) for line in (directory / "history.jsonl").read_text().splitlines()]
    rest = [line for line in lines if "acks" not in line and line["f"] != "sealed"]
    sends = change([line | {"index": index} for index, line in enumerate(line for line in lines if "acks" in line)])
    (directory / "history").mkdir()
    for name, chosen in (("history.jsonl", rest), ("history/producer-0.jsonl", sends)):
        numbered = [line | {"index": index} for index, line in enumerate(chosen)] if chosen is rest else chosen
        (directory / name).write_text("".join(json.dumps(line) + "\n" for line in numbered))
    reseal(directory)
    return directory


def without_the_clients_history(path: Path) -> Path:
    directory = with_a_client(path, lambda sends: sends)
    (directory / "history/producer-0.jsonl").unlink()
    return directory


def no_switches_in_common(run: RunBuilder) -> None:
    run.switches = run.switches | {"elr": "off"}
    run.start(5)


def note_topic(run: RunBuilder, kind: type[e.TopicCreated | e.TopicDeleted], topic_id: str = "~orders") -> None:
    offset = MetadataOffset(run.metadata_offset)
    run.note(CONTROLLER, kind(cause_id=CAUSE, metadata_offset=offset, topic="orders", topic_id=TopicId(topic_id)))
    run.metadata_offset += 1


def topic_gets_its_id_late(path: Path, *, is_made_again: bool = False) -> Path:
    """Before 2.8 a topic has no id; then it is given one, and the file of one replica never tells it."""
    run = zookeeper_run(path)
    note_topic(run, e.TopicCreated)
    run.create_topic(topic_id="~orders")
    run.poll([run.send()])
    if is_made_again:
        note_topic(run, e.TopicDeleted)
    note_topic(run, e.TopicCreated, "orders-id")
    run.partitions["orders", 0].topic_id = "orders-id"
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR)
    run.poll([run.send()])
    directory = run.finish()
    (directory / "nodes/2/data/orders-0/partition.metadata").write_text("version: 0\ntopic_id: ~orders\n")
    return directory


def topic_is_created_again_without_an_id(path: Path) -> Path:
    """Before topics had ids: the second one is led by another broker in the same epoch, and has other records."""
    run = zookeeper_run(path, era="kafka-2.6-zk")
    note_topic(run, e.TopicCreated)
    run.create_topic(topic_id="~orders")
    run.poll([run.send()])
    for node in (0, 1, 2):
        deleted = e.LogDeleted(
            cause_id=CAUSE, topic="orders", partition=0, topic_id=TopicId("~orders"), reason=LogDeletedReason.DELETED,
            log_end_offset=Offset(10),
        )  # fmt: skip
        run.note(node, deleted)
    note_topic(run, e.TopicDeleted)
    note_topic(run, e.TopicCreated)
    run.create_topic(topic_id="~orders", replicas=(1, 2, 0))
    run.positions.clear()
    run.poll([run.send()], process="consumer-of-the-second")
    return run.finish()


def operation_failed(run: RunBuilder, *, node: int) -> None:
    run.note(node, e.OperationFailed(cause_id=CAUSE, operation="FetchRequest", error="KeyError(1)"))


def zookeeper_server_ended_by_itself(path: Path) -> Path:
    run = zookeeper_run(path)
    run.create_topic()
    run.poll([run.send()])
    run.end(CONTROLLER, e.IncarnationEnd.UNEXPECTED)
    return run.finish()


def zookeeper_servers_log_gone(path: Path) -> Path:
    """A server on a disk leaves one."""
    run = zookeeper_run(path)
    run.create_topic()
    run.poll([run.send()])
    directory = run.finish()
    with (directory / "cluster.yaml").open("a") as file:
        file.write("driver: process\n")
    return directory


UNKNOWN: Mapping[str, Build] = {
    "the log of the ZooKeeper server is gone": zookeeper_servers_log_gone,
    "an operation failed by a bug": built(partial(operation_failed, node=CONTROLLER)),
    "a broker's operation failed by a bug": built(partial(operation_failed, node=1)),
    "the ZooKeeper server ended by itself": zookeeper_server_ended_by_itself,
    "a topic that had no id is created again with one": partial(topic_gets_its_id_late, is_made_again=True),
    "a topic is created again without an id": topic_is_created_again_without_an_id,
    **{f"without {name}": without_event_file(name) for name in EVENT_FILES},
    "events missing, and the client behind": client_believes_in_a_former_term,
    "history missing": spoiled(lambda run: (run / "history.jsonl").unlink()),
    "history empty": spoiled(lambda run: (run / "history.jsonl").write_text("")),
    "history with a gap": edit("history.jsonl", lambda lines: lines[:1] + lines[2:]),
    "history with a broken line": edit("history.jsonl", lambda lines: [*lines[:3], lines[3][:20] + "\n", *lines[4:]]),
    "a client's history missing": without_the_clients_history,
    "a client's history with a gap": lambda path: with_a_client(path, lambda sends: sends[:2] + sends[4:]),
    "history without an answer": edit("history.jsonl", lambda lines: [*lines[:-4], *renumbered(lines[-3:])]),
    "events with a gap": edit("events/1-0.jsonl", lambda lines: lines[:2] + lines[3:]),
    "events with a broken line": edit("events/1-0.jsonl", lambda lines: [lines[0], "{oops\n", *lines[1:]]),
    "events of an unknown type": edit(
        "events/1-0.jsonl", lambda lines: [line.replace("LogOpened", "LogOpend", 1) for line in lines]
    ),
    "events without a field": edit(
        "events/1-0.jsonl", lambda lines: [without_field(x) if "BatchAppended" in x else x for x in lines]
    ),
    "events without their beginning": edit("events/1-0.jsonl", lambda lines: lines[1:]),
    "events without their end": edit("events/1-0.jsonl", lambda lines: lines[:-1]),
    "event file empty": edit("events/1-0.jsonl", lambda lines: lines[:0]),
    "torn though stopped": lambda path: torn(path, how=e.IncarnationEnd.STOPPED),
    "plan not finished": ended_with_a_problem,
    "harness died": harness_died,
    "process ended by itself": process_ended_by_itself,
    "process ended by a signal": process_ended_by_a_signal,
    "fault had no effect": built(lambda run: run.fault("isolate", "2", effect=None)),
    "no message came by that a fault could touch": built(lambda run: run.fault(*LOST_ANSWER)),
    "nothing was held": built(lambda run: run.fault(*HELD_ANSWER)),
    "a message of another kind was touched": built(lambda run: answer_touched(run, LOST_ANSWER, api="BrokerHeartbeat")),
    "a message of another kind was held": built(lambda run: answer_touched(run, HELD_ANSWER, api="BrokerHeartbeat")),
    "a message met another fate": built(lambda run: answer_touched(run, LOST_ANSWER, fate=MessageFate.DELAYED)),
    "only an earlier fault met a message": built(nothing_lost_any_more),
    "only a later fault met a message": built(nothing_lost_at_first),
    "unexplained fencing": built(lambda run: run.fence(1)),
    "fencing of another broker's fault": fault_then_fencing("isolate", "0", broker=1),
    "fencing by a cut between brokers": fault_then_fencing("cut", "0->1", broker=1),
    "fencing by a cut from the clients": fault_then_fencing("cut", "client->1", broker=1),
    "fencing by a held channel between brokers": fault_then_fencing("hold", "0->1", broker=1),
    "fencing by another broker's clock": fault_then_fencing("clock", "0", broker=1),
    "fenced, and killed only then": lambda path: killed_about_when_it_is_fenced(path, is_killed_first=False),
    "fenced again without a fault": lambda path: fenced_again_after_a_heal(
        path, fault="isolate", healed=("isolate", "2")
    ),
    "fenced again after all links were healed": lambda path: fenced_again_after_a_heal(
        path, fault="isolate", healed=("heal", "all")
    ),
    "fenced again after the heal": lambda path: fenced_twice_during_a_fault(path, is_disk_held=False),
    "nothing acked": nothing_acked,
    "not read at the end": not_read_at_the_end,
    "controller forgot a record": controller_forgets_a_record,
    **{f"without a {kind}": without_one_event(kind) for kind in ("BrokerRegistered", "BrokerUnfenced")},
    "switches differ": built(no_switches_in_common),
    "logs of a broker missing": spoiled(lambda run: (run / "nodes/2").rename(run / "nodes/gone")),
}

EXPLAINED: Mapping[str, Build] = {
    "a topic gets its id late": topic_gets_its_id_late,
    "fencing by isolation": fault_then_fencing("isolate", "1", broker=1),
    "fencing by a cut from the controller": fault_then_fencing("cut", "1->100", broker=1),
    "fencing by a clock that runs slow": fault_then_fencing("clock", "1", broker=1),
    "fenced again by a clock, after all links were healed": lambda path: fenced_again_after_a_heal(
        path, fault="clock", healed=("heal", "all")
    ),
    "fenced again by a clock, after the node's links were healed": lambda path: fenced_again_after_a_heal(
        path, fault="clock", healed=("heal", "2")
    ),
    **{
        f"fencing by {fault} of what goes to the controller": fault_then_fencing(fault, "1->100", broker=1)
        for fault in ("slow", "reset", "throttle", "lose_responses")
    },
    "fencing by holding answers of the controller": built(fenced_while_answers_are_held),
    "the answer that a fault was to lose was lost": built(lambda run: answer_touched(run, LOST_ANSWER)),
    "both answers that faults were to lose were lost": built(lost_twice),
    "nothing was held, and the plan was drawn": built(nothing_held_by_a_drawn_plan),
    "the answer that a fault was to hold was held": built(lambda run: answer_touched(run, HELD_ANSWER)),
    "fencing by a paused controller": fault_then_fencing("pause", str(CONTROLLER), broker=1),
    "fencings while the controller's disk is held up": lambda path: fenced_twice_during_a_fault(
        path, is_disk_held=True
    ),
    "fencing on request": built(lambda run: run.fence(1, reason="requested")),
    "fencing after a kill": killed_then_fenced,
    "fencing after a kill whose end was seen late": lambda path: killed_about_when_it_is_fenced(
        path, is_killed_first=True
    ),
    "a history of each client": lambda path: with_a_client(path, lambda sends: sends),
    "torn when killed": lambda path: torn(path, how=e.IncarnationEnd.KILLED),
}


def lost_and_incomplete(path: Path) -> Path:
    run = last_replica_standing(path, era="kafka-3.9").finish()
    (run / "events/1-0.jsonl").unlink()
    return run


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("evidence")
    builds = {**UNKNOWN, **EXPLAINED, "lost and incomplete": lost_and_incomplete}
    return judge({name: build(base / f"run{n}" / "1") for n, (name, build) in enumerate(builds.items())})


@pytest.mark.parametrize("name", UNKNOWN)
def test_is_unknown(name: str, reports: dict[str, VerdictReport]) -> None:
    report = reports[name]
    assert report.unknown_reasons
    assert report.violated() == ()
    assert report.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", EXPLAINED)
def test_is_explained(name: str, reports: dict[str, VerdictReport]) -> None:
    assert reports[name].unknown_reasons == ()
    assert reports[name].verdict is Verdict.VALID


def test_a_violation_stays_one_even_if_something_is_unknown(reports: dict[str, VerdictReport]) -> None:
    report = reports["lost and incomplete"]
    missing, unmatched = report.unknown_reasons
    assert missing == "event file 1-0.jsonl is missing or empty"
    assert "5 acknowledgements are in the history and not in the events of who gave them" in unmatched
    assert "D1" in {check.check_id for check in report.violated()}
    assert report.verdict is Verdict.VIOLATION


def test_a_check_without_its_evidence_is_unknown(reports: dict[str, VerdictReport]) -> None:
    statuses = {check.check_id: check.status for check in reports["history missing"].checks}
    assert statuses["D10"] is CheckStatus.UNKNOWN
    statuses = {check.check_id: check.status for check in reports["without 1-0.jsonl"].checks}
    assert statuses["E1"] is CheckStatus.UNKNOWN
    told = reports["the ZooKeeper server ended by itself"].unknown_reasons
    assert told == ("incarnation 0 of node 100 ended by itself with exit code 255",)
    told = reports["a broker's operation failed by a bug"].unknown_reasons
    assert told == ("node 1 failed at FetchRequest, by a bug: KeyError(1)",)
    assert reports["process ended by a signal"].unknown_reasons == (
        "incarnation 0 of node 2 was ended by a signal that no step sent",
    )
    assert reports["a topic that had no id is created again with one"].unknown_reasons == (
        "what is told of orders-0 without an id may be of several topics of that name",
    )
    report = reports["a topic is created again without an id"]
    statuses = {check.check_id: check.status for check in report.checks}
    assert {check_id for check_id, status in statuses.items() if status is CheckStatus.UNKNOWN} == {
        "C3", "C4", "D2", "D3", "D7", "D15", "H3", "M8", "Z4",
    }  # fmt: skip
    assert report.unknown_reasons == (
        "topic orders was deleted and created again, and has no id that tells the two apart",
    )
