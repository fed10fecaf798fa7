"""Each check on a log in which it must fire and on logs in which it must not."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
import pytest
from crc32c import crc32c

from docs.generate import EVIDENCE, FINDINGS
from laststand.emulator.core import events as e
from laststand.emulator.core.history import MemberStep, OperationType
from laststand.emulator.core.promises import PROMISES
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ClusterKind,
    LeaderEpoch,
    LeaderRecoveryState,
    LogDeletedReason,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    RecoveryOrigin,
    RecoveryStrategy,
    StrayCleanup,
    StrayReason,
    TopicId,
    ZnodeWrite,
)
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.rules.check import Premise
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.loss_report import FirstLacking, StoryKind
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.conftest import Judge
from tests.verification.resealing import reseal
from tests.verification.run_builder import (
    CAUSE,
    CONTROLLER,
    POSITIONS,
    TRANSACTIONAL,
    TRANSACTIONS,
    Batch,
    Partition,
    RunBuilder,
    healthy,
    last_replica_standing,
    metadata_value,
    zookeeper_run,
)

RECOVERING, RECOVERED = LeaderRecoveryState.RECOVERING, LeaderRecoveryState.RECOVERED
ROLES_BEFORE_REGISTRATION = {"roles_after_registration": "off"}
ORDERS_ID = TopicId("orders-id")
NOTIFICATION = "/isr_change_notification/isr_change_0000000000"

Build = Callable[[Path], Path]


class Redundancy(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a check finds nothing that another one does not find, and what it is kept for."""

    implied: str
    why: str
    kept_for: str


def group_goes_back(path: Path, *, given: int | None = 5) -> Path:
    run = healthy(path)
    run.group_position("commit", 10)
    run.group_position("fetch", given, node=1)
    return run.finish()


def group_commits_what_it_is_given(path: Path, *, outcome: OperationType = OperationType.OK) -> Path:
    run = healthy(path)
    run.group_position("commit", 10)
    run.group_position("fetch", 10)
    run.group_position("commit", 5, outcome=outcome)
    run.group_position("fetch", 5)
    return run.finish()


def group_is_answered_while_it_commits(path: Path) -> Path:
    run = healthy(path)
    run.group_position("fetch", None)
    run.group_position("commit", 10)
    run.group_position("fetch", None, begun_ns=0)
    return run.finish()


def loses_everything(path: Path) -> Path:
    run = healthy(path)
    for node in (0, 1, 2):
        run.power_loss(node)
    run.alter(reason="broker_fenced", broker=2, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(1, 2))
    run.restart(0)
    for node, elr in ((1, (2,)), (2, ())):
        run.restart(node)
        run.alter(reason="broker_registered", broker=node, elr=elr)
    run.unfence(0)
    run.alter(
        reason="broker_unfenced", broker=0, leader=0, election=e.Election.LAST_KNOWN_LEADER, isr=(0,),
        recovery=RECOVERING,
    )  # fmt: skip
    run.unfence(1)
    run.unfence(2)
    run.expand((0,))
    run.expand((0, 1, 2))
    run.send()
    return run.finish()


def loses_power_after_it_cut_off_the_last_copy(path: Path) -> Path:
    """Broker 0 alone outlives a power loss with the records; an unclean leader has it cut them off."""
    run = healthy(path)
    for node in (1, 2):
        run.power_loss(node)
    run.restart(1)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,), recovery=RECOVERING)
    run.step("elect_leaders", unclean=("orders-0",))
    run.truncate(0, 0)
    run.power_loss(0)
    for node in (0, 2):
        run.restart(node)
    run.expand((0, 1, 2))
    return run.finish()


def final_consumer_misses_a_batch(path: Path) -> Path:
    run = healthy(path)
    batches = run.logs[0, "orders", 0]
    run.poll(batches[:2], process="final", phase="final", position=0, seek=True)
    run.final_read("orders", 0, end_offset=30)
    run.stop_all()
    return run.write()


def final_consumer_stops_at_a_high_watermark_that_is_behind(path: Path, *, settles: bool) -> Path:
    run = healthy(path)
    batches = run.logs[0, "orders", 0]
    if settles:
        run.settle()
    run.poll(batches[:2], process="final", phase="final", position=0, seek=True)
    run.final_read("orders", 0, end_offset=20)
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
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,), recovery=RECOVERING)
    run.step("{elect_leaders: {type: designated, partition: orders-0, leader: 1}}", unclean=("orders-0",))
    run.expand((1,))
    run.expand((0, 1, 2))
    run.alter(reason="elect_leaders", leader=0, election=e.Election.ISR, isr=(0, 1, 2))
    for batch in saved:
        run.append(1, batch)
    return run.finish()


def leads_again_in_its_epoch(path: Path, *, keep: int = 0, is_registered: bool = False) -> Path:
    """Broker 0 loses power, is back before its session ends, and takes its former role for its own."""
    run = healthy(path, switches=ROLES_BEFORE_REGISTRATION)
    run.power_loss(0, keep=keep)
    if is_registered:
        run.restart(0)
    else:
        run.start(0)
        run.open(0)
    run.lead()
    if not is_registered:
        run.register(0, clean=False)
    is_deposed(run)
    return run.finish()


def is_deposed(run: RunBuilder) -> None:
    """Broker 1 succeeds broker 0, which follows it and joins the ISR again."""
    kept = len(run.logs[0, "orders", 0])
    run.alter(reason="broker_registered", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    for batch in run.logs[1, "orders", 0][kept:]:
        run.append(0, batch)
    run.unfence(0)
    run.expand((0, 1, 2))


def leads_again_and_is_sent_to(path: Path) -> Path:
    """A leader that leads again did not lack, when it began to, what it acknowledges afterwards."""
    run = RunBuilder(path, switches=ROLES_BEFORE_REGISTRATION)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.power_loss(0)
    run.start(0)
    run.open(0)
    run.lead()
    for _ in range(2):
        run.poll([run.send()])
    run.register(0, clean=False)
    is_deposed(run)
    return run.finish()


def consumed_then_replaced(path: Path) -> Path:
    run = healthy(path)
    batch = run.send(acks=1)
    run.poll([batch])
    for node in (0, 1, 2):
        run.truncate(node, batch.base_offset)
    run.send()
    return run.finish()


def begins_within_what_was_acknowledged(path: Path) -> Path:
    """A batch is given an offset that is not the first of the batch that was acknowledged before it was sent."""
    run = healthy(path)
    for node in (0, 1, 2):
        run.truncate(node, 20)
    run.send(records=5, outcome=OperationType.INFO)
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
        run.operate(batch, outcome=OperationType.INFO)
    run.answer(sent)
    return run.finish()


def stores_what_nobody_sent(path: Path) -> Path:
    run = healthy(path)
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.advance(40)
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
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=(1,))
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


def counts_on_log_ends_of_an_earlier_term(
    path: Path, *, leads_in_between: bool = True, switches: dict[str, str] | None = None
) -> Path:
    """S43: another broker leads in between, of which the first leader hears when it leads again."""
    run = healthy(path, switches=switches)
    run.lead()
    before = run.partitions["orders", 0].leader_epoch
    if leads_in_between:
        run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR)
    run.alter(reason="elect_leaders", leader=0, election=e.Election.ISR)
    run.send(acks=1)
    run.advance(40, old=30, learned_in=before)
    return run.finish()


def leader_is_no_member(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(1, 2))
    return run.finish()


def controller_goes_by_a_smaller_min_isr(path: Path, switches: dict[str, str] | None = None) -> Path:
    """S42: as if another partition of the topic had one replica. Who leaves the ISR would not be eligible."""
    run = healthy(path, switches=switches)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1), effective_min_isr=1)
    run.expand((0, 1, 2))
    return run.finish()


def isr_and_elr_overlap(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=(0,))
    return run.finish()


def isr_has_a_stranger(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 7))
    return run.finish()


def elr_has_a_stranger(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=(1, 7))
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


def unclean_broker_is_never_removed(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.unfence(2)
    return run.finish()


def unclean_broker_stays_without_the_feature(path: Path) -> Path:
    run = healthy(path)
    set_elr_level(run, 0)
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


def unclean_broker_returns_after_a_topic_is_gone(path: Path) -> Path:
    run = healthy(path)
    run.end(2, e.IncarnationEnd.KILLED)
    for node in (0, 1):
        drop_log(run, node)
    delete_topic(run, ORDERS_ID)
    run.restart(2)
    drop_log(run, 2)
    del run.partitions["orders", 0]
    run.unfence(2)
    run.create_topic("bills")
    run.send("bills")
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
    run.advance(40)
    run.operate(batch, outcome=OperationType.INFO)
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


def loses_a_batch_across_a_restart(path: Path, end: e.IncarnationEnd) -> Path:
    """A follower's next process has a batch less, one that nobody else had."""
    run = healthy(path)
    if end is e.IncarnationEnd.KILLED:
        run.fault("kill", "2")
    else:
        run.alter(reason="controlled_shutdown", broker=2, isr=(0, 1))
    lost = run.new_batch()
    run.append(2, lost)
    run.operate(lost, outcome=OperationType.INFO)
    run.logs[2, "orders", 0].pop()
    run.end(2, end)
    run.restart(2, clean=end is e.IncarnationEnd.STOPPED)
    if end is e.IncarnationEnd.KILLED:
        run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)
    run.expand((0, 1, 2))
    return run.finish()


def power_loss_undoes_a_truncation(path: Path, *, truncation_sync: str) -> Path:
    """S35: a follower's log is cut and continued, and after a power loss the batch that was cut off is there again."""
    run = healthy(path, switches={"truncation_sync": truncation_sync})
    kept = list(run.logs[2, "orders", 0])
    run.truncate(2, 20)
    other = msgspec.structs.replace(run.new_batch(), base_offset=20)
    run.append(2, other)
    run.operate(other, outcome=OperationType.INFO)
    run.power_loss(2, keep=30)
    run.logs[2, "orders", 0] = kept
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)
    run.expand((0, 1, 2))
    return run.finish()


def killed_with_an_unseen_deletion(path: Path) -> Path:
    run = healthy(path)
    run.fault("kill", "2")
    run.alter(reason="reassignment", removing=(2,))
    run.alter(reason="reassignment", leader=0, election=e.Election.ISR, replicas=(0, 1), isr=(0, 1))
    del run.logs[2, "orders", 0]
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.unfence(2)
    return run.finish()


def killed_with_an_unseen_batch(path: Path) -> Path:
    run = healthy(path)
    run.fault("kill", "2")
    batch = run.new_batch()
    run.append(0, batch, leader=True)
    run.append(1, batch)
    run.operate(batch, outcome=OperationType.INFO)
    run.logs[2, "orders", 0].append(batch)
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)
    run.expand((0, 1, 2))
    run.advance(40)
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
    run.expand((1, 2, 0))
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
    reseal(directory)
    return directory


def appended_in_vain_and_again(path: Path) -> Path:
    """A deposed leader cuts off its copy of a batch that its successor was sent again, for the same offset."""
    run = healthy(path)
    late = run.new_batch()
    run.append(0, late, leader=True)
    run.fault("isolate", "0")
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    again = msgspec.structs.replace(late, leader_epoch=1)
    run.append(1, again, leader=True)
    run.append(2, again)
    run.answer(again)
    run.operate(again)
    run.alter(reason="elect_leaders", leader=2, election=e.Election.ISR, isr=(1, 2))
    run.heal("isolate", "0")
    run.unfence(0)
    run.truncate(0, late.base_offset)
    run.append(0, again)
    run.expand((1, 2, 0))
    run.poll([again])
    return run.finish()


def cut_off_by_two_of_whom_one_leads_later(path: Path) -> Path:
    """A leader commits what it has, not what it had at those offsets before it truncated."""
    run = healthy(path)
    late = run.new_batch()
    run.append(0, late, leader=True)
    run.append(1, late)
    run.operate(late, outcome=OperationType.INFO)
    run.fault("isolate", "0")
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=2, election=e.Election.ISR, isr=(1, 2))
    run.truncate(1, late.base_offset)
    batches = [run.send()]
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR, isr=(1, 2))
    batches.append(run.send())
    run.alter(reason="elect_leaders", leader=2, election=e.Election.ISR, isr=(1, 2))
    run.heal("isolate", "0")
    run.unfence(0)
    run.truncate(0, late.base_offset)
    for batch in batches:
        run.append(0, batch)
    run.expand((1, 2, 0))
    run.poll(batches)
    return run.finish()


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


def refused_for_certain_and_stored(path: Path) -> Path:
    run = healthy(path)
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.advance(40)
    run.operate(batch, outcome=OperationType.FAIL)
    return run.finish()


def store_again(run: RunBuilder, batch: Batch) -> None:
    for node in (0, 1, 2):
        copy = msgspec.structs.replace(batch, base_offset=batch.last_offset + 1)
        run.append(node, copy, leader=node == 0)
    run.advance(batch.last_offset + 1 + batch.record_count)


def idempotent_batch_is_stored_twice(path: Path) -> Path:
    run = healthy(path)
    store_again(run, run.logs[0, "orders", 0][-1])
    return run.finish()


def batch_is_stored_more_often_than_sent(path: Path) -> Path:
    run = healthy(path)
    batch = run.new_batch(producer_id=-1)
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.operate(batch, acks=1, outcome=OperationType.INFO)
    store_again(run, batch)
    return run.finish()


def append_in_order(run: RunBuilder, sequences: tuple[int, ...]) -> None:
    """Three brokers append batches with these sequence numbers, in this order."""
    for sequence in sequences:
        run.sent = sequence - 1
        batch = run.new_batch()
        for node in (0, 1, 2):
            run.append(node, batch, leader=node == 0)
        run.operate(batch, outcome=OperationType.INFO)
        run.advance(batch.last_offset + 1)


def consumer_starts_within_a_batch(path: Path) -> Path:
    run = healthy(path)
    batch = run.send()
    run.poll([batch], position=batch.base_offset + 3, seek=True)
    return run.finish()


def sequence_numbers_fall(path: Path) -> Path:
    run = healthy(path)
    append_in_order(run, (9, 8))
    return run.finish()


def sequence_numbers_wrap(path: Path) -> Path:
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    append_in_order(run, (2**31 - 1, 1))
    run.send()
    return run.finish()


def consumer_gets_what_is_not_committed(path: Path) -> Path:
    run = healthy(path)
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.operate(batch, outcome=OperationType.INFO)
    run.poll([batch])
    return run.finish()


def consumer_gets_what_is_not_committed_in_the_next_topic(path: Path) -> Path:
    """The topic that had the name before had a high watermark of 30."""
    run = topic_is_created_again(path)
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.operate(batch, outcome=OperationType.INFO)
    run.poll([], error="OFFSET_OUT_OF_RANGE")
    run.poll([batch], position=0, seek=True)
    return run.finish()


def nobody_reads_what_was_acknowledged(path: Path) -> Path:
    run = healthy(path)
    run.send()
    run.poll(run.logs[0, "orders", 0][:3], process="final", phase="final", position=0, seek=True)
    run.final_read("orders", 0, end_offset=40)
    run.stop_all()
    return run.write()


