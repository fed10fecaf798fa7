"""One run's verdict."""

from pathlib import Path
from typing import NamedTuple

from tests.independent.checks import CHECKS, losses_are_broken, lost_sends
from tests.independent.run import Line, Run


class Verdict(NamedTuple):
    """The verdict on a run, with its reasons.

    Attributes:
        verdict: ``valid``, ``violation`` or ``unknown``.
        guarantee: ``broken`` if any loss is, else ``exceeded`` if there is one, else ``None``.
        lost_records: acknowledged with acks=all.
        findings: in words, by check.
        doubts: why a run without findings proves nothing.
    """

    verdict: str
    guarantee: str | None
    lost_records: int
    findings: dict[str, list[str]]
    doubts: list[str]


def judge(directory: Path) -> Verdict:
    """Judges the run in a directory; what it has no evidence for is unknown."""
    run = Run(directory)
    findings = {check: found for check, of in CHECKS.items() if (found := list(of(run)))}
    lost = sum(send.record_count for send, _, _ in lost_sends(run))
    kinds = list(losses_are_broken(run))
    guarantee = None if not kinds else "broken" if any(kinds) else "exceeded"
    doubts = [*run.doubts, *_doubts(run)]
    verdict = "violation" if findings else "unknown" if doubts else "valid"
    return Verdict(verdict, guarantee, lost, findings, doubts)


def _doubts(run: Run) -> list[str]:
    ended = next((line for line in run.harness if line["type"] == "RunEnded"), None)
    doubts = []
    if ended is None:
        doubts.append("the harness did not reach the end of the run")
    elif ended["problem"]:
        doubts.append(f"the plan did not reach its end: {ended['problem']}")
    if not run.states:
        doubts.append("nobody committed a partition")
    if not any(send.result == "ok" for send in run.sends):
        doubts.append("no record was acknowledged")
    for line in run.harness:
        if line["type"] == "FaultInjected" and line["effect"] is None:
            doubts.append(f"fault {line['fault']} on {line['target']} had no effect")
        elif line["type"] == "IncarnationEnded" and line["end"] == "unexpected":
            doubts.append(f"node {line['ended_node']} ended by itself")
        elif line["type"] == "IncarnationStarted" and _process(line) not in run.files:
            doubts.append(f"event file {line['event_file']} is missing or empty")
    doubts.extend(
        f"topic {topic_id} was deleted and created again, and has no id that tells the two apart"
        for topic_id in sorted(run.ambiguous)
    )
    return doubts


def _process(line: Line) -> tuple[int, int]:
    return line["started_node"], line["started_incarnation"]
