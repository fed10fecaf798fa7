"""A run that is read in slices and judged partition by partition is judged as one that a single process reads."""

import contextlib
import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.generate_log import generate_run
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.facts.run import RunFacts
from laststand.emulator.verification.judge import Judgement, judge
from laststand.emulator.verification.reading.lines import LineReader
from laststand.emulator.verification.reading.run_directory import RunDirectory, open_run_directory
from laststand.emulator.verification.reading.run_plan import RunPlan, plan_run
from laststand.emulator.verification.slices import judgement
from laststand.emulator.verification.slices.exchange import by_share, named_rows
from laststand.emulator.verification.slices.judgement import (
    MergedSlices,
    PartitionOutcome,
    RareEvidence,
    finish,
    judge_rows,
    merge_slices,
)
from laststand.emulator.verification.slices.reading import (
    Slice,
    UnfitError,
    slices_of,
    sort_slice,
    summary_of,
)
from laststand.emulator.verification.slices.rows import SliceTables
from laststand.emulator.verification.story import causes
from laststand.emulator.verification.verdict.report import Verdict
from tests.verification.packing import pack_run, without_place
from tests.verification.run_builder import healthy
from tests.verification.test_checks import FIRES, HOLDS, NOT_ASKED
from tests.verification.test_mixed_clusters import CASES, played

WRITTEN = {
    **{f"fires: {name}": build for name, (build, _) in FIRES.items()},
    **{f"holds: {name}": build for name, build in HOLDS.items()},
    **{f"not asked: {name}": build for name, (build, _) in NOT_ASKED.items()},
}
SIMULATED = {
    "kafka-0.10": SweepOptions(era="kafka-0.10", properties=(("min.insync.replicas", "1"),), profiles=("elections",)),
    "kip-966": SweepOptions(),
}

SHORTER_THAN_A_LINE = 150

LEAST = (SHORTER_THAN_A_LINE, 400, 1000, 2500)
"""Sizes of slices, dealt out among the runs, each a little larger, so that lines are cut at many places.

``make soak`` has a hundred sizes for each run.
"""

_SHARES = 3

Sliced = tuple[MergedSlices, list[PartitionOutcome]]


def planned(path: Path) -> RunPlan:
    return plan_run(0, open_run_directory(path))


def slice_and_judge(plan: RunPlan, slice_bytes: int) -> Sliced:
    """Does what Spark does in tasks, one after the other; slices come in another order than they were dealt."""
    found = [sort_slice(plan.run, piece) for piece in reversed(slices_of(plan, slice_bytes=slice_bytes))]
    merged = merge_slices(plan.run, map(summary_of, found))
    rare = RareEvidence(plan.run, merged.rare)
    pieces: defaultdict[int, list[tuple[Slice, SliceTables]]] = defaultdict(list)
    for each in found:
        for share, rows in each.tables.shares(_SHARES).items():
            pieces[share].append((each.census.slice, pickle.loads(pickle.dumps(rows))))
    shares = by_share(merged.names, _SHARES)
    rows_of = dict(chain.from_iterable(named_rows(names, pieces[share]) for share, names in shares.items()))
    return merged, [judge_rows(name, rare, rows_of[name]) for name in merged.names]


def sliced(plan: RunPlan, slice_bytes: int) -> Judgement:
    return finish(plan, *slice_and_judge(plan, slice_bytes))