def consumer_is_sent_back(path: Path) -> Path:
    run = healthy(path)
    run.poll([], position=30, error="OFFSET_OUT_OF_RANGE")
    run.poll(run.logs[0, "orders", 0], position=0, seek=True)
    return run.finish()


def consumer_is_sent_back_from_deleted_records(path: Path) -> Path:
    """A leader deletes, and the next one has not heard of that."""
    run = healthy(path)
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", None),))
    run.send()
    run.send()
    run.alter(reason="elect_leaders", leader=2, election=e.Election.ISR)
    run.follow(2, 50)
    run.delete(2, 40)
    run.alter(reason="elect_leaders", leader=0, election=e.Election.ISR)
    run.poll([], position=30, error="OFFSET_OUT_OF_RANGE")
    run.poll(run.logs[0, "orders", 0], position=0, seek=True)
    return run.finish()


def fenced_broker_joins_the_isr(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.fault("isolate", "2")
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.expand((0, 1, 2))
    return run.finish()


def candidate_is_forgotten(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.expand((0, 1))
    run.accept((0,))
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=())
    return run.finish()


def candidate_is_forgotten_for_the_same_min_isr(path: Path) -> Path:
    """The cluster's min ISR is set, and the topic has its own: nothing has changed for it."""
    run = healthy(path)
    run.expand((0, 1))
    run.fence(1)
    run.alter(reason="broker_fenced", broker=1, isr=(0,), elr=(1,))
    run.alter(reason="min_isr_changed", isr=(0,), elr=())
    return run.finish()


def leader_was_no_candidate(path: Path) -> Path:
    run = healthy(path)
    run.expand((0, 1))
    run.accept((0, 1, 2))
    run.partitions["orders", 0].isr = (0, 1, 2)
    run.alter(reason="elect_leaders", leader=2, election=e.Election.ELR, isr=(2,), elr=(0, 1))
    return run.finish()


def leader_from_the_elr_beside_an_isr(path: Path) -> Path:
    run = healthy(path)
    run.expand((0, 1))
    run.accept((0,))
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=(1,))
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ELR, isr=(0, 1), elr=())
    return run.finish()


def unclean_election_beside_a_candidate(path: Path) -> Path:
    run = healthy(path)
    run.fault("kill", "0")
    run.end(0, e.IncarnationEnd.KILLED)
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=2, election=e.Election.UNCLEAN, isr=(2,), recovery=RECOVERING)
    run.expand((2,))
    return run.finish()


def elect_uncleanly(run: RunBuilder) -> None:
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,), recovery=RECOVERING)
    run.note(
        1,
        e.RecoveryStarted(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            leader_epoch=LeaderEpoch(1),
            partition_epoch=PartitionEpoch(1),
            log_start_offset=Offset(0),
            log_end_offset=Offset(30),
        ),
    )


def finish_recovery(run: RunBuilder) -> None:
    run.note(
        1,
        e.RecoveryFinished(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            leader_epoch=LeaderEpoch(1),
            scanned_from=Offset(0),
            batch_count=3,
            producer_count=1,
            old_end_offset=Offset(30),
            log_end_offset=Offset(30),
            duration_ms=1,
        ),
    )


def uncleanly_elected_leader_recovers(path: Path) -> Path:
    run = healthy(path)
    elect_uncleanly(run)
    finish_recovery(run)
    run.expand((1,))
    run.expand((0, 1, 2))
    run.send()
    return run.finish()


def recovery_compares_logs(
    path: Path,
    *answers: tuple[int, int, int],
    strategy: RecoveryStrategy = RecoveryStrategy.BALANCED,
    configured: RecoveryStrategy | None = None,
    asked: tuple[str, ...] = (),
    told: tuple[int, ...] = (),
    told_later: tuple[int, ...] = (),
    broker_epoch: int | None = None,
    after_s: float | None = None,
    up: tuple[int, ...] = (0, 1, 2),
    slow_disk: int | None = None,
    switches: dict[str, str] | None = None,
) -> Path:
    """Everybody was gone; broker 1 is elected by what replicas answered: broker, epoch and end of its log.

    Brokers that ``told`` say where their logs ended, and those that ``told_later`` that they heard of the election. The
    controller says that it began to ask where it took so long (``after_s``), and only who is ``up`` can lead then. The
    disk of a node may have been slow meanwhile (``slow_disk``).
    """
    run = healthy(path, switches=switches)
    if slow_disk is not None:
        run.fault("slow_disk", str(slow_disk))
    if configured is not None:
        run.configure("orders", "unclean.recovery.strategy", configured.value)
    for broker in (0, 1, 2):
        run.fault("isolate", str(broker))
        run.fence(broker)
    run.alter(
        reason="broker_registered",
        broker=0,
        leader=None,
        election=e.Election.NO_CANDIDATE,
        isr=(),
        elr=(),
        last_known_leader=0,
    )
    for broker in told:
        run.follow_leader(broker)
    for broker in up:
        run.unfence(broker)
    offset = MetadataOffset(run.metadata_offset)
    if after_s is not None:
        run.at(1_000)
        run.note(
            CONTROLLER,
            e.UncleanRecoveryStarted(
                cause_id=CAUSE,
                topic="orders",
                partition=0,
                topic_id=ORDERS_ID,
                leader_epoch=LeaderEpoch(1),
                strategy=strategy,
                origin=RecoveryOrigin.CONFIGURED,
                must_hear_from=(),
            ),
        )
        run.at(1_000 + after_s)
    elect_uncleanly(run)
    for broker in told_later:
        run.follow_leader(broker)
    run.note(
        CONTROLLER,
        e.UncleanLeaderElected(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            metadata_offset=offset,
            leader=BrokerId(NodeId(1)),
            leader_epoch=LeaderEpoch(2),
            method=e.UncleanMethod.LONGEST_LOG,
            strategy=strategy,
            candidates=tuple(BrokerId(NodeId(broker)) for broker, _, _ in answers),
            draw=None,
            must_hear_from=(),
            answers=tuple(
                e.ReplicaAnswer(
                    BrokerId(NodeId(broker)),
                    BrokerEpoch(run.epochs[broker] if broker_epoch is None else broker_epoch),
                    LeaderEpoch(epoch),
                    Offset(end),
                )
                for broker, epoch, end in answers
            ),
            discarded=(),
            why="test",
        ),
    )
    for broker in {0, 1, 2} - set(up):
        run.unfence(broker)
    for name in asked:
        run.step("elect_leaders", unclean=(name,))
    finish_recovery(run)
    run.expand((1,))
    run.expand((0, 1, 2))
    return run.finish()


