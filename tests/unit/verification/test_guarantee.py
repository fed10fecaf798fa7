"""The kind of a loss: inside or outside the guarantee."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from laststand.emulator.core import events as e
from laststand.emulator.verification.facts.configuration import Configuration
from laststand.emulator.verification.rules.guarantee import Guarantee, GuaranteeJudgement, judge_guarantee
from laststand.emulator.verification.tables.timeline import COLLECTED, CollectedEvent, Timeline
from laststand.emulator.verification.tables.vocabulary import tag
from tests.verification.run_builder import RunBuilder, last_replica_standing

Play = Callable[[RunBuilder], None]

ORDERS, PAYMENTS = "orders-0", "payments-0"


def timeline_of(run: RunBuilder) -> Timeline:
    kinds = {tag(kind): kind for kind in COLLECTED}
    return Timeline(
        events=tuple(
            CollectedEvent(
                node=node,
                incarnation=incarnation,
                sequence=sequence,
                event=msgspec.convert(line, kinds[str(line["type"])], strict=False),
            )
            for (node, incarnation), lines in sorted(run.files.items())
            for sequence, line in enumerate(lines)
            if line["type"] in kinds
        )
    )


def judged(run: RunBuilder, *, acked_at: int, lacking_epoch: int) -> GuaranteeJudgement:
    timeline = timeline_of(run)
    return judge_guarantee(
        timeline,
        Configuration(timeline),
        topic_id="orders-id",
        partition=0,
        acked_at=acked_at,
        lacking_epoch=lacking_epoch,
    )


def elect(run: RunBuilder, broker: int, election: e.Election) -> None:
    run.alter(reason="elect_leaders", leader=broker, election=election, isr=(broker,))


def nobody_fails(run: RunBuilder) -> None:
    elect(run, 1, e.Election.ISR)


def one_is_killed(run: RunBuilder) -> None:
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def two_are_killed(run: RunBuilder) -> None:
    run.end(0, e.IncarnationEnd.KILLED)
    run.end(2, e.IncarnationEnd.POWER_LOST)
    elect(run, 1, e.Election.ISR)


def two_are_stopped(run: RunBuilder) -> None:
    run.end(0, e.IncarnationEnd.STOPPED)
    run.end(2, e.IncarnationEnd.STOPPED)
    elect(run, 1, e.Election.ISR)


def two_are_stopped_before_they_hear_of_their_registration(run: RunBuilder) -> None:
    """Nothing proves that they stopped in order, and the controller takes them for unclean."""
    for broker in (0, 2):
        run.end(broker, e.IncarnationEnd.STOPPED)
        run.start(broker)
        run.register(broker, hears=False)
        run.end(broker, e.IncarnationEnd.STOPPED)
    elect(run, 1, e.Election.ISR)


def two_are_stopped_before_they_are_registered(run: RunBuilder) -> None:
    for broker in (0, 2):
        run.end(broker, e.IncarnationEnd.STOPPED)
        run.start(broker)
        run.end(broker, e.IncarnationEnd.STOPPED)
    elect(run, 1, e.Election.ISR)


def one_is_killed_and_one_is_unregistered(run: RunBuilder) -> None:
    """Whatever a broker shows that was forgotten, nothing proves any more that it kept its log."""
    run.fence(2, reason="unregistered")
    run.alter(reason="unregistered", broker=2, isr=(0, 1))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def one_is_killed_after_an_unregistered_one_is_back(run: RunBuilder) -> None:
    run.fence(2, reason="unregistered")
    run.alter(reason="unregistered", broker=2, isr=(0, 1))
    run.end(2, e.IncarnationEnd.STOPPED)
    run.restart(2)
    run.unfence(2)
    run.expand((0, 1, 2))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def two_are_killed_in_turn(run: RunBuilder) -> None:
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)
    run.expand((0, 1, 2))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def second_is_killed_before_the_first_is_back(run: RunBuilder) -> None:
    run.end(2, e.IncarnationEnd.KILLED)
    run.restart(2)
    run.alter(reason="broker_registered", broker=2, isr=(0, 1))
    run.unfence(2)  # Registered again, but no committed ISR has it yet.
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def second_is_killed_right_before_the_first_is_elected(run: RunBuilder) -> None:
    """The election puts the first one back into the ISR: until then it was outstanding, too."""
    run.end(1, e.IncarnationEnd.POWER_LOST)
    run.restart(1)
    run.alter(reason="broker_registered", broker=1, isr=(0, 2))
    run.unfence(1)
    run.end(2, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.LAST_KNOWN_LEADER)


def eligible_replica_is_killed_before_the_last_in_the_isr_loses_power(run: RunBuilder) -> None:
    """ISR [0], ELR [1]: the kill of 1 loses nothing and still empties the ELR, so only 0's own return is left."""
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1))
    run.alter(reason="broker_fenced", broker=1, isr=(0,), elr=(1,))
    run.end(1, e.IncarnationEnd.KILLED)
    run.restart(1)
    run.alter(reason="broker_registered", broker=1, elr=())
    run.end(0, e.IncarnationEnd.POWER_LOST)
    run.alter(reason="broker_fenced", broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=())
    elect(run, 1, e.Election.ISR)


