"""Rules that no switch takes away: for each an edit that does, and a test that fails then.

What ``docs/failures.md`` says without naming a switch is here: for each place that a row names what its function says,
what it would say without the rule, and a test that refuses that. Those with a switch: ``tests.simulation.mutants``.
``python -m tests.mutants.removals`` tries all, or those of the rows that are named. ``kip_removals`` has those of the
sentences of the KIPs.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Final, NamedTuple

import pytest
from _pytest.runner import runtestprotocol


class Removal(NamedTuple):
    """An edit that takes a rule out of one function.

    Attributes:
        row: of ``docs/failures.md``, or a document that goes through a KIP.
        place: one of its places: a file under ``emulator`` and a function in it.
        code: what stands there once.
        instead: what would stand there without the rule.
        test: fails without it.
    """

    row: str
    place: str
    code: str
    instead: str
    test: str


_BROKER: Final = "tests/unit/core/broker"
_CONTROLLER: Final = "tests/unit/core/controller"
_SCRIPTS: Final = "tests/interaction/test_scripts.py::test_script"
_PLANS: Final = "tests/simulation/test_regressions.py::test_plan"

REMOVALS: Final = (
    Removal(
        row="S02",
        place="core/batch.py::BatchDescriptor.stamped",
        code="leader_epoch=leader_epoch",
        instead="leader_epoch=self.leader_epoch",
        test=f"{_BROKER}/replicas/test_produce.py::test_a_batch_is_stamped_with_its_offsets_and_the_leaders_epoch",
    ),
    Removal(
        row="S04",
        place="core/broker/replicas/fetch.py::find_readable",
        code="if error is not ErrorCode.NONE:",
        instead="if False:",
        test=f"{_BROKER}/replicas/test_fetch.py::test_a_fetch_under_another_leader_epoch_is_refused",
    ),
    Removal(
        row="S04",
        place="core/broker/replicas/fetcher.py::FetcherPool.handle_fetch",
        code="and asked.current_leader_epoch == followed.leader_epoch",
        instead="",
        test=f"{_BROKER}/replicas/test_follower.py::test_an_answer_to_another_leader_epoch_is_dropped",
    ),
    Removal(
        row="S05",
        place="core/broker/replicas/isr.py::can_expand",
        code="or follower.log_end_offset < epoch_start_offset",
        instead="",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_a_replica_with_data_of_older_epochs_only_cannot_join",
    ),
    Removal(
        row="S06",
        place="core/broker/replicas/partition.py::Partition._start_epoch",
        code="if self.log.epochs.assign(state.leader_epoch, self.log.log_end_offset):",
        instead="if False:",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_a_new_leader_enters_its_epoch_before_it_writes",
    ),
    Removal(
        row="S11",
        place="core/broker/replicas/partition.py::Partition.isr_member",
        code="None if follower is None else follower.broker_epoch",
        instead="self._registrations[broker_id].broker_epoch",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_a_member_is_named_with_the_incarnation_whose_fetch_came",
    ),
    Removal(
        row="S12",
        place="core/broker/replicas/isr.py::is_isr_eligible",
        code="or not registration.is_active",
        instead="",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_a_fenced_replica_neither_joins_nor_holds_up_commits",
    ),
    Removal(
        row="S12",
        place="core/controller/alter_partition.py::_is_eligible",
        code="or not registration.is_active",
        instead="",
        test=f"{_SCRIPTS}[kip_841_inactive_replicas_stay_out]",
    ),
    Removal(
        row="S15",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="len(self.committed_isr)",
        instead="len(maximal)",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_a_sent_expansion_does_not_count_towards_min_isr",
    ),
    Removal(
        row="S18",
        place="core/controller/election.py::_electable_last_known_leader",
        code="or candidates.last_known_leader not in candidates.acceptable",
        instead="",
        test=f"{_CONTROLLER}/test_election.py::test_a_last_known_leader_that_is_fenced_is_elected_in_no_mode",
    ),
    Removal(
        row="S19",
        place="core/broker/replicas/partition.py::Partition.note_fetch",
        code="fetch_offset=self.log.batch_base_offset(fetch_offset)",
        instead="fetch_offset=max(self.log.batch_base_offset(fetch_offset), old_end_offset or fetch_offset)",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_a_replica_that_was_moved_away_and_back_is_judged_by_its_fetch",
    ),
    Removal(
        row="S19",
        place="core/broker/replicas/isr.py::can_expand",
        code="or follower.log_end_offset is None:\n        return False",
        instead=":\n        return False\n    if follower.log_end_offset is None:\n        return True",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_replicas_that_may_be_proposed_as_members",
    ),
    Removal(
        row="S20",
        place="core/broker/replicas/delayed_fetch.py::FetchHandler.handle_request",
        code="else:\n            is_final = True\n",
        instead="else:\n            is_final = True\n"
        "            self._note_progress(turn, result.partition, asked, reader, reader.replica_id)\n",
        test=f"{_BROKER}/kraft/test_broker_steps.py::test_a_fetch_that_diverges_leaves_no_trace",
    ),
    Removal(
        row="S21",
        place="core/broker/replicas/fetcher.py::FetcherPool.handle_fetch",
        code="and asked.current_leader_epoch == followed.leader_epoch",
        instead="",
        test=f"{_BROKER}/replicas/test_follower.py::test_an_answer_to_another_leader_epoch_is_dropped",
    ),
    Removal(
        row="S24",
        place="core/controller/alter_partition.py::_epoch_error",
        code="if data.leader_epoch > state.leader_epoch or age > 0:",
        instead="if False:",
        test=f"{_SCRIPTS}[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="S25",
        place="core/controller/alter_partition.py::sender_error",
        code="or registration.broker_epoch != request.broker_epoch",
        instead="",
        test=f"{_SCRIPTS}[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="S25",
        place="core/broker/kraft/broker.py::Broker._is_known",
        code="and registration.incarnation_id == self._config.incarnation_id",
        instead="",
        test=f"{_BROKER}/kraft/test_broker_steps.py"
        "::test_logs_are_opened_and_roles_taken_once_the_metadata_has_this_very_process",
    ),
    Removal(
        row="S29",
        place="core/broker/replicas/partition.py::Partition._joiners",
        code="and is_isr_eligible("
        "broker_id, fetch_broker_epoch=follower.broker_epoch, registrations=self._registrations)",
        instead="",
        test=f"{_BROKER}/kraft/test_joiners.py::test_a_joiner_that_is_fenced_is_not_waited_for",
    ),
    Removal(
        row="S30",
        place="core/broker/replicas/isr_changes.py::handle_answer",
        code="if partition.isr_state is proposal.state:",
        instead="if True:",
        test=f"{_BROKER}/replicas/test_partition_leader.py::test_an_answer_to_a_state_that_metadata_replaced_is_ignored",
    ),
    Removal(
        row="S31",
        place="node/broker_shell.py::BrokerShell._run_turn",
        code="self._execute(effect, arrival)\n",
        instead="try: self._execute(effect, arrival)\n                    except Exception: pass\n",
        test="tests/unit/node/test_broker_shell.py::test_after_a_write_that_failed_nothing_else_is_done",
    ),
    Removal(
        row="S33",
        place="core/controller/recovery.py::choose_leader",
        code="best = max(usable, key=lambda report: _rank(state, report), default=None)",
        instead="best = usable[0] if usable else None",
        test=f"{_CONTROLLER}/test_unclean_recovery.py::test_the_last_record_s_epoch_decides_before_the_log_s_length",
    ),
    Removal(
        row="S34",
        place="core/controller/committed_events.py::_unclean_leader",
        code="if not isinstance(cause, PartitionCause) or cause.unclean is None or change.leader is None:",
        instead="if True:",
        test=f"{_SCRIPTS}[kip_966_random_election]",
    ),
    Removal(
        row="S44",
        place="simulator/oracle/guarantee.py::ProvenShutdowns.registered",
        code="return self._stopped.get(event.incarnation_id)",
        instead="return None",
        test="tests/simulation/test_regressions.py::test_plan[an-election-that-is-not-durable-yet]",
    ),
    Removal(
        row="T04",
        place="core/broker/replicas/producer_state.py::ProducerStates._is_verified",
        code="return guard is not None and self._verifications.get(producer.producer_id) is guard",
        instead="return guard is not None",
        test=f"{_PLANS}[t04-an-answer-after-the-transaction-s-end]",
    ),
    Removal(
        row="T06",
        place="core/broker/replicas/producer_state.py::ProducerStates.check_marker",
        code="(raises_epoch and is_of_open)",
        instead="(raises_epoch and ended.producer_epoch == entry.producer_epoch)",
        test=f"{_PLANS}[t06-a-marker-is-written-again]",
    ),
    Removal(
        row="T17",
        place="core/broker/groups/offsets.py::Offsets.fetch",
        code="unstable | self._held(request, found)",
        instead="self._held(request, found)",
        test=f"{_PLANS}[t17-a-position-of-an-unfinished-transaction]",
    ),
    Removal(
        row="Z02",
        place="core/zookeeper/controller/partition_states.py::PartitionStateMachine._elect",
        code="remaining = updates.outdated",
        instead="remaining = ()",
        test="tests/simulation/test_zookeeper_writers.py"
        "::test_the_write_of_the_leader_comes_before_an_election[kafka-2.6-zk]",
    ),
    Removal(
        row="Z02",
        place="core/broker/zookeeper/isr.py::write_isr",
        code="operations.SetData(path=path, data=data, version=expected)",
        instead="operations.SetData(path=path, data=data, version=None)",
        test="tests/simulation/test_zookeeper_writers.py"
        "::test_an_election_comes_before_the_write_of_the_leader[kafka-2.6-zk]",
    ),
    Removal(
        row="Z06",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="waited_for=waited_for",
        instead="waited_for=()",
        test="tests/simulation/test_zookeeper_stories.py"
        "::test_a_leader_without_zookeeper_acknowledges_nothing_once_it_is_deposed[kafka-2.6-zk]",
    ),
    Removal(
        row="Z10",
        place="core/zookeeper/controller/broker_changes.py::BrokerChanges.apply",
        code="if broker_id in cached and broker.broker_epoch > cached[broker_id].broker_epoch",
        instead="if False",
        test="tests/simulation/test_zookeeper_stories.py"
        "::test_a_broker_that_came_back_between_two_looks_gets_its_roles[kafka-2.6-zk]",
    ),
    Removal(
        row="Z26",
        place="core/zookeeper/broker_registration.py::register_broker",
        code="if owner is None or owner != previous_session_id:",
        instead="if True:",
        test="tests/unit/core/zookeeper/controller/test_controller_terms.py"
        "::test_a_process_whose_old_node_is_still_there_makes_it_anew",
    ),
    Removal(
        row="Z30",
        place="core/broker/zookeeper/isr_changes.py::ZooKeeperIsrChanges.ask_successor",
        code="if partition.isr_state is acknowledged.proposal.state:",
        instead="if False:",
        test=f"{_BROKER}/zookeeper/test_isr_changes.py"
        "::test_a_change_that_was_acknowledged_and_never_made_is_asked_of_the_next_controller[1-True]",
    ),
)
"""By row, and by place in the order of the row."""


@contextmanager
def removed(removal: Removal) -> Iterator[None]:
    """Has everybody who calls the function, or reads the property, run it without the rule."""
    path, _, name = removal.place.partition("::")
    module = importlib.import_module(f"laststand.emulator.{path.removesuffix('.py').replace('/', '.')}")
    function: object = module
    for part in name.split("."):
        function = inspect.getattr_static(function, part)
    function = function.fget if isinstance(function, property) else function
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(removal.code) == 1, f"{removal.place} does not say once: {removal.code}"
    defined = dict(vars(module))
    without = source.replace(removal.code, removal.instead).removeprefix("@property\n")
    exec(without, defined)
    code = function.__code__
    function.__code__ = defined[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = code


class _Trials:
    """Runs the test of each removal with the rule and without it, in place of what was collected."""

    def __init__(self, removals: Sequence[Removal]) -> None:
        self._removals = removals
        self.problems: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for removal in self._removals:
            items = [item for item in session.items if removal.test in (item.nodeid, item.nodeid.partition("[")[0])]
            if _fails(items):
                self.problems.append(f"{removal.test} fails with the rule of {removal.place}, too")
                continue
            with removed(removal):
                if not _fails(items):
                    said = f"without the rule of {removal.place} nothing fails in {removal.test}"
                    self.problems.append(f"{removal.row}: {said}")
        return True


def _fails(items: Sequence[pytest.Item]) -> bool:
    return any(report.failed for item in items for report in runtestprotocol(item, log=False, nextitem=None))


def problems(removals: Sequence[Removal]) -> list[str]:
    """Returns a line for each removal whose test does not fail without the rule, or fails with it."""
    trials = _Trials(removals)
    tests = sorted({removal.test for removal in removals})
    ended = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[trials])
    if ended is not pytest.ExitCode.OK:
        trials.problems.append(f"pytest ended with {ended!r}: a test is not there, or a removal cannot be made")
    return trials.problems


def main(rows: Sequence[str], table: Sequence[Removal] = REMOVALS) -> int:
    """Tries the removals of some rows, of all if none are named; returns 1 where one goes unnoticed."""
    found = problems([removal for removal in table if not rows or removal.row in rows])
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
