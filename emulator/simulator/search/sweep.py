"""A sweep: many seeds, in several processes, and the sum of their results.

Seeds go to the processes in batches, and results are collected in order, so the report does not depend on the number of
processes. For schedules without findings only counts are kept, as histograms: so
memory and the time for medians do not grow with the length of a sweep.
"""

import gc
import multiprocessing
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.simulator.oracle.conjunctions import CONJUNCTIONS, MUST_OCCUR
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.profiles.profiles import PROFILES
from laststand.emulator.simulator.search.explorer import Schedule, SweepOptions, explore

BATCH: Final = 10
"""Seeds that a process takes at a time."""

_KIB_PER_MB: Final = 1024

PROOF_SCHEDULES: Final = 1000
"""The number of schedules, over all profiles, from which on too little progress makes a sweep ``unknown``."""

CONJUNCTION_SCHEDULES: Final = 5_000
"""The number of schedules from which on a conjunction that never occurred is reported."""

PROGRESS_MIN: Final = {"acks": 20, "elections": 2, "unclean_restarts": 1, "truncations": 1}
"""Medians per schedule below which a green sweep proves nothing."""


COVERAGE: Final = (
    "alter_partition:FENCED_LEADER_EPOCH",
    "alter_partition:INELIGIBLE_REPLICA",
    "alter_partition:INVALID_UPDATE_VERSION",
    "alter_partition:NONE",
    "answered:held_back",
    "answered:ignored",
    "answered:pending",
    "answered:reverted",
    "controlled_shutdown",
    "election:elr",
    "election:isr",
    "election:last_known_leader",
    "election:no_candidate",
    "election:unclean",
    "fenced:session_expired",
    "fenced:shutdown",
    "in_time:L10",
    "in_time:L10_unclean",
    "in_time:L11",
    "in_time:L12",
    "in_time:L13",
    "partition_changed:broker_registered",
    "partition_changed:elect_leaders",
    "partition_changed:min_isr_changed",
    "partition_changed:reassignment",
    "partition_changed:unclean_recovery",
    "partition_changed:unregistered",
    "power_loss:after_truncation",
    "power_loss:bytes",
    "produce:UNKNOWN_TOPIC_ID",
    "recovery_step:finished",
    "registered:unclean",
    "roles:held_back",
    "segment:rolled",
    "stray:deleted",
    "stray:unknown_topic",
    "timed_out:uncommitted",
    "truncated:below_high_watermark",
    "truncated:diverging_epoch",
    "unclean_leader:designated",
    "unclean_leader:longest_log",
    "unclean_leader:random",
    "unclean_recovery:Aggressive",
    "unclean_recovery:Balanced",
)
"""Marks that a broad sweep of era ``kip-966`` must hit: a rule that was never at work was not tested."""

RARE_COVERAGE: Final = (
    "alter_partition:STALE_BROKER_EPOCH",
    "elr:reassigned_away",
    "power_loss:hole",
    "power_loss:segment",
)
"""Marks that only a long one must hit."""