def two_are_killed_after_the_election(run: RunBuilder) -> None:
    elect(run, 1, e.Election.ISR)
    run.end(0, e.IncarnationEnd.KILLED)
    run.end(2, e.IncarnationEnd.KILLED)


def elected_uncleanly(run: RunBuilder) -> None:
    """Nobody wanted that: the topic is configured to wait."""
    elect(run, 1, e.Election.UNCLEAN)


def last_known_leader_elected(run: RunBuilder) -> None:
    elect(run, 1, e.Election.LAST_KNOWN_LEADER)


def unclean_election_enabled(run: RunBuilder) -> None:
    run.configure("orders", "unclean.leader.election.enable", "true")
    elect(run, 1, e.Election.UNCLEAN)


def aggressive(run: RunBuilder) -> None:
    run.configure("orders", "unclean.recovery.strategy", "Aggressive")
    elect(run, 1, e.Election.UNCLEAN)


def unclean_election_disabled_again(run: RunBuilder) -> None:
    run.configure("orders", "unclean.leader.election.enable", "true")
    run.configure("orders", "unclean.leader.election.enable", "false")
    elect(run, 1, e.Election.UNCLEAN)


def unclean_election_asked_for(run: RunBuilder) -> None:
    elect(run, 1, e.Election.UNCLEAN)
    run.step("{elect_leaders: {type: designated, partition: orders-0, leader: 1}}", unclean=(ORDERS,))


def unclean_election_asked_for_everywhere(run: RunBuilder) -> None:
    elect(run, 1, e.Election.UNCLEAN)
    run.step("{elect_leaders: {type: unclean, partition: all}}", unclean=(ORDERS, PAYMENTS))


def preferred_leader_asked_for(run: RunBuilder) -> None:
    elect(run, 1, e.Election.LAST_KNOWN_LEADER)
    run.step("{elect_leaders: {type: preferred, partition: orders-0}}")


def unclean_election_asked_for_elsewhere(run: RunBuilder) -> None:
    elect(run, 1, e.Election.UNCLEAN)
    run.step("{elect_leaders: {type: unclean, partition: payments-0}}", unclean=(PAYMENTS,))


def unclean_election_asked_for_later(run: RunBuilder) -> None:
    elect(run, 1, e.Election.UNCLEAN)
    run.end(0, e.IncarnationEnd.KILLED)
    run.step("{kill: {node: 0}}")
    run.step("{elect_leaders: {type: unclean, partition: orders-0}}", unclean=(ORDERS,))


