"""Promises of a cluster whose nodes follow different rules, by hand-written runs in which broker 2 is started again."""

from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.core import events as e
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.conftest import Judge
from tests.verification.run_builder import healthy

WITHOUT_ELR: Final = {"elr": "off"}
RENAMES: Final = {"stray_cleanup": "rename"}


def elr_beside_a_full_isr(path: Path, *, own: dict[str, str], given: dict[str, str] | None) -> Path:
    """M3 is broken, once broker 2 has been started again.

    Args:
        path: of the run.
        own: in what the rules of broker 2 differ.
        given: in what they differ by the harness; ``None`` if it says nothing.
    """
    run = healthy(path)
    run.end(2, e.IncarnationEnd.STOPPED)
    run.own[2] = own
    if given is not None:
        run.given[2] = given
    run.restart(2, clean=True)
    run.alter(reason="alter_partition", broker=0, isr=(0, 1), elr=(2,))
    return run.finish()


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("mixed")
    return judge(
        {
            "lacks the rule": elr_beside_a_full_isr(base / "1", own=WITHOUT_ELR, given=WITHOUT_ELR),
            "has the rule": elr_beside_a_full_isr(base / "2", own=RENAMES, given=RENAMES),
            "says nothing": elr_beside_a_full_isr(base / "3", own=WITHOUT_ELR, given=None),
            "says otherwise": elr_beside_a_full_isr(base / "4", own=WITHOUT_ELR, given=RENAMES),
        }
    )


def status(report: VerdictReport, check_id: str) -> CheckStatus:
    return next(check.status for check in report.checks if check.check_id == check_id)


def test_what_one_member_does_not_promise_the_cluster_does_not(reports: dict[str, VerdictReport]) -> None:
    assert status(reports["lacks the rule"], "M3") is CheckStatus.NOT_PROMISED
    assert status(reports["lacks the rule"], "M9") is CheckStatus.OK


def test_what_every_member_promises_the_cluster_does(reports: dict[str, VerdictReport]) -> None:
    assert status(reports["has the rule"], "M3") is CheckStatus.VIOLATED
    assert status(reports["has the rule"], "M15") in (CheckStatus.OK, CheckStatus.NOT_ASKED)


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        ("says nothing", "the nodes of the run did not all have the same switches"),
        ("says otherwise", "the harness gave incarnation 1 of node 2 elr=on, and it had elr=off"),
    ],
)
def test_rules_that_the_harness_did_not_give_are_doubtful(
    name: str, doubt: str, reports: dict[str, VerdictReport]
) -> None:
    assert reports[name].verdict is Verdict.UNKNOWN
    assert doubt in reports[name].unknown_reasons