def recovering_leader_has_company(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    elect_uncleanly(run)
    run.accept((0, 1, 2))
    run.alter(reason="alter_partition", broker=1, isr=(0, 1, 2))
    finish_recovery(run)
    run.expand((0, 1, 2))
    return run.finish()


def recovered_without_its_leader(path: Path) -> Path:
    run = healthy(path)
    elect_uncleanly(run)
    run.alter(reason="broker_unfenced", broker=0, recovery=RECOVERED)
    return run.finish()


def leader_appends_while_it_recovers(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    elect_uncleanly(run)
    batch = run.new_batch()
    run.append(1, batch, leader=True)
    run.operate(batch, outcome=OperationType.INFO)
    finish_recovery(run)
    run.expand((1,))
    for node in (0, 2):
        run.append(node, batch)
    run.expand((0, 1, 2))
    run.advance(40)
    return run.finish()


def stranger_alters_the_isr(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.accept((0, 1), sender=1)
    run.alter(reason="alter_partition", broker=1, isr=(0, 1))
    return run.finish()


def member_of_an_old_incarnation_is_added(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    run.fault("kill", "2")
    run.end(2, e.IncarnationEnd.KILLED)
    old = run.epochs[2]
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.restart(2, clean=True)
    run.unfence(2)
    run.accept((0, 1, 2), epochs={2: old})
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2))
    return run.finish()


def isr_grows_by_itself(path: Path) -> Path:
    run = healthy(path)
    run.expand((0, 1))
    run.alter(reason="broker_unfenced", broker=2, isr=(0, 1, 2))
    return run.finish()


def broker_epoch_is_given_twice(path: Path) -> Path:
    run = healthy(path)
    run.register(2, epoch=run.epochs[2])
    return run.finish()


def broker_follows_what_was_never_committed(path: Path) -> Path:
    run = healthy(path)
    run.note(
        1,
        e.BecameFollower(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            leader=BrokerId(NodeId(0)),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(4),
            log_end_offset=Offset(30),
            high_watermark=Offset(30),
        ),
    )
    return run.finish()


def two_controllers_tell_two_stories(path: Path) -> Path:
    run = healthy(path)
    run.expand((0, 1))
    run.fault("kill", str(CONTROLLER))
    run.end(CONTROLLER, e.IncarnationEnd.KILLED)
    run.start(CONTROLLER, role="controller")
    run.metadata_offset -= 1
    run.unfence(2)
    return run.finish()


VOTERS = (CONTROLLER, 101, 102)


def three_controllers(path: Path, spoil: Callable[[RunBuilder, int], None] | None = None) -> Path:
    """Three controllers agree on the metadata, unless something is spoilt, by run and last offset."""
    run = healthy(path)
    for node in VOTERS[1:]:
        run.start(node, role="controller")
    run.elect(CONTROLLER, quorum_epoch=1)
    run.vote(101, quorum_epoch=1, candidate=CONTROLLER)
    followed = e.QuorumLeaderFollowed(
        cause_id=CAUSE, directory_id="disk-102", quorum_epoch=LeaderEpoch(1), leader=NodeId(CONTROLLER)
    )
    run.note(102, followed)
    run.expand((0, 1))
    run.read_all()
    last = run.metadata_offset - 1
    run.commit_metadata(CONTROLLER, last + 1, is_leader=True)
    run.commit_metadata(101, last + 1)
    run.voter_logs = {node: run.metadata_batches() for node in VOTERS}
    if spoil is not None:
        spoil(run, last)
    run.stop_all()
    return run.write()


def another_leads_the_epoch(run: RunBuilder, last: int) -> None:
    run.elect(102, quorum_epoch=1, end=last + 1)


def voter_votes_twice(run: RunBuilder, _: int) -> None:
    run.vote(101, quorum_epoch=1, candidate=102)


def another_batch(run: RunBuilder, node: int, place: int, *, leader_epoch: int = 1) -> None:
    """Something else stands in a voter's log, of the same length."""
    batch = run.voter_logs[node][place]
    value = metadata_value("another", run.records[batch.base_offset])
    run.voter_logs[node][place] = msgspec.structs.replace(
        batch, values=(value,), leader_epoch=LeaderEpoch(leader_epoch)
    )


def epochs_of_a_log_fall(run: RunBuilder, _: int) -> None:
    another_batch(run, 102, -2, leader_epoch=2)


def elected_without_the_last_record(run: RunBuilder, last: int) -> None:
    run.elect(102, quorum_epoch=2, end=last)


def forgotten_record_has_a_successor(run: RunBuilder, last: int) -> None:
    """Controller 102 was elected without the last record, and decided something else in its place."""
    run.elect(102, quorum_epoch=2, end=last)
    unfenced = e.BrokerUnfenced(
        cause_id=CAUSE,
        metadata_offset=MetadataOffset(last),
        broker_id=BrokerId(NodeId(2)),
        broker_epoch=BrokerEpoch(run.epochs[2]),
    )
    run.note(102, unfenced)
    run.commit_metadata(102, last + 1, quorum_epoch=2, is_leader=True)


def last_leader_lost_the_last_record(run: RunBuilder, _: int) -> None:
    run.voter_logs[CONTROLLER].pop()


def epoch_falls(run: RunBuilder, last: int) -> None:
    run.vote(102, quorum_epoch=5, candidate=102)
    run.vote(102, quorum_epoch=4, candidate=101)


def committed_metadata_falls(run: RunBuilder, last: int) -> None:
    run.commit_metadata(101, last)


def committed_metadata_is_cut(run: RunBuilder, last: int) -> None:
    cut = e.MetadataTruncated(
        cause_id=CAUSE,
        directory_id="disk-101",
        quorum_epoch=LeaderEpoch(1),
        old_end_offset=MetadataOffset(last + 1),
        new_end_offset=MetadataOffset(last),
    )
    run.note(101, cut)


def disk_of_the_last_leader_is_replaced(run: RunBuilder, _: int) -> None:
    run.end(CONTROLLER, e.IncarnationEnd.KILLED)
    run.fault("kill", str(CONTROLLER))
    run.fault("replace_disk", str(CONTROLLER))
    run.voter_logs[CONTROLLER] = []


def controller_loses_power_before_it_syncs(run: RunBuilder, _: int) -> None:
    run.fault("power_loss", "101")
    run.end(101, e.IncarnationEnd.POWER_LOST)
    run.voter_logs[101].pop()


def new_topic_has_old_data(path: Path) -> Path:
    run = healthy(path)
    run.note(
        1,
        e.LogOpened(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=TopicId("another-id"),
            is_clean=False,
            log_start_offset=Offset(0),
            log_end_offset=Offset(30),
            high_watermark=Offset(30),
            recovery_point=Offset(0),
            epochs=((LeaderEpoch(0), Offset(0)),),
        ),
    )
    return run.finish()


def acked_by_a_leader_of_the_topic_before(path: Path) -> Path:
    """S41: a producer that knows of the new topic is answered by a leader that has not heard of it."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.answer(batch)
    delete_topic(run, ORDERS_ID)
    for node in (0, 1, 2):
        drop_log(run, node)
    run.create_topic(topic_id="new-id")
    run.operate(batch)
    return run.finish()


def candidate_returns_with_less(path: Path) -> Path:
    """Broker 2 is eligible, was killed, which loses nothing, and has lost a batch all the same."""
    run = healthy(path)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.alter(reason="broker_fenced", broker=1, isr=(0,), elr=(1,))
    run.alter(
        reason="broker_fenced", broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(0, 1),
    )  # fmt: skip
    run.end(1, e.IncarnationEnd.KILLED)
    lost = run.logs[1, "orders", 0].pop()
    run.restart(1, clean=True)
    run.unfence(1)
    run.append(1, lost)
    run.alter(reason="broker_unfenced", broker=0, leader=0, election=e.Election.ELR, isr=(0,), elr=(1,))
    return run.finish()


def open_again(run: RunBuilder, **values: object) -> None:
    """Broker 2 says that it opened its log, with these values."""
    opened = e.LogOpened(
        cause_id=CAUSE,
        topic="orders",
        partition=0,
        topic_id=ORDERS_ID,
        is_clean=True,
        log_start_offset=Offset(0),
        log_end_offset=Offset(30),
        high_watermark=Offset(30),
        recovery_point=Offset(0),
        epochs=((LeaderEpoch(0), Offset(0)),),
    )
    run.note(2, msgspec.structs.replace(opened, **values))


def log_is_opened_with_falling_epochs(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    open_again(run, epochs=((LeaderEpoch(1), Offset(0)), (LeaderEpoch(0), Offset(10))))
    return run.finish()


def log_is_opened_without_epochs(path: Path) -> Path:
    run = healthy(path)
    open_again(run, epochs=())
    return run.finish()


def log_is_opened_beyond_its_high_watermark(path: Path) -> Path:
    run = healthy(path)
    open_again(run, log_start_offset=Offset(20), high_watermark=Offset(10))
    return run.finish()


def records_are_deleted(path: Path, *, asked: int | None = 20, deleted: int = 20, partition: str = "orders-0") -> Path:
    """An administrator asks for the deletion of records, and all replicas raise their log starts."""
    run = healthy(path)
    run.step("delete_records", deletions=(e.RequestedDeletion(partition, None if asked is None else Offset(asked)),))
    return deleted_everywhere(run, deleted)


def records_are_deleted_for_a_client_of_kafka(path: Path) -> Path:
    run = healthy(path)
    run.relay(0, deletions=(e.RequestedDeletion("orders-0", Offset(20)),))
    return deleted_everywhere(run, 20)


def records_vanish_before_a_deletion(path: Path) -> Path:
    """All logs begin at 20 without a deletion, before an administrator asks for one up to 30."""
    run = healthy(path)
    for node in (0, 1, 2):
        del run.logs[node, "orders", 0][:2]
        run.starts[node, "orders", 0] = 20
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", Offset(30)),))
    return deleted_everywhere(run, 30)


def follower_begins_again_where_the_leaders_log_starts(path: Path) -> Path:
    run = healthy(path)
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", Offset(20)),))
    for node in (0, 1):
        run.follow(node, 30)
        run.delete(node, 20)
    run.truncate(2, 20, reason="restarted")
    run.append(2, run.logs[0, "orders", 0][-1])
    return run.finish()


def follower_cuts_off_what_was_deleted(path: Path, *, asked: int | None = None) -> Path:
    """A leader deletes records, and is killed before its new log start is on the disk; it cuts off what it had."""
    run = healthy(path, switches={"truncation": "high_watermark"})
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", None if asked is None else Offset(asked)),))
    copy = list(run.logs[0, "orders", 0])
    for node in (0, 1, 2):
        run.follow(node, 30)
        run.delete(node, 30)
    run.fault("kill", "0")
    run.end(0, e.IncarnationEnd.KILLED)
    run.logs[0, "orders", 0][:] = copy
    del run.starts[0, "orders", 0]
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.restart(0)
    run.unfence(0)
    run.truncate(0, 0, reason="high_watermark")
    run.truncate(0, 30, reason="restarted")
    run.expand((1, 2, 0))
    return run.finish()


def records_expire(path: Path, name: str, value: str) -> Path:
    run = healthy(path)
    run.configure("orders", name, value)
    return deleted_everywhere(run, 20)


def records_expire_in_a_long_run(path: Path, *, days: int) -> Path:
    run = healthy(path)
    run.configure("orders", "retention.ms", "604800000")
    run.at(days * 24 * 3600)
    return deleted_everywhere(run, 20)


def deleted_everywhere(run: RunBuilder, below: int) -> Path:
    for node in (0, 1, 2):
        run.follow(node, 30)
        run.delete(node, below)
    return run.finish()


def uncommitted_records_are_deleted(path: Path) -> Path:
    run = healthy(path)
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", None),))
    run.send(acks=1)
    run.send(acks=1)
    run.delete(0, 40)
    run.advance(50)
    return run.finish()


def advance_by(run: RunBuilder, *, committed: tuple[int, ...], maximal: tuple[int, ...]) -> None:
    """The leader appends a batch to all logs, and moves its high watermark by an ISR that it chooses."""
    batch = run.send(acks=1)
    members = tuple(BrokerId(NodeId(node)) for node in (0, 1, 2))
    end_offset = Offset(batch.last_offset + 1)
    run.note(
        0,
        e.HighWatermarkAdvanced(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            old=Offset(batch.base_offset),
            new=end_offset,
            leader_epoch=LeaderEpoch(0),
            log_end_offset=end_offset,
            committed_isr=tuple(members[node] for node in committed),
            maximal_isr=tuple(members[node] for node in maximal),
            joiners=(),
            effective_min_isr=2,
            replicas=tuple(e.ReplicaProgress(member, end_offset, LeaderEpoch(0)) for member in members),
        ),
    )


def leader_reckons_without_a_member(path: Path, switches: dict[str, str] | None = None) -> Path:
    """S07: it has asked to drop a member, and acts on that at once."""
    run = healthy(path, switches=switches)
    advance_by(run, committed=(0, 1, 2), maximal=(0, 1))
    return run.finish()


def propose(run: RunBuilder, isr: tuple[int, ...]) -> None:
    state = run.partitions["orders", 0]
    members = tuple(BrokerId(NodeId(node)) for node in isr)
    run.note(
        0,
        e.AlterPartitionProposed(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            leader_epoch=LeaderEpoch(state.leader_epoch),
            partition_epoch=PartitionEpoch(state.partition_epoch),
            committed_isr=tuple(BrokerId(NodeId(node)) for node in state.isr),
            proposed_isr=members,
            maximal_isr=members,
            broker_epochs=tuple(BrokerEpoch(run.epochs[node]) for node in isr),
        ),
    )


def leader_gives_up_what_the_controller_carries_out(path: Path, *, hears: bool = False) -> Path:
    """S45: a proposal was refused for all that the leader knows, and is carried out."""
    run = healthy(path)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    propose(run, (0, 1, 2))
    run.expand((0, 1, 2))
    if hears:
        run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
        end_offset = MetadataOffset(run.metadata_offset)
        run.note(0, e.MetadataApplied(cause_id=CAUSE, start_offset=MetadataOffset(0), end_offset=end_offset))
    advance_by(run, committed=(0, 1), maximal=(0, 1))
    return run.finish()


def leader_proposes_again_what_was_never_sent(path: Path) -> Path:
    """Its manager had no room for the first proposal, so the controller never had it to carry out."""
    run = healthy(path)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    propose(run, (0, 1, 2))
    advance_by(run, committed=(0, 1), maximal=(0, 1))
    propose(run, (0, 1, 2))
    run.expand((0, 1, 2))
    return run.finish()


def broker_is_behind_in_the_end(path: Path) -> Path:
    run = healthy(path)
    run.settle(behind=(2,))
    return run.finish()


def broker_is_fenced_in_the_end(path: Path) -> Path:
    run = healthy(path)
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.settle()
    return run.finish()


def partition_is_leaderless_in_the_end(path: Path) -> Path:
    run = healthy(path)
    run.alter(
        reason="broker_fenced", broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(0, 1, 2),
    )  # fmt: skip
    run.settle()
    return run.finish()


def replica_is_behind_in_the_end(path: Path) -> Path:
    run = healthy(path)
    run.send(acks=1, to=(0, 1))
    run.advance(40)
    run.settle()
    return run.finish()


def replica_stops_before_it_fetches_what_nobody_could_read(path: Path) -> Path:
    run = healthy(path)
    run.settle()
    read = list(run.logs[0, "orders", 0])
    run.poll(read, process="final", phase="final", position=0, seek=True)
    run.send(acks=1, to=(0, 1))
    run.final_read("orders", 0, end_offset=read[-1].last_offset + 1)
    run.stop_all()
    return run.write()


def everything_settles(path: Path) -> Path:
    run = healthy(path)
    run.settle()
    return run.finish()


def log_is_used_for_another_topic(path: Path, switches: dict[str, str] | None = None) -> Path:
    """S27: a broker follows a topic with the log of the topic that had its name before, and never opened its own."""
    run = RunBuilder(path, switches=switches)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    delete_topic(run, ORDERS_ID)
    for node in (0, 1):
        drop_log(run, node)
    kept = run.logs.pop((2, "orders", 0))
    run.create_topic(topic_id="new-id", replicas=(0, 1))
    run.alter(reason="reassignment", replicas=(0, 1, 2), adding=(2,))
    run.logs[2, "orders", 0] = kept
    run.follow_leader(2)
    run.expand((0, 1, 2))
    for node in (0, 1):
        run.append(node, kept[0], leader=node == 0)
    run.operate(kept[0], outcome=OperationType.INFO)
    for line in run.history[-2:]:
        line["operation_id"] = "send-again"
    run.send()
    return run.finish()


def reassigning(path: Path, switches: dict[str, str] | None = None) -> RunBuilder:
    """Replica 2 is to be replaced by 3, which has everything already."""
    run = RunBuilder(path, switches=switches)
    run.start_brokers(0, 1, 2, 3)
    run.create_topic()
    for batch in [run.send() for _ in range(3)]:
        run.poll([batch])
    run.alter(reason="reassignment", replicas=(0, 1, 3, 2), adding=(3,), removing=(2,))
    run.logs[3, "orders", 0] = []
    run.open(3)
    for batch in run.logs[0, "orders", 0]:
        run.append(3, batch)
    return run


def complete(run: RunBuilder, *, isr: tuple[int, ...], leader: int | str) -> None:
    run.accept((0, 1, 2, 3))
    run.alter(reason="alter_partition", broker=0, isr=isr, replicas=(0, 1, 3), leader=leader, election=e.Election.ISR)
    run.settle()


def delete_topic(run: RunBuilder, topic_id: str) -> None:
    offset = MetadataOffset(run.metadata_offset)
    run.note(
        CONTROLLER, e.TopicDeleted(cause_id=CAUSE, metadata_offset=offset, topic="orders", topic_id=TopicId(topic_id))
    )
    run.metadata_offset += 1


def drop_log(run: RunBuilder, node: int, topic_id: TopicId = ORDERS_ID) -> None:
    run.note(
        node,
        e.LogDeleted(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=topic_id,
            reason=LogDeletedReason.DELETED,
            log_end_offset=Offset(30),
        ),
    )
    del run.logs[node, "orders", 0]


def reassignment_completes(path: Path) -> Path:
    run = reassigning(path)
    complete(run, isr=(0, 1, 3), leader=0)
    drop_log(run, 2)
    return run.finish()


def reassignment_is_under_way(path: Path) -> Path:
    return reassigning(path).finish()


def reassignment_is_left_half_way(path: Path) -> Path:
    run = reassigning(path)
    run.settle()
    return run.finish()


def reassignment_completes_without_its_new_replica(path: Path) -> Path:
    run = reassigning(path)
    complete(run, isr=(0, 1), leader=0)
    drop_log(run, 2)
    return run.finish()


def reassignment_completes_without_an_old_replica(path: Path, *, switches: dict[str, str] | None = None) -> Path:
    run = reassigning(path, switches)
    run.accept((0, 1, 2, 3))
    run.alter(reason="alter_partition", broker=0, isr=(0, 3), replicas=(0, 1, 3), leader=0, election=e.Election.ISR)
    run.accept((0, 1, 3))
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 3))
    run.settle()
    drop_log(run, 2)
    return run.finish()


def reassignment_completes_below_min_isr(path: Path, *, switches: dict[str, str] | None = None) -> Path:
    run = reassigning(path, switches)
    run.follow(3, 30)
    run.accept((0, 1, 2, 3))
    run.alter(
        reason="alter_partition", broker=0, isr=(3,), elr=(0, 1), replicas=(0, 1, 3), leader=3, election=e.Election.ISR
    )
    for isr in ((3, 0), (3, 0, 1)):
        run.accept(isr)
        run.alter(reason="alter_partition", broker=3, isr=isr, elr=())
    run.settle()
    drop_log(run, 2)
    return run.finish()


def reassignment_completes_with_an_unclean_leader(path: Path, *, switches: dict[str, str] | None = None) -> Path:
    """Every target was in sync before the change that completes it and elects another leader than the ISR's."""
    run = reassigning(path, switches)
    run.accept((0, 1, 2, 3))
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2, 3), adding=(3,), removing=(2,))
    run.alter(
        reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,), replicas=(0, 1, 3), recovery=RECOVERING
    )
    run.expand((1,))
    run.expand((1, 0, 3))
    run.settle()
    drop_log(run, 2)
    return run.finish()


def replica_leaves_in_the_same_epoch(path: Path) -> Path:
    run = reassigning(path)
    complete(run, isr=(0, 1, 3), leader="same")
    drop_log(run, 2)
    return run.finish()


def reassignment_is_called_off(
    path: Path, *, isr: tuple[int, ...], elr: tuple[int, ...] = (), switches: dict[str, str] | None = None
) -> Path:
    run = reassigning(path, switches)
    run.accept(isr)
    run.alter(
        reason="alter_partition", broker=0, isr=isr, elr=elr, replicas=(0, 1, 3, 2), adding=(3,), removing=(2,)
    )  # fmt: skip
    run.alter(reason="reassignment", replicas=(0, 1, 2), leader=0, election=e.Election.ISR)
    drop_log(run, 3)
    return run.finish()


def reassignment_is_called_off_under_min_isr(path: Path, switches: dict[str, str] | None = None) -> Path:
    return reassignment_is_called_off(path, isr=(0,), elr=(1, 2), switches=switches)


def cancellation_hands_the_isr_over(path: Path, switches: dict[str, str] | None = None) -> Path:
    """S39: called off with nobody in sync but the replica that was being added; a fenced one is put into the ISR."""
    run = reassigning(path, switches)
    for isr, elr in (((0, 1, 3), ()), ((0, 3), ())):
        run.accept(isr)
        run.alter(
            reason="alter_partition", broker=0, isr=isr, elr=elr, replicas=(0, 1, 3, 2), adding=(3,), removing=(2,)
        )  # fmt: skip
    run.alter(reason="elect_leaders", leader=3, election=e.Election.ISR, adding=(3,), removing=(2,))
    run.accept((3,))
    run.alter(reason="alter_partition", broker=3, isr=(3,), elr=(0,), adding=(3,), removing=(2,))
    run.fault("isolate", "1")
    run.fence(1)
    run.alter(
        reason="reassignment", replicas=(1, 0, 2), leader=None, election=e.Election.NO_CANDIDATE, isr=(1,), elr=(0,)
    )  # fmt: skip
    drop_log(run, 3)
    run.unfence(1)
    run.alter(reason="broker_unfenced", broker=1, leader=1, election=e.Election.ISR)
    run.expand((0, 1, 2))
    return run.finish()


def broker_removes_its_own_log(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = healthy(path, switches=switches)
    drop_log(run, 2)
    run.logs[2, "orders", 0] = []
    run.open(2)
    return run.finish()


def applied(run: RunBuilder, node: int) -> None:
    end = MetadataOffset(run.metadata_offset)
    run.note(node, e.MetadataApplied(cause_id=CAUSE, start_offset=MetadataOffset(0), end_offset=end))


def broker_keeps_a_stray_unnoticed(path: Path) -> Path:
    run = reassigning(path)
    complete(run, isr=(0, 1, 3), leader=0)
    applied(run, 2)
    return run.finish()


def broker_notices_a_stray(path: Path) -> Path:
    run = reassigning(path)
    complete(run, isr=(0, 1, 3), leader=0)
    applied(run, 2)
    run.note(
        2,
        e.StrayDetected(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            reason=StrayReason.NOT_A_REPLICA,
            action=StrayCleanup.DELETE,
            log_end_offset=Offset(30),
        ),
    )
    return run.finish()


def set_feature_level(run: RunBuilder, name: str, level: int) -> None:
    run.note(
        CONTROLLER,
        e.FeatureChanged(
            cause_id=CAUSE, metadata_offset=MetadataOffset(run.metadata_offset), name=name, feature_level=level
        ),
    )
    run.metadata_offset += 1


def set_elr_level(run: RunBuilder, level: int) -> None:
    set_feature_level(run, "eligible.leader.replicas.version", level)


def unclean_leader_of_a_metadata_version(path: Path, level: int) -> Path:
    """It does not recover; before 3.2-IV0, level 3, there was no such state."""
    run = healthy(path)
    set_feature_level(run, "metadata.version", level)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,))
    run.expand((0, 1, 2))
    return run.finish()


