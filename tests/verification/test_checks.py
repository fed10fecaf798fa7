"""Each check on a log in which it must fire and on logs in which it must not."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from emulator.core import events as e
from emulator.verification.checks import CHECKS
from emulator.verification.guarantee import Guarantee
from emulator.verification.losses import LossClass
from emulator.verification.rule_switches import RULE_SWITCHES
from emulator.verification.verdict import CheckStatus, Verdict, VerdictReport
from tests.verification.conftest import Judge
from tests.verification.run_builder import CONTROLLER, RunBuilder, healthy, last_replica_standing

pytestmark = pytest.mark.spark

Build = Callable[[Path], Path]


def loses_everything(path: Path) -> Path:
    run = healthy(path)
    for node in (0, 1, 2):
        run.power_loss(node)
    run.alter(reason="broker_fenced", broker=2, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=())
    for node in (0, 1, 2):
        run.restart(node)
    run.unfence(0)
    run.alter(reason="broker_unfenced", broker=0, leader=0, election=e.Election.LAST_KNOWN_LEADER, isr=(0,))
    run.expand((0, 1, 2))
    run.send()
    return run.finish()


def final_consumer_misses_a_batch(path: Path) -> Path:
    run = healthy(path)
    batches = run.logs[0, "orders", 0]
    run.poll(batches[:2], process="final", phase="final", position=0, seek=True)
    run.final_read("orders", 0, end_offset=30)
    run.stop_all()
    return run.write()


def survivor_is_no_candidate(path: Path) -> Path:
    run = healthy(path)
    run.fault("isolate", "2")
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    for node in (0, 1):
        run.logs[node, "orders", 0].clear()
    return run.finish()


def leader_lacks_records_for_a_time(path: Path) -> Path:
    run = healthy(path)
    saved = list(run.logs[1, "orders", 0])
    run.truncate(1, 0)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(0, 1, 2))
    run.alter(reason="elect_leaders", leader=0, election=e.Election.ISR, isr=(0, 1, 2))
    for batch in saved:
        run.append(1, batch)
    return run.finish()


def consumed_then_replaced(path: Path) -> Path:
    run = healthy(path)
    batch = run.send(acks=1)
    run.poll([batch])
    for node in (0, 1, 2):
        run.truncate(node, batch.base_offset)
    run.send()
    return run.finish()


def follower_diverges_below_high_watermark(path: Path) -> Path:
    run = healthy(path)
    sent = run.new_batch()
    other = run.new_batch()
    run.append(0, sent, leader=True)
    run.append(1, other)
    run.append(2, sent)
    for batch in (sent, other):
        run.operate(batch, outcome=e.OperationType.INFO)
    run.answer(sent)
    return run.finish()


def stores_what_nobody_sent(path: Path) -> Path:
    run = healthy(path)
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    return run.finish()


def consumer_gets_what_nobody_sent(path: Path) -> Path:
    run = healthy(path)
    run.poll([run.new_batch()])
    return run.finish()


def consumer_skips(path: Path) -> Path:
    run = healthy(path)
    run.send()
    run.poll([run.send()], position=40)
    return run.finish()


def consumer_goes_back(path: Path) -> Path:
    run = healthy(path)
    run.poll(run.logs[0, "orders", 0][:1], position=0)
    return run.finish()


def consumer_seeks_back(path: Path) -> Path:
    run = healthy(path)
    run.poll(run.logs[0, "orders", 0][:1], position=0, seek=True)
    return run.finish()


def poll_has_a_hole(path: Path) -> Path:
    run = healthy(path)
    log = run.logs[0, "orders", 0]
    run.poll([log[0], log[2]], position=0, seek=True)
    return run.finish()


def high_watermark_moves_under_min_isr(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.alter(reason="alter_partition", broker=0, isr=(0,))
    batch = run.send(acks=1)
    run.advance(batch.last_offset + 1, effective_min_isr=1)
    return run.finish()


def high_watermark_moves_on_an_isr_of_its_own(path: Path) -> Path:
    run = healthy(path)
    batch = run.send(acks=1)
    run.advance(batch.last_offset + 1, isr=(0, 1))
    return run.finish()


def high_watermark_goes_back(path: Path) -> Path:
    run = healthy(path)
    run.advance(20)
    return run.finish()


def high_watermark_restarts_lower(path: Path) -> Path:
    run = healthy(path)
    run.send(acks=1)
    run.advance(40, old=10)
    return run.finish()


def high_watermark_passes_a_member(path: Path) -> Path:
    run = healthy(path)
    run.advance(35)
    return run.finish()


def leader_is_no_member(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(1, 2))
    return run.finish()


def isr_and_elr_overlap(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=(0,))
    return run.finish()


def isr_has_a_stranger(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 7))
    return run.finish()


def elr_beside_a_full_isr(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.alter(reason="alter_partition", broker=0, isr=(0, 1), elr=(2,))
    return run.finish()


def unclean_broker_stays(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.end(2, e.IncarnationEnd.KILLED)
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.restart(2)
    run.alter(reason="broker_unfenced", broker=2, isr=(0, 1, 2))
    return run.finish()


def unclean_broker_is_never_removed(path: Path) -> Path:
    run = healthy(path)
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.unfence(2)
    return run.finish()


def unclean_broker_leaves_and_is_vouched_for(path: Path) -> Path:
    run = healthy(path)
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)
    run.expand((0, 1, 2))
    return run.finish()


def two_leaders_in_one_epoch(path: Path) -> Path:
    run = healthy(path)
    run.partitions["orders", 0].leader = 1
    run.alter(reason="elect_leaders")
    return run.finish()


def follower_appends_as_leader(path: Path) -> Path:
    run = healthy(path)
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=True)
    run.operate(batch, outcome=e.OperationType.INFO)
    return run.finish()


def partition_epoch_jumps(path: Path) -> Path:
    run = healthy(path)
    run.partitions["orders", 0].partition_epoch += 1
    run.alter(reason="alter_partition", isr=(0, 1))
    return run.finish()


def leader_epoch_stays(path: Path) -> Path:
    run = healthy(path)
    run.partitions["orders", 0].leader = None
    run.alter(reason="broker_fenced")
    run.partitions["orders", 0].leader = 0
    run.alter(reason="broker_unfenced")
    return run.finish()


def broker_goes_back_an_epoch(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", isr=(0, 1))
    run.lead()
    run.partitions["orders", 0].partition_epoch -= 1
    run.lead()
    run.partitions["orders", 0].partition_epoch += 1
    return run.finish()


def log_loses_a_batch_unexplained(path: Path) -> Path:
    run = healthy(path)
    run.logs[2, "orders", 0].pop()
    return run.finish()


def killed_with_an_unseen_batch(path: Path) -> Path:
    run = healthy(path)
    run.fault("kill", "2")
    batch = run.new_batch()
    run.append(0, batch, leader=True)
    run.append(1, batch)
    run.operate(batch, outcome=e.OperationType.INFO)
    run.logs[2, "orders", 0].append(batch)
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.expand((0, 1, 2))
    return run.finish()


def acked_by_a_later_attempt(path: Path) -> Path:
    """The leader is cut off with a batch that nobody else has, comes back with it, and only then acknowledges it."""
    run = healthy(path)
    late = run.new_batch()
    run.append(0, late, leader=True)
    run.fault("isolate", "0")
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.heal("isolate", "0")
    run.unfence(0)
    run.alter(reason="elect_leaders", leader=0, election=e.Election.ISR, isr=(0, 1, 2))
    for node in (1, 2):
        run.append(node, late)
    run.answer(late)
    run.operate(late)
    run.poll([late])
    return run.finish()


def acked_by_a_later_attempt_of_a_client_behind(path: Path) -> Path:
    """As before, but the client still believes in the first epoch: the leader's answer tells the one that counts."""
    directory = acked_by_a_later_attempt(path)
    history = directory / "history.jsonl"
    history.write_text(history.read_text().replace('"node": 0, "leader_epoch": 2,', '"node": 0, "leader_epoch": 0,'))
    return directory