@pytest.mark.parametrize("name", WRITTEN)
def test_hand_written_runs_are_judged_the_same_in_slices_and_packed(name: str, tmp_path: Path) -> None:
    run = WRITTEN[name](tmp_path / "run")
    plan = planned(run)
    expected = judge(plan)

    def check(slice_bytes: int) -> None:
        try:
            found = sliced(plan, slice_bytes)
        except UnfitError as error:
            reason = str(error)
        else:
            assert found == expected
            assert found.story.problem is None
            return
        # One process judges the run. It may find nothing wrong with what is of several partitions.
        is_whole = "transactions" in reason or "positions of groups" in reason
        assert is_whole or expected.report.verdict is Verdict.UNKNOWN

    place = list(WRITTEN).index(name)
    check(LEAST[place % len(LEAST)] + place)
    if (examples := settings().max_examples // 50) > len(LEAST):
        sizes = st.integers(min_value=SHORTER_THAN_A_LINE, max_value=5000)
        settings(max_examples=examples, deadline=None, database=None)(given(sizes)(check))()
    packed = judge(planned(pack_run(run, tmp_path / "packed")))
    assert without_place(packed.report) == without_place(expected.report)


@pytest.mark.parametrize("options", SIMULATED)
@settings(max_examples=settings().max_examples // 25, deadline=None)
@given(seed=st.integers(min_value=1, max_value=400), slice_bytes=st.integers(min_value=200, max_value=100_000))
@example(seed=40, slice_bytes=200)  # a topic is made again: its slices meet the two ids in another order
def test_simulated_runs_are_judged_the_same(
    options: str, seed: int, slice_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = tmp_path_factory.mktemp("simulated") / "run"
    write_run(explore(seed, SIMULATED[options]).plan, run, name="simulated", seed=seed)
    plan = planned(run)
    expected = judge(plan)
    try:
        found = sliced(plan, slice_bytes)
    except UnfitError:
        assert expected.report.verdict is Verdict.UNKNOWN
    else:
        assert found == expected
        assert found.story.problem is None


def without_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def with_torn_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def with_line_twice(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[2], *lines[3:]]))


def with_foreign_line(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"type":"Nonsense"}\n')


@pytest.mark.parametrize("alter", [without_last_line, with_torn_line, with_line_twice, with_foreign_line])
@pytest.mark.parametrize("file", ["events/1-0.jsonl", "events/100-0.jsonl", "history.jsonl"])
def test_a_run_with_a_fault_in_its_form_is_unfit_or_judged_the_same(
    file: str, alter: Callable[[Path], None], tmp_path: Path
) -> None:
    run = healthy(tmp_path / "run").finish()
    alter(run / file)
    plan = planned(run)
    expected = judge(plan)
    assert expected.report.verdict is not Verdict.VALID
    with contextlib.suppress(UnfitError):
        assert sliced(plan, 700) == expected


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.counts and case.check_id != "R4"])
def test_nobody_in_a_mixed_cluster_is_accused_by_doubtful_evidence(name: str, tmp_path: Path) -> None:
    run = played(tmp_path / "run", CASES[name])
    without_last_line(run / "events/1-0.jsonl")
    plan = planned(run)
    assert sliced(plan, 700) == judge(plan)


def test_whoever_reads_less_than_was_planned_makes_the_verdict_unknown(tmp_path: Path) -> None:
    plan = planned(healthy(tmp_path / "run").finish())
    merged, outcomes = slice_and_judge(plan, 1000)
    assert finish(plan, merged, outcomes).report.verdict is Verdict.VALID
    [outcome] = outcomes
    size = merged.sizes["history.jsonl"]
    fewer_bytes = {**merged.sizes, "history.jsonl": size - 1}
    less = {
        "read of a slice": (
            msgspec.structs.replace(merged, sizes=fewer_bytes),
            outcomes,
        ),
        "no file": (msgspec.structs.replace(merged, sizes={}), outcomes),
        "lines of a partition": (merged, [msgspec.structs.replace(outcome, lines=outcome.lines - 1)]),
        "no final log": (merged, [msgspec.structs.replace(outcome, sizes={})]),
        "no partition": (merged, []),
    }
    for name, (sliced_run, found) in less.items():
        report = finish(plan, sliced_run, found).report
        assert report.verdict is Verdict.UNKNOWN, name
        assert "verification was to" in report.unknown_reasons[0]


def test_many_partitions_are_judged_beside_rare_events_that_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate_run(tmp_path / "run", events=2000, partitions=60)
    plan = planned(tmp_path / "run")
    reads: list[RunDirectory] = []
    read_rare = judgement._read_rare

    def counted(run: RunDirectory, rare: Mapping[str, bytes]) -> tuple[RunFacts, LineReader]:
        reads.append(run)
        return read_rare(run, rare)

    monkeypatch.setattr(judgement, "_read_rare", counted)
    expected = judge(plan)
    assert all(each.causes for each in expected.story.partitions)
    assert sliced(plan, 20_000) == expected
    assert len(reads) == len({"for all partitions", "for the report"})
    monkeypatch.setattr(causes, "TOLD_MAX", 59)
    assert not any(each.causes for each in judge(plan).story.partitions)