def eligible_leader_replicas_are_downgraded(path: Path) -> Path:
    """A fenced last member may stay in the ISR again, and nobody is eligible beside it."""
    run = healthy(path)
    run.expand((0, 1))
    set_elr_level(run, 0)
    run.expand((0,))
    run.fault("isolate", "0")
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=(0,))
    run.unfence(0)
    run.alter(reason="broker_unfenced", broker=0, leader=0, election=e.Election.ISR, isr=(0,))
    return run.finish()


def fenced_member_stays_past_an_upgrade(path: Path) -> Path:
    """It was in the ISR when nobody asked, and another change leaves it there."""
    run = healthy(path)
    run.expand((0, 1))
    set_elr_level(run, 0)
    run.expand((0,))
    run.fault("isolate", "0")
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=(0,))
    set_elr_level(run, 1)
    run.alter(reason="elect_leaders", leader=None, isr=(0,))
    run.unfence(0)
    run.alter(reason="broker_unfenced", broker=0, leader=0, election=e.Election.ISR, isr=(0,))
    return run.finish()


def broker_deletes_a_stray(path: Path, *, waited_ms: int) -> Path:
    """Its stray.delete.delay.ms is 1000."""
    run = reassigning(path)
    complete(run, isr=(0, 1, 3), leader=0)
    applied(run, 2)
    lines = run.files[2, run.incarnations[2]]
    lines[0]["properties"] = {"stray.delete.delay.ms": "1000"}
    run.note(
        2,
        e.StrayDetected(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            reason=StrayReason.NOT_A_REPLICA,
            action=StrayCleanup.DELETE,
            log_end_offset=Offset(30),
        ),
    )
    noticed_ns = lines[-1]["time_ns"]
    drop_log(run, 2)
    run.note(2, e.StrayDeleted(cause_id=CAUSE, topic="orders", partition=0, topic_id=ORDERS_ID))
    assert isinstance(noticed_ns, int)
    lines[-1]["time_ns"] = noticed_ns + waited_ms * 1_000_000
    return run.finish()


def new_topic_takes_the_log_over(path: Path) -> Path:
    """Strays that are left alone have the id of the topic that is gone in their files."""
    run = healthy(path, switches={"stray_cleanup": "off"})
    run.note(
        2,
        e.StrayDetected(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=TopicId("old-id"),
            reason=StrayReason.UNKNOWN_TOPIC,
            action=StrayCleanup.OFF,
            log_end_offset=Offset(0),
        ),
    )
    run.note(
        2,
        e.BecameFollower(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=ORDERS_ID,
            leader=BrokerId(NodeId(0)),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(0),
            log_end_offset=Offset(30),
            high_watermark=Offset(30),
        ),
    )
    finished = run.finish()
    metadata = finished / "nodes" / "2" / "data" / "orders-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: old-id\n")
    return finished


def new_topic_goes_on_with_the_log(path: Path, *, kept_batches: int) -> Path:
    """Strays are left alone: broker 2 was down while the topic was made again, and has the batches of the old one."""
    run = RunBuilder(path, switches={"stray_cleanup": "off"})
    run.start_brokers(0, 1, 2)
    run.create_topic()
    for _ in range(2):
        run.send()
    run.fault("kill", "2")
    run.end(2, e.IncarnationEnd.KILLED)
    run.fence(2)
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    for node in (0, 1):
        drop_log(run, node)
    delete_topic(run, ORDERS_ID)
    kept = run.logs.pop((2, "orders", 0))
    run.create_topic(topic_id="new-id", replicas=(0, 1))
    run.alter(reason="reassignment", replicas=(0, 1, 2), adding=(2,))
    run.restart(2, clean=True)
    run.unfence(2)
    stray = e.StrayDetected(
        cause_id=CAUSE,
        topic="orders",
        partition=0,
        topic_id=ORDERS_ID,
        reason=StrayReason.UNKNOWN_TOPIC,
        action=StrayCleanup.OFF,
        log_end_offset=Offset(20),
    )
    run.note(2, stray)
    run.note(
        2,
        e.BecameFollower(
            cause_id=CAUSE,
            topic="orders",
            partition=0,
            topic_id=TopicId("new-id"),
            leader=BrokerId(NodeId(0)),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(1),
            log_end_offset=Offset(20),
            high_watermark=Offset(0),
        ),
    )
    run.logs[2, "orders", 0] = kept[:kept_batches]
    finished = run.finish()
    metadata = finished / "nodes" / "2" / "data" / "orders-0" / "partition.metadata"
    metadata.write_text(f"version: 0\ntopic_id: {ORDERS_ID}\n")
    return finished


def client_behind_a_deleted_topic_loses(path: Path) -> Path:
    """The new topic loses a batch whose producer still told the id of the one before."""
    run = healthy(path)
    delete_topic(run, "old-id")
    run.send()
    for line in run.history[-2:]:
        line["topic_id"] = "old-id"
    run.poll(run.logs[0, "orders", 0][:3], process="final", phase="final", position=0, seek=True)
    run.final_read("orders", 0, end_offset=40)
    run.stop_all()
    return run.write()


def reader_was_given_it_of_the_topic_before(path: Path) -> Path:
    """The same bytes at the same offset, of the topic that had the name before; nobody reads those of the new one."""
    run = healthy(path)
    last = run.send()
    run.poll([last], position=last.base_offset, seek=True)
    run.history[-1]["topic_id"] = "old-id"
    partition = run.partitions["orders", 0]
    own_id, partition.topic_id = partition.topic_id, "old-id"
    at = Offset(last.base_offset)
    opened = e.LogOpened(
        cause_id=CAUSE,
        topic="orders",
        partition=0,
        topic_id=TopicId("old-id"),
        is_clean=True,
        log_start_offset=at,
        log_end_offset=at,
        high_watermark=at,
        recovery_point=at,
        epochs=((LeaderEpoch(0), at),),
    )
    run.note(0, opened)
    run.append(0, last, leader=True)
    run.follow(0, last.base_offset + last.record_count)
    run.logs[0, "orders", 0].pop()
    partition.topic_id = own_id
    delete_topic(run, "old-id")
    run.poll(run.logs[0, "orders", 0][:3], process="final", phase="final", position=0, seek=True)
    run.final_read("orders", 0, end_offset=40)
    run.stop_all()
    return run.write()


def client_is_behind_a_deleted_topic(path: Path) -> Path:
    """The topic was created again, and the clients still tell the id of the one before."""
    run = healthy(path)
    for node in (0, 1, 2):
        drop_log(run, node)
    delete_topic(run, ORDERS_ID)
    run.high_watermarks.clear()
    run.create_topic(topic_id="new-id")
    run.send()
    run.read_all()
    for line in run.history[-4:]:
        line["topic_id"] = ORDERS_ID
    run.stop_all()
    return run.write()


def topic_is_created_again(path: Path) -> RunBuilder:
    """A consumer has read the thirty records of a topic; the one that follows it has no records yet."""
    run = healthy(path)
    create_again(run)
    return run


def create_again(run: RunBuilder) -> None:
    for node in (0, 1, 2):
        drop_log(run, node)
    delete_topic(run, ORDERS_ID)
    run.high_watermarks.clear()
    run.create_topic(topic_id="new-id")


def consumer_goes_on_in_the_next_topic(path: Path, *, sent: int = 4) -> Path:
    run = topic_is_created_again(path)
    for _ in range(sent):
        run.send()
    run.poll(run.logs[0, "orders", 0][3:])
    return run.finish()


def consumer_begins_the_next_topic(path: Path, *, is_redirected: bool = False) -> Path:
    """It is out of range there, be it that the leader first names a follower that has no more."""
    run = topic_is_created_again(path)
    run.send()
    if is_redirected:
        run.poll([])
    run.poll([], error="OFFSET_OUT_OF_RANGE")
    run.poll(run.logs[0, "orders", 0], position=0, seek=True)
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


def beside_zookeeper(path: Path, switches: dict[str, str] | None = None) -> RunBuilder:
    run = zookeeper_run(path, switches=switches)
    run.create_topic()
    run.poll([run.send()])
    return run


def note_znode(run: RunBuilder, path: str, write: ZnodeWrite) -> None:
    offset = MetadataOffset(run.metadata_offset)
    run.note(CONTROLLER, e.ZnodeWritten(cause_id=CAUSE, metadata_offset=offset, path=path, write=write, session_id=1))
    run.metadata_offset += 1


def zookeeper_replica_is_removed(path: Path) -> Path:
    run = beside_zookeeper(path)
    note_znode(run, NOTIFICATION, ZnodeWrite.CREATED)
    note_znode(run, NOTIFICATION, ZnodeWrite.DELETED)
    run.alter(reason="reassignment", replicas=(0, 1), isr=(0, 1), leader=0, election=e.Election.ISR)
    drop_log(run, 2)
    run.settle()
    return run.finish()


def zookeeper_session_of_a_live_broker_expires(path: Path) -> Path:
    """The process registers again, long after it opened a log that was new then."""
    run = beside_zookeeper(path)
    run.alter(reason="elect_leaders", leader=0, isr=(0, 1, 2), election=e.Election.ISR)
    run.register(2)
    run.unfence(2)
    return run.finish()


def zookeeper_member_falls_short(path: Path, switches: dict[str, str] | None = None) -> Path:
    """The leader commits without a follower that was let go, and that is a member again when its epoch ends."""
    run = beside_zookeeper(path, switches)
    run.alter(reason="alter_partition", broker=0, isr=(0, 1))
    run.send()
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2))
    run.alter(reason="elect_leaders", isr=(0, 1), leader=0, election=e.Election.ISR)
    return run.finish()


def zookeeper_member_removes_its_log(path: Path, switches: dict[str, str] | None = None) -> Path:
    run = beside_zookeeper(path, switches)
    drop_log(run, 2)
    return run.finish()


def zookeeper_topic_is_made_again_and_a_member_removes_its_log(path: Path) -> Path:
    """The request to delete the topic before says nothing of the one that has its name now."""
    run = zookeeper_run(path)
    before = TopicId("orders-before")
    for topic_id in (before, ORDERS_ID):
        offset = MetadataOffset(run.metadata_offset)
        run.note(CONTROLLER, e.TopicCreated(cause_id=CAUSE, metadata_offset=offset, topic="orders", topic_id=topic_id))
        run.metadata_offset += 1
        run.create_topic(topic_id=topic_id)
        if topic_id is before:
            note_znode(run, "/admin/delete_topics/orders", ZnodeWrite.CREATED)
            for broker in (0, 1, 2):
                drop_log(run, broker, before)
            delete_topic(run, before)
            note_znode(run, "/admin/delete_topics/orders", ZnodeWrite.DELETED)
    run.poll([run.send()])
    drop_log(run, 2)
    return run.finish()


def zookeeper_notification_is_left(path: Path) -> Path:
    run = beside_zookeeper(path)
    note_znode(run, NOTIFICATION, ZnodeWrite.CREATED)
    run.settle()
    return run.finish()


def zookeeper_topic_gets_an_id_and_loses(path: Path) -> Path:
    """Records that were acknowledged before the topic had an id are gone when it has one."""
    run = zookeeper_run(path)
    run.create_topic(topic_id="~orders")
    run.poll([run.send()])
    run.partitions["orders", 0].topic_id = ORDERS_ID
    offset = MetadataOffset(run.metadata_offset)
    run.note(CONTROLLER, e.TopicCreated(cause_id=CAUSE, metadata_offset=offset, topic="orders", topic_id=ORDERS_ID))
    run.metadata_offset += 1
    for node in (0, 1, 2):
        run.truncate(node, 0)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR)
    run.poll([run.send()])
    return run.finish()


def zookeeper_leader_is_no_member(path: Path) -> Path:
    run = beside_zookeeper(path)
    run.alter(reason="alter_partition", broker=0, isr=(1, 2))
    return run.finish()


def zookeeper_leader_epoch_is_passed_over(path: Path) -> Path:
    run = beside_zookeeper(path)
    run.partitions["orders", 0].leader_epoch += 1
    run.alter(reason="broker_fenced", broker=0, leader=1)
    return run.finish()


def nothing_happens(path: Path) -> Path:
    """A controller starts; a producer never hears of what it sent."""
    run = RunBuilder(path)
    run.partitions["orders", 0] = Partition(
        topic="orders",
        partition=0,
        topic_id=ORDERS_ID,
        min_isr=2,
        leader=0,
        leader_epoch=0,
        partition_epoch=0,
        replicas=(0,),
        isr=(0,),
    )
    run.logs[0, "orders", 0] = []
    run.operate(run.new_batch(), outcome=OperationType.INFO)
    run.logs.clear()
    run.partitions.clear()
    return run.finish()


def client_of_kafka_sends_a_refused_batch_again(path: Path) -> Path:
    """Its idempotent producer keeps the batch as it is."""
    run = healthy(path)
    batch = run.new_batch()
    run.operate(batch, outcome=OperationType.FAIL, process="kafka:app@0-0.1", operation_id="first")
    for node in (0, 1, 2):
        run.append(node, batch, leader=node == 0)
    run.answer(batch)
    run.operate(batch, process="kafka:app@0-0.2")
    return run.finish()


def producer_is_refused(path: Path) -> Path:
    run = healthy(path)
    run.operate(run.new_batch(), outcome=OperationType.FAIL)
    return run.finish()


def _sealed(damaged: Batch) -> Batch:
    """A damaged batch under a CRC that makes it valid."""
    return msgspec.structs.replace(damaged, crc=crc32c(damaged.body))


def damaged_batch_is_consumed(path: Path) -> Path:
    """A follower gives a consumer what its disk made of the last batch."""
    run = healthy(path)
    run.poll([_sealed(run.damage(2))], process="consumer-1", position=20)
    return run.finish()


def damaged_batch_is_replicated(path: Path) -> Path:
    """A follower takes the batch from a damaged log, and nobody looks at its CRC."""
    run = healthy(path)
    damaged = run.damage(2)
    run.logs[1, "orders", 0][-1] = damaged
    return run.finish()


def damaged_batch_is_made_valid(path: Path) -> Path:
    """A follower appends the damaged batch under a CRC of its own."""
    run = healthy(path)
    sealed = _sealed(run.damage(2))
    run.truncate(1, 20)
    run.append(1, sealed)
    return run.finish()