def the_controller_says_that_min_isr_is_one(run: RunBuilder) -> None:
    """It takes min ISR from elsewhere; nobody has configured that."""
    run.partitions["orders", 0].min_isr = 1
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def min_isr_is_lowered_meanwhile(run: RunBuilder) -> None:
    run.configure("orders", "min.insync.replicas", "1")
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def min_isr_is_raised_meanwhile(run: RunBuilder) -> None:
    """Records that were acknowledged under the smaller min ISR are covered by that one."""
    run.configure("orders", "min.insync.replicas", "3")
    run.end(0, e.IncarnationEnd.KILLED)
    run.end(2, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def min_isr_was_lowered_for_a_while(run: RunBuilder) -> None:
    run.configure("orders", "min.insync.replicas", "1")
    run.configure("orders", "min.insync.replicas", "2")
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def moved_to_one_replica_for_a_while(run: RunBuilder) -> None:
    """The replication factor counts as it was at the acknowledgement and as it is."""
    run.alter(reason="reassignment", replicas=(0,), isr=(0,))
    run.alter(reason="reassignment", replicas=(0, 1, 2), isr=(0,))
    run.expand((0, 1, 2))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def killed_before_the_new_replicas_are_in_sync(run: RunBuilder) -> None:
    run.alter(reason="reassignment", replicas=(0,), isr=(0,))
    run.alter(reason="reassignment", replicas=(0, 1, 2), isr=(0,))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def one_is_killed_while_two_are_added(run: RunBuilder) -> None:
    run.alter(reason="reassignment", replicas=(0, 1, 2, 3, 4), adding=(3, 4), removing=(0, 2))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def one_and_a_new_one_are_killed(run: RunBuilder) -> None:
    """A replica that never had the lost records is not missed."""
    run.alter(reason="reassignment", replicas=(0, 1, 2, 3), adding=(3,), removing=(2,))
    run.end(0, e.IncarnationEnd.KILLED)
    run.end(3, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def moved_to_one_replica_meanwhile(run: RunBuilder) -> None:
    run.alter(reason="reassignment", replicas=(0,), isr=(0,))
    run.end(0, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def former_replica_is_killed(run: RunBuilder) -> None:
    run.alter(reason="reassignment", replicas=(0, 1), isr=(0, 1))
    run.end(0, e.IncarnationEnd.KILLED)
    run.end(2, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


def other_brokers_are_killed(run: RunBuilder) -> None:
    run.end(3, e.IncarnationEnd.KILLED)
    run.end(4, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)


@pytest.mark.parametrize(
    ("play", "guarantee"),
    [
        (nobody_fails, Guarantee.BROKEN),
        (one_is_killed, Guarantee.BROKEN),
        (two_are_killed, Guarantee.EXCEEDED),
        (two_are_stopped, Guarantee.BROKEN),
        (two_are_stopped_before_they_hear_of_their_registration, Guarantee.EXCEEDED),
        (two_are_stopped_before_they_are_registered, Guarantee.BROKEN),
        (one_is_killed_and_one_is_unregistered, Guarantee.EXCEEDED),
        (one_is_killed_after_an_unregistered_one_is_back, Guarantee.BROKEN),
        (two_are_killed_in_turn, Guarantee.BROKEN),
        (second_is_killed_before_the_first_is_back, Guarantee.EXCEEDED),
        (second_is_killed_right_before_the_first_is_elected, Guarantee.EXCEEDED),
        (eligible_replica_is_killed_before_the_last_in_the_isr_loses_power, Guarantee.EXCEEDED),
        (two_are_killed_after_the_election, Guarantee.BROKEN),
        (elected_uncleanly, Guarantee.BROKEN),
        (last_known_leader_elected, Guarantee.BROKEN),
        (unclean_election_enabled, Guarantee.EXCEEDED),
        (aggressive, Guarantee.EXCEEDED),
        (unclean_election_disabled_again, Guarantee.BROKEN),
        (unclean_election_asked_for, Guarantee.EXCEEDED),
        (unclean_election_asked_for_everywhere, Guarantee.EXCEEDED),
        (preferred_leader_asked_for, Guarantee.BROKEN),
        (unclean_election_asked_for_elsewhere, Guarantee.BROKEN),
        (unclean_election_asked_for_later, Guarantee.BROKEN),
        (the_controller_says_that_min_isr_is_one, Guarantee.BROKEN),
        (min_isr_is_lowered_meanwhile, Guarantee.EXCEEDED),
        (min_isr_is_raised_meanwhile, Guarantee.EXCEEDED),
        (min_isr_was_lowered_for_a_while, Guarantee.EXCEEDED),
        (moved_to_one_replica_for_a_while, Guarantee.BROKEN),
        (killed_before_the_new_replicas_are_in_sync, Guarantee.EXCEEDED),
        (one_is_killed_while_two_are_added, Guarantee.BROKEN),
        (one_and_a_new_one_are_killed, Guarantee.BROKEN),
        (moved_to_one_replica_meanwhile, Guarantee.EXCEEDED),
        (former_replica_is_killed, Guarantee.BROKEN),
        (other_brokers_are_killed, Guarantee.BROKEN),
    ],
)
def test_guarantee(play: Play, guarantee: Guarantee, tmp_path: Path) -> None:
    run = RunBuilder(tmp_path)
    run.start_brokers(0, 1, 2, 3, 4)
    run.create_topic()
    acked_at = run.metadata_offset
    play(run)
    epoch = next(c.leader_epoch for c in timeline_of(run).of(e.PartitionChanged) if c.leader == 1)
    judgement = judged(run, acked_at=acked_at, lacking_epoch=epoch)
    assert judgement.guarantee is guarantee
    assert judgement.reason


def test_min_isr_of_one_promises_nothing_after_one_kill(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path)
    run.start_brokers(0, 1, 2)
    run.create_topic(min_isr=1)
    acked_at = run.metadata_offset
    one_is_killed(run)
    judgement = judged(run, acked_at=acked_at, lacking_epoch=1)
    assert judgement.guarantee is Guarantee.EXCEEDED
    assert "broker 0 was outstanding" in judgement.reason


def test_what_the_topic_before_acknowledged_counts_from_the_creation_on(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path)
    run.start_brokers(0, 1, 2)
    run.end(0, e.IncarnationEnd.KILLED)
    run.configure("orders", "min.insync.replicas", "1")
    acked_at = run.metadata_offset
    run.configure("orders", "min.insync.replicas", "2")
    run.create_topic()
    elect(run, 1, e.Election.ISR)
    judgement = judged(run, acked_at=acked_at, lacking_epoch=1)
    assert judgement.guarantee is Guarantee.BROKEN
    assert "broker 0 was outstanding, min ISR allows 1" in judgement.reason


@pytest.mark.parametrize(("is_back", "guarantee"), [(False, Guarantee.EXCEEDED), (True, Guarantee.BROKEN)])
def test_two_of_three_may_fail_only_once_the_third_is_in_sync(
    tmp_path: Path, *, is_back: bool, guarantee: Guarantee
) -> None:
    run = RunBuilder(tmp_path)
    run.start_brokers(0, 1, 2)
    run.create_topic(min_isr=3)
    acked_at = run.metadata_offset
    run.alter(reason="reassignment", replicas=(0, 2), isr=(0, 2))
    run.alter(reason="reassignment", replicas=(0, 1, 2), isr=(0, 2))
    if is_back:
        run.expand((0, 1, 2))
    run.end(0, e.IncarnationEnd.KILLED)
    run.end(2, e.IncarnationEnd.KILLED)
    elect(run, 1, e.Election.ISR)
    judgement = judged(run, acked_at=acked_at, lacking_epoch=1)
    assert judgement.guarantee is guarantee


def test_the_loss_of_the_motivating_story_is_inside_the_guarantee(tmp_path: Path) -> None:
    run = last_replica_standing(tmp_path, era="kafka-3.9")
    judgement = judged(run, acked_at=7, lacking_epoch=4)
    assert judgement.guarantee is Guarantee.BROKEN
    assert judgement.reason == "only broker 2 was outstanding, min ISR allows 1, and no election was unclean"
