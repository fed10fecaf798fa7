"""Both oracles judge by one table of exemptions: they leave out what is listed there, and nothing else."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

import laststand.emulator.verification.rules.checks
import tests.simulation
from laststand.emulator.core.promises import PROMISES, Exemption, JudgedBy, Promise
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.writer import play_and_stop
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.rules.checks import CHECKS
from tests.unit.simulator.oracle.test_durability import acked_record_nowhere, deletes
from tests.unit.simulator.oracle.test_transactions import GROUPS
from tests.unit.simulator.oracle.world import World
from tests.verification import test_checks
from tests.verification.test_exempt import nobody_may_lead

Asked = set[tuple[str, Exemption]]

CHECK_FILES: Final = sorted(Path(laststand.emulator.verification.rules.checks.__file__).parent.glob("[a-z]*_*.py"))
PLANS: Final = Path(tests.simulation.__path__[0], "regressions")

SIGNS: Final[Mapping[str, Exemption]] = {
    r"\.is_deleted\(|\.deleted_below\.": Exemption.DELETED_RECORDS,
    r"\.deleted_topics": Exemption.DELETED_TOPICS,
    r"\.deletions_begun": Exemption.TOPICS_BEING_DELETED,
    r"\.removing_replicas": Exemption.LEAVING_REPLICAS,
    r"\.is_unclean\b": Exemption.UNCLEAN_ELECTIONS,
    r"POWER_LOST|PowerLost\b|_DISK_FAULTS": Exemption.LOST_DISKS,
    r"\.cluster\.killed": Exemption.KILLED_PROCESSES,
    r"\bACKS_ALL\b": Exemption.ACKS_1,
}
"""Words by which a check looks at what may be left out."""

IN_THE_STATEMENT: Final[Mapping[tuple[str, Exemption], str]] = {
    ("M4", Exemption.UNCLEAN_ELECTIONS): "an unclean election may take candidates away",
    ("M5", Exemption.DELETED_TOPICS): "a state lasts until its topic is deleted",
    **dict.fromkeys(
        ((check_id, Exemption.LEAVING_REPLICAS) for check_id in ("M16", "M19", "L8")), "it is about reassignments"
    ),
    ("M16", Exemption.UNCLEAN_ELECTIONS): "whether one may complete with an unclean election is up to the era",
    ("Z4", Exemption.TOPICS_BEING_DELETED): "no log is kept of a topic that is being deleted",
    ("D5", Exemption.KILLED_PROCESSES): "what the log of a killed leader lacks, it may have cut off and not told",
    ("M7", Exemption.UNCLEAN_ELECTIONS): "RECOVERING begins with one",
    ("M11", Exemption.UNCLEAN_ELECTIONS): "its leader joins the ISR",
    ("L7", Exemption.DELETED_TOPICS): "the log of a deleted topic is a stray",
    ("E1", Exemption.LOST_DISKS): "the harness tells what a power loss took, and it must be gone",
}
"""Checks that look at such a thing all the same, because their promise is about it."""

FORGOTTEN: Final = frozenset({Exemption.DELETED_TOPICS, Exemption.KILLED_PROCESSES, Exemption.ACKS_1})
"""Exemptions that the simulator's oracle makes by construction: promises of a topic go with it, no process that is
killed has done anything that the oracle did not see, and it notes only acknowledgements with acks=all."""

NOT_NEEDED_BY_VERIFICATION: Final = frozenset({("D7", Exemption.DELETED_RECORDS), ("D8", Exemption.DELETED_RECORDS)})
"""Verification compares no batch with the one before it, and begins final logs at their log start."""

NOT_NEEDED_BY_THE_SIMULATOR: Final = frozenset({("D3", Exemption.LOST_DISKS)})
"""Its D3 knows at each moment what is committed, and tells whether the guarantee held."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Notes which promise is asked for which exemption."""
    found: Asked = set()
    ids = {id(promise): check_id for check_id, promise in PROMISES.items()}
    leaves_out = Promise.leaves_out

    def note(promise: Promise, exemption: Exemption) -> bool:
        found.add((ids[id(promise)], exemption))
        return leaves_out(promise, exemption)

    monkeypatch.setattr(Promise, "leaves_out", note)
    return found


def listed(*judged_by: JudgedBy) -> Asked:
    return {
        (check_id, exemption)
        for check_id, promise in PROMISES.items()
        if promise.judged_by in judged_by
        for exemption in promise.exempts
    }


def test_verification_asks_for_what_is_listed_and_for_nothing_else(asked: Asked, tmp_path: Path) -> None:
    lost, _ = test_checks.FIRES["ZooKeeper, lost as the topic gets an id"]
    for number, build in enumerate((lost, nobody_may_lead)):
        judge(plan_run(0, open_run_directory(build(tmp_path / str(number)))))
    expected = listed(JudgedBy.BOTH, JudgedBy.VERIFICATION)
    assert asked == expected - NOT_NEEDED_BY_VERIFICATION


def test_the_simulators_oracle_asks_for_what_is_listed_and_for_nothing_else(asked: Asked) -> None:
    for doctor in (acked_record_nowhere, lambda world: deletes(world, 3)):
        doctor(World())
    World(GROUPS.format(end="commit")).simulation.finish()
    plans = ("s01-truncation-high-watermark", "s51-lower-start-is-durable-off", "z28-a-removed-replica-is-elected")
    for name in plans:
        play_and_stop(parse_plan((PLANS / f"{name}.txt").read_text())).judgement()
    expected = {each for each in listed(JudgedBy.BOTH, JudgedBy.SIMULATOR) if each[1] not in FORGOTTEN}
    assert {each for each in asked if PROMISES[each[0]].leaves_out(each[1])} == expected - NOT_NEEDED_BY_THE_SIMULATOR


@pytest.mark.parametrize("file", CHECK_FILES, ids=lambda file: file.stem)
def test_a_check_looks_only_at_exemptions_that_its_promise_lists(file: Path) -> None:
    check_id, text = file.stem.partition("_")[0].upper(), file.read_text()
    assert check_id in {check.check_id for check in CHECKS}
    for sign, exemption in SIGNS.items():
        if re.search(sign, text) and (check_id, exemption) not in IN_THE_STATEMENT:
            assert f'PROMISES["{check_id}"].leaves_out(Exemption.{exemption.name})' in text, (sign, exemption)
            assert exemption in PROMISES[check_id].exempts