def damage_is_found_by_recovery(path: Path) -> Path:
    """A broker that was killed finds a damaged batch as it opens its log, and fetches it again."""
    run = healthy(path)
    run.fault("kill", "2")
    run.end(2, e.IncarnationEnd.KILLED)
    run.fault("flip_bit", "2")
    run.damage(2)
    run.logs[2, "orders", 0].pop()
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)
    run.append(2, run.logs[0, "orders", 0][-1])
    run.expand((0, 1, 2))
    return run.finish()


def damage_is_never_noticed(path: Path) -> Path:
    """A follower goes on with a damaged batch in its log, which nobody asks it for."""
    run = healthy(path)
    run.fault("flip_bit", "2")
    run.damage(2)
    run.poll([run.send()])
    run.settle()
    return run.finish()


DELETED = frozenset({"D1", "D4", "D5", "E1"})
"""Checks that fire where more is deleted than anybody wanted."""


def transaction_in_two_partitions(
    path: Path,
    *,
    commits: tuple[bool | None, bool | None] = (True, True),
    result: str = "commit",
    is_given: tuple[bool, bool] = (True, True),
    jumps: int = 0,
    reads_as_member: bool = False,
) -> Path:
    """A producer is told that a transaction is over, and a reader of committed records goes past it.

    Args:
        path: of the run.
        commits: whether each partition has a commit, an abort, or no end.
        result: that the producer was told.
        is_given: whether the reader is given what is in each partition.
        jumps: offsets that the reader leaves out after its first answer.
        reads_as_member: a member of a group is given what is in the first partition.
    """
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.create_topic("payments")
    topics = ("orders", "payments")
    sends = [run.send(topic, attributes=TRANSACTIONAL) for topic in topics]
    for topic, commit in zip(topics, commits, strict=True):
        if commit is not None:
            run.end_transaction(topic, commits=commit)
    run.transaction(sends, result=result)
    for topic, batch, given in zip(topics, sends, is_given, strict=True):
        end = batch.last_offset + 2
        run.read_committed([batch] if given else [], topic, position=0, next_position=end)
        run.read_committed([], topic, position=end + jumps, next_position=end + jumps + 1)
        run.poll([batch], topic)
    if reads_as_member:
        run.member_reads("member-0", 1, sends[0], committed=None)
    run.settle()
    return run.finish()


def transaction_is_read_early(path: Path, *, by_member: bool = False) -> Path:
    """A reader of committed records is given a batch of a transaction whose producer still sends another."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    first = run.send(attributes=TRANSACTIONAL)
    if by_member:
        run.member_reads("member-0", 1, first, committed=None)
    else:
        run.read_committed([first], position=0, next_position=10)
    second = run.send(attributes=TRANSACTIONAL)
    run.end_transaction(commits=True)
    run.transaction([first, second], result="commit")
    if by_member:
        run.read_committed([first], position=0, next_position=10)
    run.read_committed([second], position=10, next_position=21)
    run.poll([first, second])
    run.settle()
    return run.finish()


def transaction_is_told_to_be_stable_early(path: Path) -> Path:
    """A reader is told that the log is stable up to the end of a batch whose transaction is aborted afterwards."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    first = run.send(attributes=TRANSACTIONAL)
    run.read_committed([], position=0, next_position=10)
    run.end_transaction(commits=False)
    run.transaction([first], result="abort")
    run.read_committed([], position=10, next_position=11)
    run.poll([first])
    run.settle()
    return run.finish()


def transactions_follow(path: Path, *, producer_epoch: int = 0, coordinator_epoch: int = 0) -> Path:
    """Two transactions follow each other; epochs are those of the first one's marker."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    for epochs in ((producer_epoch, coordinator_epoch), (producer_epoch, 0)):
        batch = run.send(attributes=TRANSACTIONAL)
        marker = run.end_transaction(commits=True, producer_epoch=epochs[0], coordinator_epoch=epochs[1])
        run.transaction([batch], result="commit")
        run.poll([batch, marker])
    run.settle()
    return run.finish()


def coordinator_commits(
    path: Path,
    *,
    switches: dict[str, str] | None = None,
    first: str = "Ongoing",
    again: bool = False,
    hurries: bool = False,
    writes_marker: bool = True,
) -> Path:
    """A coordinator begins a transaction, commits it and has its marker written.

    Args:
        path: of the run.
        switches: rules that are switched off.
        first: the state that the empty id goes to.
        again: it begins the next transition before that has taken effect.
        hurries: it has the marker written before its decision is committed.
        writes_marker: whether the marker is appended.
    """
    run = RunBuilder(path, switches=switches)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.create_topic(TRANSACTIONS)
    if again:
        run.begin_transition("Empty", "Empty")
        run.write_own(TRANSACTIONS)
    run.transit("Empty", first)
    batch = run.send(attributes=TRANSACTIONAL)
    run.begin_transition(first, "PrepareCommit")
    decided_at = run.write_own(TRANSACTIONS, is_committed=not hurries)
    if hurries:
        run.send_markers(decided_at=decided_at)
        run.commit_own(TRANSACTIONS)
        run.end_transition()
    else:
        run.end_transition()
        run.send_markers(decided_at=decided_at)
    given = [batch]
    if writes_marker:
        given.append(run.end_transaction(commits=True))
    run.transit("PrepareCommit", "CompleteCommit")
    run.poll(given)
    run.settle()
    return run.finish()


def position_is_told(path: Path, *, is_committed: bool = True) -> Path:
    """A coordinator tells the position that a group commits, once or before that is committed."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.create_topic(POSITIONS)
    batch = run.send()
    offset = run.write_own(POSITIONS, is_committed=is_committed)
    run.return_position(counts_from=offset)
    if not is_committed:
        run.commit_own(POSITIONS)
    run.poll([batch])
    run.settle()
    return run.finish()


def reader_is_held(path: Path, *, stable_to: int, log_start_offset: int = 0) -> Path:
    """A reader of committed records is told where it is held, when the log ends at 11."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.send(attributes=TRANSACTIONAL)
    marker = run.end_transaction(commits=True)
    run.transaction([batch], result="commit")
    run.read_committed([batch], position=0, next_position=11, stable_to=stable_to, log_start_offset=log_start_offset)
    run.poll([batch, marker])
    run.settle()
    return run.finish()


def sessions_follow(path: Path, *, is_fenced: bool) -> Path:
    """A transactional producer has two sessions, and what it sends in its first epoch is committed."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.session(epoch=0)
    if is_fenced:
        run.session(epoch=1)
    batch = run.send(attributes=TRANSACTIONAL)
    run.end_transaction(commits=True)
    run.transaction([batch], result="commit")
    run.session(epoch=1)
    run.poll([batch])
    run.settle()
    return run.finish()


def transaction_is_deleted(path: Path, *, deleted: int = 11) -> Path:
    """An administrator has the records of a committed transaction deleted."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.send(attributes=TRANSACTIONAL)
    marker = run.end_transaction(commits=True)
    run.transaction([batch], result="commit")
    run.poll([batch, marker, run.send()])
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", Offset(deleted)),))
    for node in (0, 1, 2):
        run.delete(node, 11)
    run.settle()
    return run.finish()


def transaction_is_in_the_former_topic(path: Path) -> Path:
    """A topic with a committed transaction is created again."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.send(attributes=TRANSACTIONAL)
    run.end_transaction(commits=True)
    run.transaction([batch], result="commit")
    run.poll([batch])
    create_again(run)
    run.send()
    return run.finish()


def group_goes_on(
    path: Path,
    *,
    committed: int | None,
    position: int,
    commit: OperationType = OperationType.OK,
    in_transactions: tuple[str, ...] = (),
) -> Path:
    """A group reads a batch of three records and commits its position, and reads again.

    Args:
        path: of the run.
        committed: the position that it is told then.
        position: where it goes on.
        commit: the outcome of its first commit.
        in_transactions: the ends of the transactions that it does both in, if it does.
    """
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    first, second = run.send(records=3), run.send(records=2)
    for number, (told, start) in enumerate(((None, 0), (committed, position))):
        operation = f"read-{number}"
        given = [batch for batch in (first, second) if batch.base_offset >= start][: 1 + number]
        run.read_for_group(given, "readers", committed=told, position=start, operation=operation, commit=commit)
        if in_transactions:
            run.transaction([], result=in_transactions[number], operation=operation)
    run.poll([first, second])
    run.settle()
    return run.finish()


def members_follow(
    path: Path,
    *,
    generation: int = 2,
    stays: bool = False,
    partitions: tuple[str, ...] = ("orders-0",),
    reads: int | None = None,
) -> Path:
    """A member reads and commits in generation 2, and another one takes over.

    Args:
        path: of the run.
        generation: that the other is in.
        stays: the first does not notice.
        partitions: that the other is assigned.
        reads: which batch it reads, if any; the first member has read batch 0.
    """
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batches = [run.send(records=3), run.send(records=2)]
    run.member("readers-0", MemberStep.JOINING)
    run.member("readers-0", MemberStep.ASSIGNED, generation=2, partitions=("orders-0",))
    run.member_reads("readers-0", 2, batches[0], committed=None)
    if not stays:
        run.member("readers-0", MemberStep.EXPIRED, generation=2)
    run.member("readers-1", MemberStep.JOINING)
    run.member("readers-1", MemberStep.ASSIGNED, generation=generation, partitions=partitions)
    if reads is not None:
        run.member_reads("readers-1", generation, batches[reads], committed=3 if reads else None)
    run.settle()
    return run.finish()


def group_goes_on_in_other_records(path: Path) -> Path:
    """A group is given one of two batches that were acknowledged in the same place, and goes on behind it."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    first = run.send(records=3)
    run.read_for_group([first], "readers", committed=None, operation="read-0")
    [begun, acked] = [line for line in run.history if line["f"] == "send"]
    tried = acked["attempts"]
    assert isinstance(tried, list)
    attempts = [{**attempt, "crc": 1} for attempt in tried]
    for line in (begun, acked):
        again = {**line, "operation_id": "send-again", "first_record_id": 50}
        place = {"index": len(run.history), "time_ns": len(run.history)}
        run.record({**again, **place, "attempts": attempts if line is acked else []})
    run.read_for_group([], "readers", committed=3, position=3, operation="read-1")
    run.poll([first])
    run.settle()
    return run.finish()


def group_goes_on_behind_deleted_records(path: Path, *, position: int = 5) -> Path:
    """A group has read three of six records in a transaction; five are deleted before it reads again."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    first, second, third = run.send(records=3), run.send(records=2), run.send(records=1)
    run.poll([first, second, third])
    run.read_for_group([first], "readers", committed=None, operation="read-0")
    run.transaction([], result="commit", operation="read-0")
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", Offset(5)),))
    for node in (0, 1, 2):
        run.delete(node, 5)
    left = [third] if position == third.base_offset else []
    run.read_for_group(left, "readers", committed=3, position=position, operation="read-1")
    run.transaction([], result="commit", operation="read-1")
    run.settle()
    return run.finish()


def group_begins_the_next_topic(path: Path) -> Path:
    """A group and a reader of committed records have read a topic that is created again, and begin at its start."""
    run = healthy(path)
    run.read_for_group(run.logs[0, "orders", 0][:2], "readers", committed=None, operation="read-0")
    run.transaction([], result="commit", operation="read-0")
    run.read_committed([], position=0, next_position=30)
    create_again(run)
    first = run.send()
    run.read_for_group([first], "readers", committed=None, operation="read-1")
    run.transaction([], result="commit", operation="read-1")
    run.read_committed([first], position=0, next_position=10)
    return run.finish()


def leader_begins_without_what_acks_1_committed(path: Path) -> Path:
    """Broker 2 is elected without the last batch, which the high watermark of broker 0 had passed."""
    run = healthy(path)
    run.send(acks=1, to=(0, 1))
    run.advance(40)
    run.alter(reason="elect_leaders", leader=2, election=e.Election.ISR)
    return run.finish()


def consumed_then_cut_off(path: Path) -> Path:
    """A consumer is given what its leader alone acknowledged, and every log loses it in the same epoch."""
    run = healthy(path)
    batch = run.send(acks=1)
    run.advance(40)
    run.poll([batch])
    for node in (0, 1, 2):
        run.truncate(node, 30)
    return run.finish()


def deposed_leader_keeps_what_its_successor_replaced(path: Path) -> Path:
    """KIP-101: broker 0 follows again, cuts nothing off, and counts its own batch among what is committed."""
    run = healthy(path)
    run.send(acks=1, to=(0,), outcome=OperationType.INFO)
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.send()
    run.follow(0, 40)
    return run.finish()


def acknowledged_above_what_is_sent_later(path: Path) -> Path:
    """A batch is sent after another was acknowledged, and lies below it in every log."""
    run = healthy(path)
    later = run.new_batch()
    for node in (0, 1, 2):
        run.append(node, later, leader=node == 0)
    run.send()
    run.operate(later)
    return run.finish()


def follower_cuts_off_and_copies_again(path: Path) -> Path:
    """A follower cuts off what an earlier leader had committed, and copies it again before anybody needs it."""
    run = healthy(path)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR)
    [*_, last] = run.logs[2, "orders", 0]
    run.truncate(2, 20)
    run.append(2, last)
    return run.finish()


def damaged_batch_reaches_a_process_that_is_killed(path: Path) -> Path:
    """A follower copies the batch from a damaged log, and is killed before it says so."""
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(0, 2))
    run.send()
    run.logs[1, "orders", 0].append(run.damage(2))
    run.end(1, e.IncarnationEnd.KILLED)
    return run.finish()


def final_consumer_begins_within_a_batch(path: Path) -> Path:
    """The final consumer is given the rest of a batch whose first records nobody ever had."""
    run = healthy(path)
    log = run.logs[0, "orders", 0]
    run.send()
    run.poll(log[:3], process="final", phase="final", position=0, seek=True)
    run.poll(log[3:], process="final", phase="final", position=33, seek=True)
    run.final_read("orders", 0, end_offset=40)
    run.stop_all()
    return run.write()


def torn_transaction_is_not_read(path: Path) -> Path:
    """A producer is told no end of its transaction, which has two; nobody reads what is committed."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.create_topic("payments")
    sends = [run.send(topic, attributes=TRANSACTIONAL) for topic in ("orders", "payments")]
    run.end_transaction(commits=True)
    run.end_transaction("payments", commits=False)
    run.transaction(sends, result="commit", outcome=OperationType.INFO)
    return run.finish()


def group_repeats_what_nobody_said_was_committed(path: Path) -> Path:
    """A transaction is committed though its producer was not told; its group reads the same records in the next."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.create_topic("payments")
    batch = run.send(records=3)
    for number, outcome in enumerate((OperationType.INFO, OperationType.OK)):
        operation = f"read-{number}"
        run.read_for_group([batch], "readers", committed=None, operation=operation)
        paid = run.send("payments", attributes=TRANSACTIONAL)
        run.end_transaction("payments", commits=True)
        run.transaction([paid], result="commit", outcome=outcome, operation=operation)
    return run.finish()


def last_leader_of_the_quorum_lost_the_last_record(run: RunBuilder, last: int) -> None:
    """A controller has every record when it is elected, and loses one before it hears that any is committed."""
    run.elect(102, quorum_epoch=2, end=last + 1)
    run.voter_logs[102].pop()