def controller_notes_its_records_twice(path: Path) -> Path:
    run = healthy(path)
    run.fault("kill", str(CONTROLLER))
    before = [line for line in run.files[CONTROLLER, 0] if "metadata_offset" in line]
    run.end(CONTROLLER, e.IncarnationEnd.KILLED)
    run.start(CONTROLLER, role="controller")
    lines = run.files[CONTROLLER, 1]
    for line in before:
        lines.append(line | {"incarnation": 1, "sequence": len(lines)})
    run.alter(reason="alter_partition", broker=0, isr=(0, 1))
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2))
    return run.finish()


def story(era: str) -> Build:
    return lambda path: last_replica_standing(path, era=era).finish()


def with_other_ids(path: Path) -> Path:
    return last_replica_standing(path, era="kafka-3.9", brokers=(7, 3, 5)).finish()


def two_topics(path: Path) -> Path:
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2, 3)
    run.create_topic("orders", replicas=(0, 1, 2))
    run.create_topic("bills", replicas=(3, 1), partition=2)
    run.send("orders")
    lost = run.send("bills", 2)
    for node in (3, 1):
        run.truncate(node, 0, "bills", 2)
    assert lost.base_offset == 0
    run.send("orders")
    return run.finish()


FIRES: Mapping[str, tuple[Build, frozenset[str]]] = {
    "kafka-3.9 story": (story("kafka-3.9"), frozenset({"D1", "D4", "D5"})),
    "other ids": (with_other_ids, frozenset({"D1", "D4", "D5"})),
    "two topics": (two_topics, frozenset({"D1", "D4"})),
    "everything lost": (loses_everything, frozenset({"D1", "D5"})),
    "unread": (final_consumer_misses_a_batch, frozenset({"D1"})),
    "survivor is no candidate": (survivor_is_no_candidate, frozenset({"D1", "D5", "E1"})),
    "gone for a time": (leader_lacks_records_for_a_time, frozenset({"D1", "D5"})),
    "consumed then replaced": (consumed_then_replaced, frozenset({"D5"})),
    "divergence": (follower_diverges_below_high_watermark, frozenset({"D6"})),
    "phantom stored": (stores_what_nobody_sent, frozenset({"D10"})),
    "phantom consumed": (consumer_gets_what_nobody_sent, frozenset({"D10", "D5"})),
    "consumer skips": (consumer_skips, frozenset({"C1"})),
    "consumer goes back": (consumer_goes_back, frozenset({"C1"})),
    "hole in a poll": (poll_has_a_hole, frozenset({"C1"})),
    "gate": (high_watermark_moves_under_min_isr, frozenset({"H2"})),
    "gate with another ISR": (high_watermark_moves_on_an_isr_of_its_own, frozenset({"H2"})),
    "high watermark back": (high_watermark_goes_back, frozenset({"H3"})),
    "high watermark restarts": (high_watermark_restarts_lower, frozenset({"H3"})),
    "high watermark too far": (high_watermark_passes_a_member, frozenset({"H3"})),
    "leader no member": (leader_is_no_member, frozenset({"M1"})),
    "isr and elr overlap": (isr_and_elr_overlap, frozenset({"M1"})),
    "stranger in isr": (isr_has_a_stranger, frozenset({"M1"})),
    "elr beside full isr": (elr_beside_a_full_isr, frozenset({"M3"})),
    "unclean broker stays": (unclean_broker_stays, frozenset({"M5"})),
    "unclean broker never removed": (unclean_broker_is_never_removed, frozenset({"M5"})),
    "two leaders": (two_leaders_in_one_epoch, frozenset({"M8", "M9"})),
    "follower appends as leader": (follower_appends_as_leader, frozenset({"M8"})),
    "partition epoch jumps": (partition_epoch_jumps, frozenset({"M9"})),
    "leader epoch stays": (leader_epoch_stays, frozenset({"M9"})),
    "older partition epoch": (broker_goes_back_an_epoch, frozenset({"M9"})),
    "unexplained loss": (log_loses_a_batch_unexplained, frozenset({"E1"})),
}
"""Runs with exactly these checks violated."""