class SweepReport(msgspec.Struct, kw_only=True):
    """The result of a sweep so far.

    Attributes:
        schedules: number of played schedules.
        steps: of all nodes of all schedules.
        seconds: wall time.
        acks: batches acknowledged with acks=all.
        elections: leaders elected.
        power_losses: logs that lost bytes.
        excuses: partitions without an eligible leader at the end, by the protocol's own rules.
        memory_mb: largest resident memory of any of the processes.
        exceeded: alarms outside of the guarantee, by check.
        marks: how often each rule applied.
        medians: per schedule.
        findings: schedules with findings; the first only, or one per distinct finding.
        found: number of schedules with findings.
        too_little: medians below ``PROGRESS_MIN``, marks of ``COVERAGE`` and ``RARE_COVERAGE`` never hit and pairs of
            ``MUST_OCCUR`` never met, where they are asked for.
        gaps: conjunctions that never occurred, if the sweep is long enough to expect them.
        is_interrupted: whether a KeyboardInterrupt ended it.
    """

    schedules: int = 0
    steps: int = 0
    seconds: float = 0.0
    acks: int = 0
    elections: int = 0
    power_losses: int = 0
    excuses: int = 0
    memory_mb: float = 0.0
    exceeded: dict[str, int] = {}
    marks: dict[str, int] = {}
    medians: dict[str, float] = {}
    findings: list[Schedule] = []
    found: int = 0
    too_little: list[str] = []
    gaps: list[str] = []
    is_interrupted: bool = False


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a worker process: its schedules, and its largest resident memory."""

    schedules: list[Schedule]
    memory_mb: float


Batches = Callable[[Iterator[int], SweepOptions], Iterator[Batch]]
"""Plays seeds, in batches of any size, and yields the results in the order of the seeds."""


class _Tally:
    """Adds up schedules."""

    def __init__(self, options: SweepOptions) -> None:
        self.report = SweepReport()
        self._options = options
        self._marks: Counter[str] = Counter()
        self._exceeded: Counter[str] = Counter()
        self._per_schedule: dict[str, Counter[int]] = {name: Counter() for name in PROGRESS_MIN}
        self._known: set[tuple[str, ...]] = set()
        self._started = time.monotonic()

    def add(self, schedule: Schedule) -> None:
        report, outcome = self.report, schedule.outcome
        report.schedules += 1
        report.steps += outcome.steps
        report.acks += outcome.acks
        report.elections += outcome.elections
        report.excuses += outcome.excuses
        report.power_losses += outcome.marks.get("power_loss:bytes", 0)
        self._marks.update(outcome.marks)
        self._exceeded.update(a.check_id for a in outcome.alarms if a.guarantee is Guarantee.EXCEEDED)
        for name, counts in self._per_schedule.items():
            counts[getattr(outcome, name)] += 1
        if outcome.findings:
            report.found += 1
            signature = tuple(sorted({finding.check_id for finding in outcome.findings}))
            if signature not in self._known:
                self._known.add(signature)
                report.findings.append(schedule)

    def finished(self) -> SweepReport:
        report = self.report
        report.seconds = time.monotonic() - self._started
        report.marks = dict(sorted(self._marks.items()))
        report.exceeded = dict(sorted(self._exceeded.items()))
        report.medians = {name: median(counts) for name, counts in self._per_schedule.items() if counts}
        is_usual = self._options.cluster is None and set(self._options.profiles) == set(PROFILES)
        is_broad = is_usual and report.schedules >= PROOF_SCHEDULES
        report.too_little = [
            name for name, least in PROGRESS_MIN.items() if is_broad and report.medians.get(name, 0) < least
        ]
        if is_broad and self._options.era == DEFAULT_ERA and not self._options.switches:
            report.too_little += [mark for mark in COVERAGE if not self._marks[mark]]
            if report.schedules >= CONJUNCTION_SCHEDULES:
                report.too_little += [mark for mark in (*RARE_COVERAGE, *MUST_OCCUR) if not self._marks[mark]]
                report.gaps = [pair for pair in CONJUNCTIONS if not self._marks[pair]]
        return report


def median(counts: Counter[int]) -> float:
    """Returns the median of a histogram, which is not empty."""
    total = counts.total()
    return (_ranked(counts, (total - 1) // 2) + _ranked(counts, total // 2)) / 2


def _ranked(counts: Counter[int], rank: int) -> int:
    """Returns the number at position ``rank`` (from 0) in ascending order."""
    passed = 0
    for number in sorted(counts):
        passed += counts[number]
        if passed > rank:
            return number
    raise IndexError(rank)


def explore_batch(seeds: Sequence[int], options: SweepOptions) -> Batch:
    """Plays seeds in this process; plans without findings are returned without actions unless the options keep them."""
    with _collection_between_schedules() as collect:
        schedules: list[Schedule] = []
        for seed in seeds:
            schedule = explore(seed, options)
            schedules.append(schedule if options.are_plans_kept else _light(schedule))
            collect()
    return Batch(schedules=schedules, memory_mb=_memory_mb())


@contextmanager
def _collection_between_schedules() -> Iterator[Callable[[], object]]:
    """Suspends the collection of cyclic garbage, and yields what collects the youngest objects.

    A cluster is one cycle of a few thousand objects that all live until its schedule ends. A collection before that, or
    one over all imported objects, takes a tenth of the time and frees nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield partial(gc.collect, 0)
    finally:
        if was_enabled:
            gc.enable()


def _memory_mb() -> float:
    """Returns the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MB


_INTERRUPTIONS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def _die_of_interruptions() -> None:
    """Makes a process of the pool die at once, and quietly, when its group is interrupted: the parent reports."""
    for number in _INTERRUPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)


def _light(schedule: Schedule) -> Schedule:
    """Returns a schedule, without its actions if it has no findings."""
    if schedule.outcome.findings:
        return schedule
    return msgspec.structs.replace(schedule, plan=schedule.plan.with_actions(()))


def sweep(
    seeds: Iterator[int],
    options: SweepOptions,
    *,
    jobs: int = 1,
    keep_going: bool = False,
    limit_s: float | None = None,
    on_progress: Callable[[SweepReport], None] = lambda _: None,
    on_schedule: Callable[[Schedule], None] = lambda _: None,
    batches: Batches | None = None,
) -> SweepReport:
    """Explores seeds until all are played, the time is over, or (unless ``keep_going``) there is a finding.

    Findings before a KeyboardInterrupt are reported, too. ``on_schedule`` is called for each schedule that counts,
    in the order of the seeds. ``batches`` plays them elsewhere than in ``jobs`` processes of this machine.
    """
    tally = _Tally(options)
    started = time.monotonic()

    def is_over() -> bool:
        is_late = limit_s is not None and time.monotonic() - started >= limit_s
        return is_late or (bool(tally.report.findings) and not keep_going)

    try:
        for batch in _batches(seeds, options, jobs) if batches is None else batches(seeds, options):
            tally.report.memory_mb = max(tally.report.memory_mb, batch.memory_mb, _memory_mb())
            for schedule in batch.schedules:
                tally.add(schedule)
                on_schedule(schedule)
                if schedule.outcome.findings and not keep_going:
                    break
            on_progress(tally.finished())
            if is_over():
                break
    except KeyboardInterrupt:
        tally.report.is_interrupted = True
    return tally.finished()


def _batches(seeds: Iterator[int], options: SweepOptions, jobs: int) -> Iterator[Batch]:
    if jobs == 1:
        while batch := list(islice(seeds, BATCH)):
            yield explore_batch(batch, options)
        return
    with ProcessPoolExecutor(jobs, initializer=_die_of_interruptions) as pool:
        waiting: list[Future[Batch]] = []
        try:
            while True:
                # An interruption between the fork of a worker and its entry in the pool's books would leave an orphan.
                signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
                while len(waiting) < 2 * jobs and (batch := list(islice(seeds, BATCH))):
                    waiting.append(pool.submit(explore_batch, batch, options))
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
                if not waiting:
                    return
                yield waiting.pop(0).result()
        finally:
            for worker in multiprocessing.active_children():
                worker.kill()  # nobody waits for what is under way