def broker_without_replicas_is_fenced_in_the_end(path: Path) -> Path:
    run = healthy(path).start_brokers(3)
    run.fence(3)
    run.settle()
    return run.finish()


def active_replica_is_no_member_in_the_end(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="alter_partition", broker=0, isr=(0, 1))
    run.settle()
    return run.finish()


def reassignment_is_left_with_everybody_in_sync(path: Path) -> Path:
    run = reassigning(path)
    run.accept((0, 1, 2, 3))
    run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2, 3), adding=(3,), removing=(2,))
    run.settle()
    return run.finish()


FIRES: Mapping[str, tuple[Build, frozenset[str]]] = {
    "group is given records again": (
        lambda path: group_goes_on(path, committed=None, position=0),
        frozenset({"X9"}),
    ),
    "group leaves records out": (
        lambda path: group_goes_on(path, committed=None, position=5),
        frozenset({"X9"}),
    ),
    "group goes on in other records": (
        group_goes_on_in_other_records,
        frozenset({"D1", "D14", "C2", "X9"}),
    ),
    "group has a position that was not committed": (
        lambda path: group_goes_on(path, committed=2, position=3),
        frozenset({"X8"}),
    ),
    "read in two transactions": (
        lambda path: group_goes_on(path, committed=None, position=0, in_transactions=("commit", "commit")),
        frozenset({"X7", "X9"}),
    ),
    "group leaves out more than was deleted": (
        partial(group_goes_on_behind_deleted_records, position=6),
        frozenset({"X7", "X9"}),
    ),
    "position of an aborted transaction": (
        lambda path: group_goes_on(path, committed=3, position=3, in_transactions=("abort", "commit")),
        frozenset({"X8"}),
    ),
    "generation falls": (partial(members_follow, generation=1), frozenset({"R7"})),
    "two owners": (partial(members_follow, stays=True), frozenset({"R8"})),
    "member is given records again": (partial(members_follow, generation=3, reads=0), frozenset({"X9"})),
    "aborted, and read": (
        lambda path: transaction_in_two_partitions(path, commits=(False, False), result="abort"),
        frozenset({"X1"}),
    ),
    "aborted, and read by a member": (
        lambda path: transaction_in_two_partitions(
            path, commits=(False, False), result="abort", is_given=(False, False), reads_as_member=True
        ),
        frozenset({"X1"}),
    ),
    "torn": (
        lambda path: transaction_in_two_partitions(path, commits=(True, False), is_given=(False, False)),
        frozenset({"X2", "X3", "X10"}),
    ),
    "committed, and aborted": (
        lambda path: transaction_in_two_partitions(path, commits=(False, False), is_given=(False, False)),
        frozenset({"X3"}),
    ),
    "read before it was over": (transaction_is_read_early, frozenset({"X4"})),
    "read by a member before it was over": (partial(transaction_is_read_early, by_member=True), frozenset({"X4"})),
    "told to be stable before it was aborted": (transaction_is_told_to_be_stable_early, frozenset({"X4"})),
    "committed behind a fence": (lambda path: sessions_follow(path, is_fenced=True), frozenset({"X6"})),
    "end of a former coordinator": (lambda path: transactions_follow(path, coordinator_epoch=1), frozenset({"R3"})),
    "former epoch": (lambda path: transactions_follow(path, producer_epoch=5), frozenset({"R5"})),
    "next transition before the last one took effect": (
        partial(coordinator_commits, again=True),
        frozenset({"R1"}),
    ),
    "completed without a marker": (
        partial(coordinator_commits, writes_marker=False),
        frozenset({"R2"}),
    ),
    "markers before the decision is committed": (partial(coordinator_commits, hurries=True), frozenset({"R4"})),
    "stable beyond the high watermark": (partial(reader_is_held, stable_to=12), frozenset({"R6"})),
    "stable below the batch of the log start": (
        partial(reader_is_held, stable_to=9, log_start_offset=10),
        frozenset({"R6"}),
    ),
    "position told before it is committed": (partial(position_is_told, is_committed=False), frozenset({"R9"})),
    "commits what was never begun": (partial(coordinator_commits, first="Empty"), frozenset({"R10"})),
    "without an end": (
        lambda path: transaction_in_two_partitions(path, commits=(True, None), is_given=(True, False)),
        frozenset({"X3", "X5"}),
    ),
    "reader leaves committed records out": (
        lambda path: transaction_in_two_partitions(path, is_given=(True, False)),
        frozenset({"X10"}),
    ),
    "reader of committed records jumps": (
        lambda path: transaction_in_two_partitions(path, jumps=3),
        frozenset({"X10"}),
    ),
    "kafka-3.9 story": (story("kafka-3.9"), frozenset({"D1", "D2", "D4", "D5", "D14", "D15"})),
    "other ids": (with_other_ids, frozenset({"D1", "D2", "D4", "D5", "D14", "D15"})),
    "two topics": (two_topics, frozenset({"D1", "D4"})),
    "everything lost": (loses_everything, frozenset({"D1", "D5", "D14"})),
    "cut off, then power lost": (
        loses_power_after_it_cut_off_the_last_copy,
        frozenset({"D1", "D4", "D5", "M2", "M5"}),
    ),
    "acked by a leader of the topic before": (acked_by_a_leader_of_the_topic_before, frozenset({"D1"})),
    "unread": (final_consumer_misses_a_batch, frozenset({"D1"})),
    "settled, and unread above a high watermark": (
        lambda path: final_consumer_stops_at_a_high_watermark_that_is_behind(path, settles=True),
        frozenset({"D1"}),
    ),
    "survivor is no candidate": (survivor_is_no_candidate, frozenset({"D1", "D5", "E1"})),
    "gone for a time": (leader_lacks_records_for_a_time, frozenset({"D1", "D5"})),
    "leads again": (leads_again_in_its_epoch, frozenset({"D1", "D2", "D5"})),
    "leads again, registered": (
        partial(leads_again_in_its_epoch, keep=20, is_registered=True),
        frozenset({"D1", "D2", "D5"}),
    ),
    "begins within what was acknowledged": (
        begins_within_what_was_acknowledged,
        frozenset({"D1", "D4", "D5", "D7", "D14"}),
    ),
    "consumed then replaced": (consumed_then_replaced, frozenset({"D5", "D7"})),
    "divergence": (follower_diverges_below_high_watermark, frozenset({"D6", "D7"})),
    "phantom stored": (stores_what_nobody_sent, frozenset({"D10"})),
    "phantom consumed": (consumer_gets_what_nobody_sent, frozenset({"D5", "D10", "D16"})),
    "consumer skips": (consumer_skips, frozenset({"C1"})),
    "consumer goes back": (consumer_goes_back, frozenset({"C1"})),
    "hole in a poll": (poll_has_a_hole, frozenset({"C1"})),
    "gate": (high_watermark_moves_under_min_isr, frozenset({"H2"})),
    "gate with another ISR": (high_watermark_moves_on_an_isr_of_its_own, frozenset({"H2"})),
    "high watermark back": (high_watermark_goes_back, frozenset({"H3"})),
    "high watermark restarts": (high_watermark_restarts_lower, frozenset({"H3"})),
    "high watermark too far": (high_watermark_passes_a_member, frozenset({"D9", "H1"})),
    "log ends of an earlier term": (counts_on_log_ends_of_an_earlier_term, frozenset({"H1"})),
    "candidate returns with less": (candidate_returns_with_less, frozenset({"D3"})),
    "epochs fall": (log_is_opened_with_falling_epochs, frozenset({"D8"})),
    "no epochs": (log_is_opened_without_epochs, frozenset({"D8"})),
    "log beyond its high watermark": (log_is_opened_beyond_its_high_watermark, frozenset({"D9"})),
    "more deleted than was asked for": (lambda path: records_are_deleted(path, asked=10), DELETED),
    "gone before a deletion": (records_vanish_before_a_deletion, DELETED - {"E1"}),
    "deleted in another partition": (lambda path: records_are_deleted(path, partition="orders-1"), DELETED),
    "more deleted and cut off than was asked for": (
        lambda path: follower_cuts_off_what_was_deleted(path, asked=10),
        DELETED | {"D15"},
    ),
    "expired by no limit": (lambda path: records_expire(path, "retention.bytes", "-1"), DELETED),
    "expired before its time": (lambda path: records_expire_in_a_long_run(path, days=6), DELETED),
    "deleted beyond the high watermark": (uncommitted_records_are_deleted, frozenset({"D9"})),
    "member not reckoned with": (leader_reckons_without_a_member, frozenset({"H4"})),
    "proposal given up": (leader_gives_up_what_the_controller_carries_out, frozenset({"H4"})),
    "behind in the end": (broker_is_behind_in_the_end, frozenset({"L1"})),
    "fenced in the end": (broker_is_fenced_in_the_end, frozenset({"L2", "L4"})),
    "leaderless in the end": (partition_is_leaderless_in_the_end, frozenset({"L3"})),
    "no full copy in the end": (replica_is_behind_in_the_end, frozenset({"L6"})),
    "leader no member": (leader_is_no_member, frozenset({"M1"})),
    "isr and elr overlap": (isr_and_elr_overlap, frozenset({"M1"})),
    "stranger in isr": (isr_has_a_stranger, frozenset({"M1", "M2"})),
    "stranger in elr": (elr_has_a_stranger, frozenset({"M17"})),
    "elr beside full isr": (elr_beside_a_full_isr, frozenset({"M3"})),
    "unclean broker stays": (unclean_broker_stays, frozenset({"M2", "M5", "M11"})),
    "unclean broker never removed": (unclean_broker_is_never_removed, frozenset({"M5"})),
    "two leaders": (two_leaders_in_one_epoch, frozenset({"M8", "M9"})),
    "follower appends as leader": (follower_appends_as_leader, frozenset({"M8"})),
    "partition epoch jumps": (partition_epoch_jumps, frozenset({"M9"})),
    "leader epoch stays": (leader_epoch_stays, frozenset({"M9"})),
    "older partition epoch": (broker_goes_back_an_epoch, frozenset({"M9"})),
    "unexplained loss": (log_loses_a_batch_unexplained, frozenset({"E1"})),
    "loss by a stop in order": (
        lambda path: loses_a_batch_across_a_restart(path, e.IncarnationEnd.STOPPED),
        frozenset({"E1"}),
    ),
    "loss from a log taken over": (
        lambda path: new_topic_goes_on_with_the_log(path, kept_batches=1),
        frozenset({"E1"}),
    ),
    "truncation undone": (
        lambda path: power_loss_undoes_a_truncation(path, truncation_sync="off"),
        frozenset({"D7"}),
    ),
    "truncation undone though synced": (
        lambda path: power_loss_undoes_a_truncation(path, truncation_sync="on"),
        frozenset({"D7", "E1"}),
    ),
    "damaged batch consumed": (damaged_batch_is_consumed, frozenset({"D5", "D10", "D17"})),
    "damaged batch replicated": (damaged_batch_is_replicated, frozenset({"D17", "E1"})),
    "damaged batch made valid": (damaged_batch_is_made_valid, frozenset({"D7", "D10", "D17"})),
    "refused and stored": (refused_for_certain_and_stored, frozenset({"D11"})),
    "stored twice": (idempotent_batch_is_stored_twice, frozenset({"D12"})),
    "more copies than attempts": (batch_is_stored_more_often_than_sent, frozenset({"D12"})),
    "out of order": (sequence_numbers_fall, frozenset({"D13"})),
    "visible too early": (consumer_gets_what_is_not_committed, frozenset({"D16"})),
    "visible too early in the next topic": (
        consumer_gets_what_is_not_committed_in_the_next_topic,
        frozenset({"D16"}),
    ),
    "passed over": (nobody_reads_what_was_acknowledged, frozenset({"C2", "D1"})),
    "sent back": (consumer_is_sent_back, frozenset({"C3"})),
    "fenced member": (fenced_broker_joins_the_isr, frozenset({"M2"})),
    "candidate forgotten": (candidate_is_forgotten, frozenset({"M4"})),
    "candidate forgotten for the same min ISR": (candidate_is_forgotten_for_the_same_min_isr, frozenset({"M4"})),
    "leader from nowhere": (leader_was_no_candidate, frozenset({"M6"})),
    "elr before isr": (leader_from_the_elr_beside_an_isr, frozenset({"M6", "M11"})),
    "unclean without need": (unclean_election_beside_a_candidate, frozenset({"M6"})),
    "recovering in company": (recovering_leader_has_company, frozenset({"M7"})),
    "recovered by itself": (recovered_without_its_leader, frozenset({"M7"})),
    "appends while recovering": (leader_appends_while_it_recovers, frozenset({"M18"})),
    "stranger alters": (stranger_alters_the_isr, frozenset({"M10"})),
    "old incarnation added": (member_of_an_old_incarnation_is_added, frozenset({"M10"})),
    "isr grows by itself": (isr_grows_by_itself, frozenset({"M11"})),
    "epoch given twice": (broker_epoch_is_given_twice, frozenset({"M12"})),
    "uncommitted epoch": (broker_follows_what_was_never_committed, frozenset({"M13"})),
    "two metadata logs": (two_controllers_tell_two_stories, frozenset({"M14"})),
    "two leaders of the quorum": (
        partial(three_controllers, spoil=another_leads_the_epoch),
        frozenset({"Q1"}),
    ),
    "voter votes twice": (partial(three_controllers, spoil=voter_votes_twice), frozenset({"Q1"})),
    "metadata logs part and meet": (
        partial(three_controllers, spoil=lambda run, _: another_batch(run, 102, 3)),
        frozenset({"Q2"}),
    ),
    "epochs of a metadata log fall": (partial(three_controllers, spoil=epochs_of_a_log_fall), frozenset({"Q2"})),
    "leader without committed metadata": (
        partial(three_controllers, spoil=elected_without_the_last_record),
        frozenset({"Q3"}),
    ),
    "forgotten record has a successor": (
        partial(three_controllers, spoil=forgotten_record_has_a_successor),
        frozenset({"Q3", "Q5"}),
    ),
    "committed metadata differs": (
        partial(three_controllers, spoil=lambda run, _: another_batch(run, 101, -1, leader_epoch=2)),
        frozenset({"Q4"}),
    ),
    "committed metadata is gone": (
        partial(three_controllers, spoil=last_leader_lost_the_last_record),
        frozenset({"Q4", "Q5"}),
    ),
    "epoch of a voter falls": (partial(three_controllers, spoil=epoch_falls), frozenset({"Q6"})),
    "high watermark of the metadata falls": (
        partial(three_controllers, spoil=committed_metadata_falls),
        frozenset({"Q6"}),
    ),
    "committed metadata is cut": (
        partial(three_controllers, spoil=committed_metadata_is_cut),
        frozenset({"Q6"}),
    ),
    "old data under a new id": (new_topic_has_old_data, frozenset({"E1", "M15"})),
    "log of another topic": (log_is_used_for_another_topic, frozenset({"M15"})),
    "reassigned too early": (reassignment_completes_without_its_new_replica, frozenset({"L4", "M16"})),
    "reassigned without an old replica": (
        partial(reassignment_completes_without_an_old_replica, switches={"reassignment_needs_all": "on"}),
        frozenset({"M16"}),
    ),
    "reassigned below min ISR": (reassignment_completes_below_min_isr, frozenset({"M16"})),
    "reassigned with an unclean leader": (reassignment_completes_with_an_unclean_leader, frozenset({"M16"})),
    "reassigned in one epoch": (replica_leaves_in_the_same_epoch, frozenset({"M16"})),
    "called off with nobody in sync": (cancellation_hands_the_isr_over, frozenset({"M2", "M11", "M19"})),
    "called off under min isr": (reassignment_is_called_off_under_min_isr, frozenset({"M19"})),
    "min isr of another partition": (controller_goes_by_a_smaller_min_isr, frozenset({"M21"})),
    "shorter log elected": (lambda p: recovery_compares_logs(p, (0, 0, 31), (1, 0, 30)), frozenset({"M20"})),
    "lower epoch elected": (lambda p: recovery_compares_logs(p, (0, 1, 20), (1, 0, 30)), frozenset({"M20"})),
    "elected without an answer": (lambda p: recovery_compares_logs(p, (0, 0, 30)), frozenset({"M20"})),
    "last leader not waited for": (lambda p: recovery_compares_logs(p, (1, 0, 30), (2, 0, 30)), frozenset({"M20"})),
    "longest log, last leader not waited for by Aggressive": (
        lambda p: recovery_compares_logs(p, (1, 0, 30), strategy=RecoveryStrategy.AGGRESSIVE),
        frozenset({"M20"}),
    ),
    "longest log by a strategy that is not configured": (
        lambda p: recovery_compares_logs(p, (0, 0, 30), (1, 0, 30), strategy=RecoveryStrategy.AGGRESSIVE),
        frozenset({"M20"}),
    ),
    "longest log by a strategy that was asked for elsewhere": (
        lambda p: recovery_compares_logs(
            p, (0, 0, 30), (1, 0, 30), strategy=RecoveryStrategy.AGGRESSIVE, asked=("orders-1",)
        ),
        frozenset({"M20"}),
    ),
    "longest log under strategy None": (
        lambda p: recovery_compares_logs(
            p, (0, 0, 30), (1, 0, 30), strategy=RecoveryStrategy.NONE, configured=RecoveryStrategy.NONE
        ),
        frozenset({"M20"}),
    ),
    "longest log that is not as long": (
        lambda p: recovery_compares_logs(p, (0, 0, 30), (1, 0, 31), told=(0, 1)),
        frozenset({"M20"}),
    ),
    "longer log said to be shorter": (
        lambda p: recovery_compares_logs(p, (0, 0, 20), (1, 0, 30), told=(0, 1), told_later=(0,)),
        frozenset({"M20"}),
    ),
    "longest log of an epoch that it has not": (
        lambda p: recovery_compares_logs(p, (0, 0, 30), (1, 1, 30), told=(1,)),
        frozenset({"M20"}),
    ),
    "elected before everybody answered": (
        lambda p: recovery_compares_logs(p, (0, 0, 30), (1, 0, 30), after_s=250, up=(0, 1)),
        frozenset({"M20"}),
    ),
    "elected before everybody answered who is up": (
        lambda p: recovery_compares_logs(p, (0, 0, 30), (1, 0, 30), after_s=250, switches={"recovery_waits": "off"}),
        frozenset({"M20"}),
    ),
    "Aggressive elected before everybody answered who is up": (
        lambda p: recovery_compares_logs(
            p,
            (0, 0, 30),
            (1, 0, 30),
            after_s=250,
            strategy=RecoveryStrategy.AGGRESSIVE,
            configured=RecoveryStrategy.AGGRESSIVE,
        ),
        frozenset({"M20"}),
    ),
    "longest log by answers of earlier incarnations": (
        lambda p: recovery_compares_logs(p, (0, 0, 30), (1, 0, 30), broker_epoch=77),
        frozenset({"M20"}),
    ),
    "unclean leader that need not recover": (
        lambda p: unclean_leader_of_a_metadata_version(p, 3),
        frozenset({"M7"}),
    ),
    "stray deleted too early": (lambda p: broker_deletes_a_stray(p, waited_ms=499), frozenset({"L7"})),
    "given of the topic before": (reader_was_given_it_of_the_topic_before, frozenset({"C2", "D1"})),
    "group's position goes back": (group_goes_back, frozenset({"C5"})),
    "group's position is gone": (partial(group_goes_back, given=None), frozenset({"C5"})),
    "goes on in the next topic": (consumer_goes_on_in_the_next_topic, frozenset({"C4"})),
    "goes on at the end of the next topic": (
        partial(consumer_goes_on_in_the_next_topic, sent=3),
        frozenset({"C4"}),
    ),
    "lost under the id of a deleted topic": (client_behind_a_deleted_topic_loses, frozenset({"C2", "D1"})),
    "recovering in company, no gate": (
        lambda p: recovering_leader_has_company(p, {"recovering_gate": "off"}),
        frozenset({"M7"}),
    ),
    "own log removed": (broker_removes_its_own_log, frozenset({"L7"})),
    "stray unnoticed": (broker_keeps_a_stray_unnoticed, frozenset({"L7"})),
    "reassignment stuck": (reassignment_is_left_half_way, frozenset({"L4", "L8"})),
    "ZooKeeper, member falls short": (zookeeper_member_falls_short, frozenset({"Z3"})),
    "ZooKeeper, member removes its log": (zookeeper_member_removes_its_log, frozenset({"Z4"})),
    "ZooKeeper, member removes its log of a topic that is there again": (
        zookeeper_topic_is_made_again_and_a_member_removes_its_log,
        frozenset({"Z4"}),
    ),
    "ZooKeeper, notification left": (zookeeper_notification_is_left, frozenset({"Z5"})),
    "ZooKeeper, lost as the topic gets an id": (
        zookeeper_topic_gets_an_id_and_loses,
        frozenset({"C1", "D1", "D2", "D4", "D5", "D14"}),
    ),
    "ZooKeeper, leader is no member": (zookeeper_leader_is_no_member, frozenset({"Z6"})),
    "ZooKeeper, leader epoch passed over": (zookeeper_leader_epoch_is_passed_over, frozenset({"Z7"})),
    "committed, and not on the next leader": (leader_begins_without_what_acks_1_committed, frozenset({"D2"})),
    "consumed, and cut off everywhere": (consumed_then_cut_off, frozenset({"D5"})),
    "deposed leader cuts nothing off": (deposed_leader_keeps_what_its_successor_replaced, frozenset({"D6"})),
    "below what was acknowledged before it was sent": (acknowledged_above_what_is_sent_later, frozenset({"D14"})),
    "cut off, and copied again": (follower_cuts_off_and_copies_again, frozenset({"D15"})),
    "damaged batch at the end of a killed process": (
        damaged_batch_reaches_a_process_that_is_killed,
        frozenset({"D17"}),
    ),
    "begun within a batch": (final_consumer_begins_within_a_batch, frozenset({"C2"})),
    "last leader of the quorum lost a record": (
        partial(three_controllers, spoil=last_leader_of_the_quorum_lost_the_last_record),
        frozenset({"Q5"}),
    ),
    "torn, and not read": (torn_transaction_is_not_read, frozenset({"X2"})),
    "aborted without an end": (
        lambda path: transaction_in_two_partitions(
            path, commits=(False, None), is_given=(False, False), result="abort"
        ),
        frozenset({"X5"}),
    ),
    "repeated in two transactions": (group_repeats_what_nobody_said_was_committed, frozenset({"X7"})),
    "fenced without replicas": (broker_without_replicas_is_fenced_in_the_end, frozenset({"L2"})),
    "active, and no member": (active_replica_is_no_member_in_the_end, frozenset({"L4"})),
    "reassignment stuck at its end": (reassignment_is_left_with_everybody_in_sync, frozenset({"L8"})),
}
"""Runs with exactly these checks violated."""