HOLDS: Mapping[str, Build] = {
    "kip-966 story": story("kip-966"),
    "healthy": lambda path: healthy(path).finish(),
    "consumer seeks back": consumer_seeks_back,
    "acked by a later attempt": acked_by_a_later_attempt,
    "acked by a later attempt of a client behind": acked_by_a_later_attempt_of_a_client_behind,
    "controller notes its records twice": controller_notes_its_records_twice,
    "unclean broker is vouched for": unclean_broker_leaves_and_is_vouched_for,
    "killed with an unseen batch": killed_with_an_unseen_batch,
}
"""Runs in which nothing is wrong."""

NOT_PROMISED: Mapping[str, tuple[Build, str]] = {
    "H2": (lambda p: high_watermark_moves_under_min_isr(p, {"hw_requires_min_isr": "off"}), "hw_requires_min_isr"),
    "M3": (lambda p: elr_beside_a_full_isr(p, {"elr": "off"}), "elr"),
    "M5": (lambda p: unclean_broker_stays(p, {"unclean_detection": "off"}), "unclean_detection"),
}
"""Runs that break a rule which their switches turn off."""


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("checks")
    builds = {**{name: build for name, (build, _) in FIRES.items()}, **HOLDS}
    builds |= {name: build for name, (build, _) in NOT_PROMISED.items()}
    return judge({name: build(base / f"run{n}" / "1") for n, (name, build) in enumerate(builds.items())})