REDUNDANT: Mapping[str, Redundancy] = {
    "D4": Redundancy(
        implied="D1",
        why="a record that no replica has is not on the last leader either, and where no replica has it D1 leaves out "
        "no more than D4",
        kept_for="it tells whose loss it is: how many replicas held the record, and how many of them lost it with "
        "their page cache. In the simulator it sees losses that D1 does not see: where nobody leads at the end, D1 has "
        "no log to look at",
    ),
}
"""Checks that no run can break alone, because each of their violations is one of another check, too."""

HOLDS: Mapping[str, Build] = {
    "a member takes over from another": partial(members_follow, generation=3, reads=1),
    "members share a generation": partial(members_follow, stays=True, partitions=("orders-1",)),
    "group goes on": lambda path: group_goes_on(path, committed=3, position=3),
    "group goes on behind deleted records": group_goes_on_behind_deleted_records,
    "group begins the next topic": group_begins_the_next_topic,
    "group goes on in transactions": lambda path: group_goes_on(
        path, committed=3, position=3, in_transactions=("commit", "commit")
    ),
    "transaction that read is aborted": lambda path: group_goes_on(
        path, committed=None, position=0, in_transactions=("abort", "commit")
    ),
    "commit of a position has an unknown outcome": lambda path: group_goes_on(
        path, committed=None, position=0, commit=OperationType.INFO
    ),
    "transaction": transaction_in_two_partitions,
    "sessions follow each other": lambda path: sessions_follow(path, is_fenced=False),
    "transaction is deleted": transaction_is_deleted,
    "transaction is in the former topic": transaction_is_in_the_former_topic,
    "aborted transaction": lambda path: transaction_in_two_partitions(
        path, commits=(False, False), result="abort", is_given=(False, False)
    ),
    "kip-966 story": story("kip-966"),
    "leads again with all that it had": partial(leads_again_in_its_epoch, keep=30),
    "leads again and is sent to": leads_again_and_is_sent_to,
    "healthy": lambda path: healthy(path).finish(),
    "three controllers": three_controllers,
    "disk of the last leader is replaced": partial(three_controllers, spoil=disk_of_the_last_leader_is_replaced),
    "controller loses power before it syncs": partial(three_controllers, spoil=controller_loses_power_before_it_syncs),
    "log ends of the epoch before, which it led": lambda path: counts_on_log_ends_of_an_earlier_term(
        path, leads_in_between=False
    ),
    "log ends of an earlier term, where they count": lambda path: counts_on_log_ends_of_an_earlier_term(
        path, switches={"progress_of_this_term": "off"}
    ),
    "producer is refused": producer_is_refused,
    "client of Kafka sends a refused batch again": client_of_kafka_sends_a_refused_batch_again,
    "consumer seeks back": consumer_seeks_back,
    "deleted as asked for": records_are_deleted,
    "deleted as a client of Kafka asked for": records_are_deleted_for_a_client_of_kafka,
    "follower of deleted records begins again": follower_begins_again_where_the_leaders_log_starts,
    "follower cuts off what was deleted": follower_cuts_off_what_was_deleted,
    "sent back from what was deleted": consumer_is_sent_back_from_deleted_records,
    "deleted as asked for, all that is committed": lambda path: records_are_deleted(path, asked=None),
    "deleted as asked for, within a batch": lambda path: records_are_deleted(path, asked=15, deleted=15),
    "less deleted than was asked for": lambda path: records_are_deleted(path, asked=1000),
    "expired by size": lambda path: records_expire(path, "retention.bytes", "0"),
    "expired in a run of weeks": lambda path: records_expire_in_a_long_run(path, days=14),
    "expired by age": lambda path: records_expire(path, "retention.ms", "1"),
    "consumer starts within a batch": consumer_starts_within_a_batch,
    "acked by a later attempt": acked_by_a_later_attempt,
    "acked by a later attempt of a client behind": acked_by_a_later_attempt_of_a_client_behind,
    "appended in vain and again": appended_in_vain_and_again,
    "cut off by two of whom one leads later": cut_off_by_two_of_whom_one_leads_later,
    "controller notes its records twice": controller_notes_its_records_twice,
    "unclean broker is vouched for": unclean_broker_leaves_and_is_vouched_for,
    "unclean broker, no ELR": unclean_broker_stays_without_the_feature,
    "unclean broker, topic is gone": unclean_broker_returns_after_a_topic_is_gone,
    "killed with an unseen batch": killed_with_an_unseen_batch,
    "killed with an unseen deletion": killed_with_an_unseen_deletion,
    "killed with an unseen truncation": lambda p: loses_a_batch_across_a_restart(p, e.IncarnationEnd.KILLED),
    "client behind a deleted topic": client_is_behind_a_deleted_topic,
    "begins the next topic": consumer_begins_the_next_topic,
    "begins the next topic, redirected": partial(consumer_begins_the_next_topic, is_redirected=True),
    "settled": everything_settles,
    "never settled, read up to a high watermark": (
        lambda path: final_consumer_stops_at_a_high_watermark_that_is_behind(path, settles=False)
    ),
    "last records not fetched": replica_stops_before_it_fetches_what_nobody_could_read,
    "proposal made again": leader_proposes_again_what_was_never_sent,
    "proposal overtaken": lambda p: leader_gives_up_what_the_controller_carries_out(p, hears=True),
    "reassignment": reassignment_completes,
    "reassignment without an old replica, by the KIP": reassignment_completes_without_an_old_replica,
    "reassignment below min ISR, where nobody asks for it": partial(
        reassignment_completes_below_min_isr, switches={"reassignment_requires_min_isr": "off"}
    ),
    "reassignment that is complete before an unclean election": partial(
        reassignment_completes_with_an_unclean_leader, switches={"reassignment_requires_min_isr": "off"}
    ),
    "reassignment under way": reassignment_is_under_way,
    "recovery step": uncleanly_elected_leader_recovers,
    "unclean leader of an old metadata version": lambda path: unclean_leader_of_a_metadata_version(path, 2),
    "downgrade": eligible_leader_replicas_are_downgraded,
    "downgrade and upgrade": fenced_member_stays_past_an_upgrade,
    "sequence numbers wrap": sequence_numbers_wrap,
    "stray noticed": broker_notices_a_stray,
    "stray deleted in time": lambda path: broker_deletes_a_stray(path, waited_ms=1000),
    "stray that was noted late": lambda path: broker_deletes_a_stray(path, waited_ms=993),
    "longest log elected": lambda path: recovery_compares_logs(path, (0, 0, 30), (1, 0, 30)),
    "longest log elected at the timeout": lambda path: recovery_compares_logs(
        path, (0, 0, 30), (1, 0, 30), after_s=300
    ),
    "longest log elected, begun later by events of a slow disk": lambda path: recovery_compares_logs(
        path, (0, 0, 30), (1, 0, 30), after_s=250, slow_disk=100
    ),
    "longest log elected of all that are up": lambda path: recovery_compares_logs(
        path, (0, 0, 30), (1, 0, 30), after_s=1, up=(0, 1), switches={"recovery_waits": "off"}
    ),
    "longest log elected, logs as told": lambda path: recovery_compares_logs(
        path, (0, 0, 30), (1, 0, 30), told=(0, 1, 2), told_later=(0, 2)
    ),
    "longest log elected, end of another log not told": lambda path: recovery_compares_logs(
        path, (0, 0, 20), (1, 0, 30), told=(0, 1)
    ),
    "longest log elected, Aggressive": lambda path: recovery_compares_logs(
        path, (1, 0, 30), strategy=RecoveryStrategy.AGGRESSIVE, configured=RecoveryStrategy.AGGRESSIVE
    ),
    "longest log elected, Aggressive asked for": lambda path: recovery_compares_logs(
        path, (1, 0, 30), strategy=RecoveryStrategy.AGGRESSIVE, asked=("orders-0",)
    ),
    "longest log elected, Balanced asked for": lambda path: recovery_compares_logs(
        path, (0, 0, 30), (1, 0, 30), configured=RecoveryStrategy.NONE, asked=("orders-0",)
    ),
    "called off at min isr": lambda path: reassignment_is_called_off(path, isr=(0, 1)),
    "a group commits a lower position": group_commits_what_it_is_given,
    "a group may have committed a lower position": partial(group_commits_what_it_is_given, outcome=OperationType.INFO),
    "a group asks while it commits": group_is_answered_while_it_commits,
    "damage found by recovery": damage_is_found_by_recovery,
    "damage never noticed": damage_is_never_noticed,
    "ZooKeeper, session expired": zookeeper_session_of_a_live_broker_expires,
    "ZooKeeper, replica removed": zookeeper_replica_is_removed,
    "coordinator commits": coordinator_commits,
    "position is told": position_is_told,
    "reader is held in the batch of the log start": partial(reader_is_held, stable_to=0, log_start_offset=5),
    "log taken over": new_topic_takes_the_log_over,
    "log taken over with its batches": lambda path: new_topic_goes_on_with_the_log(path, kept_batches=2),
}
"""Runs in which nothing is wrong."""