@pytest.mark.parametrize("name", FIRES)
def test_fires(name: str, reports: dict[str, VerdictReport]) -> None:
    report = reports[name]
    assert {check.check_id for check in report.violated()} == FIRES[name][1]
    assert report.verdict is Verdict.VIOLATION
    assert all(check.examples and check.count >= len(check.examples) for check in report.violated())


@pytest.mark.parametrize("name", HOLDS)
def test_holds(name: str, reports: dict[str, VerdictReport]) -> None:
    report = reports[name]
    assert report.violated() == ()
    assert report.unknown_reasons == ()
    assert report.verdict is Verdict.VALID


@pytest.mark.parametrize("check_id", NOT_PROMISED)
def test_a_rule_that_is_switched_off_is_not_judged(check_id: str, reports: dict[str, VerdictReport]) -> None:
    assert NOT_PROMISED[check_id][1] in RULE_SWITCHES[check_id]
    (result,) = (check for check in reports[check_id].checks if check.check_id == check_id)
    assert result.status is CheckStatus.NOT_PROMISED
    assert reports[check_id].violated() == ()


def test_every_check_has_a_run_in_which_it_fires() -> None:
    assert {check.check_id for check in CHECKS} == frozenset().union(*(fired for _, fired in FIRES.values()))


def test_story_names_who_acknowledged_lost_and_truncated(reports: dict[str, VerdictReport]) -> None:
    report = reports["other ids"]
    text = "\n".join(sentence for loss in report.losses for sentence in loss.story)
    assert report.guarantee is Guarantee.BROKEN
    assert report.lost_records == 100
    assert [str(o) for loss in report.losses for o in loss.offsets] == ["0-49", "50-99"]
    for words in (
        "Broker 7 acknowledged them, with ISR [7, 3, 5]",
        "Broker 3 acknowledged them, with ISR [3, 5]",
        "Broker 5 lost power (keep: none): its log ended at 110 before and at 0 after",
        "elected broker 5 in epoch 4 (elected as a member of the ISR; cause: broker unfenced 5)",
        "Broker 7 truncated its log from 50 to 0",
        "Broker 3 truncated its log from 100 to 0",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("name", "loss_class", "guarantee"),
    [
        ("kafka-3.9 story", LossClass.GONE_EVERYWHERE, Guarantee.BROKEN),
        ("everything lost", LossClass.GONE_EVERYWHERE, Guarantee.EXCEEDED),
        ("unread", LossClass.UNREAD, Guarantee.BROKEN),
        ("survivor is no candidate", LossClass.ONLY_UNELECTABLE, Guarantee.BROKEN),
        ("gone for a time", LossClass.GONE_FOR_A_TIME, Guarantee.EXCEEDED),
    ],
)
def test_losses_are_classified(
    name: str, loss_class: LossClass, guarantee: Guarantee, reports: dict[str, VerdictReport]
) -> None:
    assert {loss.loss_class for loss in reports[name].losses} == {loss_class}
    assert reports[name].guarantee is guarantee


def test_acks_1_records_are_counted_apart_and_do_not_decide(reports: dict[str, VerdictReport]) -> None:
    counts = {count.acks: count for count in reports["kip-966 story"].counts}
    assert (counts[-1].acked, counts[-1].lost) == (110, 0)
    assert (counts[1].acked, counts[1].lost) == (10, 10)