_OF_A_QUORUM = frozenset(f"Q{number}" for number in range(1, 7))
_OF_TRANSACTIONS = frozenset(
    {"R1", "R2", "R3", "R4", "R6", "R7", "R8", "R9", "R10"} | {f"X{number}" for number in range(1, 11)}
)

NOT_ASKED: Mapping[str, tuple[Build, frozenset[str]]] = {
    "nothing happens": (
        nothing_happens,
        frozenset(check.check_id for check in CHECKS if PROMISES[check.check_id].only_of is not ClusterKind.ZOOKEEPER),
    ),
    "nothing fails": (
        lambda path: healthy(path).finish(),
        frozenset({"D2", "D11", "D15", "D17", "C4", "C5"} | {f"L{number}" for number in (1, 2, 3, 4, 6, 7, 8)})
        | {f"M{number}" for number in (3, 4, 5, 6, 7, 9, 10, 11, 14, 16, 17, 18, 19, 20)}
        | _OF_TRANSACTIONS
        | _OF_A_QUORUM,
    ),
    "reassignment is never settled": (
        reassignment_is_under_way,
        frozenset({"D2", "D11", "D15", "D17", "C4", "C5"} | {f"L{number}" for number in (1, 2, 3, 4, 6, 7, 8)})
        | {f"M{number}" for number in (3, 4, 5, 6, 7, 10, 11, 14, 16, 17, 18, 19, 20)}
        | _OF_TRANSACTIONS
        | _OF_A_QUORUM,
    ),
}
"""Runs, and the checks that have nothing to look at there."""

NOT_PROMISED: Mapping[tuple[str, str], Callable[..., Path]] = {
    ("H2", "hw_requires_min_isr"): high_watermark_moves_under_min_isr,
    ("R4", "coordinator_awaits_commit"): partial(coordinator_commits, hurries=True),
    ("M2", "elr"): fenced_broker_joins_the_isr,
    ("M2", "cancel_requires_min_isr"): cancellation_hands_the_isr_over,
    ("M3", "elr"): elr_beside_a_full_isr,
    ("M4", "elr"): candidate_is_forgotten,
    ("M4", "ap_partition_epoch_check"): candidate_is_forgotten,
    ("M5", "elr"): unclean_broker_is_never_removed,
    ("M5", "unclean_detection"): unclean_broker_is_never_removed,
    ("M5", "ap_broker_epoch_check"): unclean_broker_is_never_removed,
    ("M10", "roles_after_registration"): stranger_alters_the_isr,
    ("M10", "ap_broker_epoch_check"): member_of_an_old_incarnation_is_added,
    ("M10", "ap_partition_epoch_check"): stranger_alters_the_isr,
    ("M11", "cancel_requires_min_isr"): cancellation_hands_the_isr_over,
    ("M15", "stray_cleanup"): log_is_used_for_another_topic,
    ("M17", "elr_within_replicas"): elr_has_a_stranger,
    ("M18", "recovering_gate"): leader_appends_while_it_recovers,
    ("M19", "cancel_requires_min_isr"): reassignment_is_called_off_under_min_isr,
    ("M21", "min_isr_per_partition"): controller_goes_by_a_smaller_min_isr,
    **{("D8", switch): log_is_opened_with_falling_epochs for switch in PROMISES["D8"].switches},
    **{("H4", switch): leader_reckons_without_a_member for switch in PROMISES["H4"].switches},
    ("L7", "stray_cleanup"): broker_removes_its_own_log,
    ("Z3", "maximal_isr"): zookeeper_member_falls_short,
    **{("Z4", switch): zookeeper_member_removes_its_log for switch in PROMISES["Z4"].switches},
}
"""By check and switch, runs that break a rule which that switch turns off."""


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("checks")
    builds = {**{name: build for name, (build, _) in FIRES.items()}, **HOLDS}
    builds.update({name: build for name, (build, _) in NOT_ASKED.items()})
    for (check_id, switch), broken in NOT_PROMISED.items():
        builds[f"{check_id} without {switch}"] = partial(broken, switches={switch: "off"})
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


@pytest.mark.parametrize(("check_id", "switch"), NOT_PROMISED)
def test_a_rule_that_is_switched_off_is_not_judged(
    check_id: str, switch: str, reports: dict[str, VerdictReport]
) -> None:
    assert switch in PROMISES[check_id].switches
    report = reports[f"{check_id} without {switch}"]
    (result,) = (check for check in report.checks if check.check_id == check_id)
    assert result.status is CheckStatus.NOT_PROMISED
    assert report.violated() == ()


@pytest.mark.parametrize("name", NOT_ASKED)
def test_a_check_that_has_nothing_to_look_at_is_not_asked(name: str, reports: dict[str, VerdictReport]) -> None:
    report = reports[name]
    not_asked = {
        check.check_id: check.not_asked_because for check in report.checks if check.status is CheckStatus.NOT_ASKED
    }
    assert set(not_asked) == NOT_ASKED[name][1]
    for check in CHECKS:
        if check.check_id in not_asked:
            assert not_asked[check.check_id] in {premise.value for premise in check.premises}
    assert report.violated() == ()


def test_nobody_is_asked_for_what_a_replaced_disk_had(reports: dict[str, VerdictReport]) -> None:
    (result,) = (check for check in reports["disk of the last leader is replaced"].checks if check.check_id == "Q5")
    assert result.not_asked_because == Premise.LAST_LEADERS_LOG.value


@pytest.mark.parametrize("check_id", [check.check_id for check in CHECKS])
def test_every_check_has_a_run_in_which_it_is_asked_and_finds_nothing(
    check_id: str, reports: dict[str, VerdictReport]
) -> None:
    statuses = {name: check.status for name in HOLDS for check in reports[name].checks if check.check_id == check_id}
    assert CheckStatus.OK in statuses.values()


def test_every_rule_that_can_be_switched_off_has_a_run_without_it() -> None:
    assert set(NOT_PROMISED) == {
        (check.check_id, switch) for check in CHECKS for switch in PROMISES[check.check_id].switches
    }


def test_every_check_has_a_run_in_which_it_fires() -> None:
    assert {check.check_id for check in CHECKS} == frozenset().union(*(fired for _, fired in FIRES.values()))


def test_the_examples_in_the_catalogue_are_what_the_checks_say(
    reports: dict[str, VerdictReport], pytestconfig: pytest.Config
) -> None:
    found: dict[str, list[str]] = {}
    for name in FIRES:
        for check in reports[name].violated():
            found.setdefault(check.check_id, []).extend(check.examples)
    if pytestconfig.getoption("--rewrite"):
        first = {check.check_id: found[check.check_id][0] for check in CHECKS}
        FINDINGS.write_text(json.dumps(first, indent=2) + "\n", encoding="utf-8")
    told = json.loads(FINDINGS.read_text(encoding="utf-8"))
    assert told.keys() == found.keys()
    assert {check_id: text for check_id, text in told.items() if text not in found[check_id]} == {}


def _evidence(check_id: str) -> dict[str, object]:
    """Returns the run that breaks a check alone, or with the fewest others, and why none does."""
    runs = [(name, fired - {check_id}) for name, (_, fired) in FIRES.items() if check_id in fired]
    name, beside = min(runs, key=lambda run: len(run[1]))
    redundancy = REDUNDANT.get(check_id)
    return {"run": name, "beside": sorted(beside)} | (
        {} if redundancy is None else {"redundant": msgspec.to_builtins(redundancy)}
    )


def test_each_check_in_the_catalogue_has_a_run_that_breaks_it_alone_or_is_redundant(
    pytestconfig: pytest.Config,
) -> None:
    evidence = {check.check_id: _evidence(check.check_id) for check in CHECKS}
    assert {check_id for check_id, found in evidence.items() if found["beside"]} == set(REDUNDANT)
    if pytestconfig.getoption("--rewrite"):
        EVIDENCE.write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
    assert json.loads(EVIDENCE.read_text(encoding="utf-8")) == evidence


@pytest.mark.parametrize("check_id", REDUNDANT)
def test_what_breaks_a_redundant_check_breaks_the_other_one(check_id: str) -> None:
    implied = REDUNDANT[check_id].implied
    assert implied not in REDUNDANT
    assert [name for name, (_, fired) in FIRES.items() if check_id in fired and implied not in fired] == []


def test_story_names_who_acknowledged_lost_and_truncated(reports: dict[str, VerdictReport]) -> None:
    report = reports["other ids"]
    text = "\n".join(line.text for loss in report.losses for line in loss.story)
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
        ("leads again", LossClass.GONE_FOR_A_TIME, Guarantee.BROKEN),
        ("leads again, registered", LossClass.GONE_FOR_A_TIME, Guarantee.BROKEN),
    ],
)
def test_losses_are_classified(
    name: str, loss_class: LossClass, guarantee: Guarantee, reports: dict[str, VerdictReport]
) -> None:
    assert {loss.loss_class for loss in reports[name].losses} == {loss_class}
    assert reports[name].guarantee is guarantee


def test_story_reports_that_a_leader_led_again(reports: dict[str, VerdictReport]) -> None:
    (loss,) = reports["leads again"].losses
    assert loss.first_lacking == FirstLacking(node=0, leader_epoch=0, log_end_offset=0, led_again=True)
    assert [line.kind for line in loss.story if line.node == 0] == [
        StoryKind.LOST,
        StoryKind.POWER_LOST,
        StoryKind.REGISTERED,
        StoryKind.LED_AGAIN,
    ]
    (line,) = (line for line in loss.story if line.kind is StoryKind.LED_AGAIN)
    assert "restarted and led again in epoch 0" in line.text
    assert [event.file for event in line.events] == ["events/0-1.jsonl"]


def test_story_reports_that_a_disk_was_replaced(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run" / "1")
    run.fault("kill", "0")
    run.end(0, e.IncarnationEnd.KILLED)
    run.fault("replace_disk", "0", committed=run.metadata_offset)
    run.logs[0, "orders", 0].clear()
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.restart(0)
    run.unfence(0)
    run.alter(reason="broker_unfenced", broker=0, leader=0, election=e.Election.ISR, isr=(0,))
    (loss,) = judge_here(run.finish()).report.losses
    (line,) = (line for line in loss.story if line.kind is StoryKind.DISK_REPLACED)
    assert line.node == 0
    assert line.text == "The disk of broker 0 was replaced by an empty one: none of its logs was left."


def with_acks_1(path: Path, *, outages: tuple[int, ...] = ()) -> VerdictReport:
    """Batches of acks=1 are committed and read; then brokers lose power, and the first of them leads again."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    for _ in range(3):
        batch = run.send(acks=1)
        run.advance(batch.last_offset + 1)
        run.poll([batch])
    for node in outages:
        run.power_loss(node)
        run.fence(node)
    if outages:
        back = outages[0]
        run.restart(back)
        run.unfence(back)
        run.alter(reason="broker_unfenced", broker=back, leader=back, election=e.Election.ISR, isr=(back,))
    return judge_here(run.finish()).report


def test_a_run_of_acks_1_alone_can_be_valid(tmp_path: Path) -> None:
    report = with_acks_1(tmp_path / "run" / "1")
    assert (report.verdict, report.doubts, report.guarantee_of_commits) == (Verdict.VALID, (), None)


def test_a_consumed_record_that_only_the_final_log_lacks_has_a_guarantee(reports: dict[str, VerdictReport]) -> None:
    report = reports["consumed then replaced"]
    assert {check.check_id: check.guarantee for check in report.violated()} == {"D5": Guarantee.BROKEN, "D7": None}
    assert report.guarantee_of_commits is Guarantee.BROKEN


def test_records_that_did_not_reach_a_consumer_are_beyond_the_guarantee_and_not_lost(
    reports: dict[str, VerdictReport],
) -> None:
    report = reports["goes on in the next topic"]
    [check] = report.violated()
    assert (check.guarantee, report.worst_guarantee) == (Guarantee.EXCEEDED, Guarantee.EXCEEDED)
    assert (report.guarantee, report.guarantee_of_commits, report.lost_records) == (None, None, 0)
    assert "acknowledged records did not reach a consumer, and none is lost: guarantee exceeded" in summary(report)


@pytest.mark.parametrize(
    ("outages", "guarantee"), [((0,), Guarantee.BROKEN), ((0, 1, 2), Guarantee.EXCEEDED)], ids=["broken", "exceeded"]
)
def test_the_loss_of_committed_records_of_acks_1_has_a_guarantee(
    outages: tuple[int, ...], guarantee: Guarantee, tmp_path: Path
) -> None:
    report = with_acks_1(tmp_path / "run" / "1", outages=outages)
    judged = {check.check_id: check.guarantee for check in report.violated()}
    assert (judged["D2"], judged["D5"]) == (guarantee, guarantee)
    assert (report.guarantee, report.guarantee_of_commits, report.lost_records) == (None, guarantee, 0)
    assert [(counts.acks, counts.lost > 0) for counts in report.counts] == [(1, True)]
    assert f"none of them acknowledged with acks=all: guarantee {guarantee.value}" in summary(report)


def test_acks_1_records_are_counted_apart_and_do_not_decide(reports: dict[str, VerdictReport]) -> None:
    counts = {count.acks: count for count in reports["kip-966 story"].counts}
    assert (counts[-1].acked, counts[-1].lost) == (110, 0)
    assert (counts[1].acked, counts[1].lost) == (10, 10)
