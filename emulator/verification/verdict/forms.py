"""The forms of a verdict: ``verdict.json``, ``junit.xml`` and text for a terminal."""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.user_files import read_bytes
from laststand.emulator.verification.rules.sentences import acks_setting
from laststand.emulator.verification.verdict.junit import Case, junit
from laststand.emulator.verification.verdict.report import CheckStatus, VerdictReport, headline

VERDICT_FILE: Final = "verdict.json"
JUNIT_FILE: Final = "junit.xml"
_SUMMARY_LINES: Final = 12
_READERS_MAX: Final = 4


def write_verdict(report: VerdictReport, directory: Path, *, picture: Sequence[str] = ()) -> None:
    """Writes ``verdict.json`` and ``junit.xml`` into the run's directory, each of them whole or not at all.

    Args:
        report: the verdict.
        directory: of the run.
        picture: of the run as lines, which ``junit.xml`` shows if the run was not as expected.

    Raises:
        OSError: a file cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    write_whole(directory / VERDICT_FILE, text + b"\n")
    write_whole(directory / JUNIT_FILE, junit((Case.of(report, picture=picture),)).encode())


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


_Form = TypeVar("_Form", bound=_Versioned)


def read_form(path: Path, form: type[_Form], *, version: int) -> _Form:
    """Reads a JSON file that verification leaves in a run's directory; the file's stem is the error's key.

    Raises:
        ConfigError: there is no such file, or it is of another version.
    """
    try:
        read = msgspec.json.decode(read_bytes(path), type=form)
    except OSError as error:
        if not path.parent.exists():
            raise ConfigError(key="run", value=str(path.parent), expected="a directory: there is none") from None
        expected = f"a run that was verified: laststand verify RUN ({error.strerror})"
        raise ConfigError(key=path.stem, value=str(path), expected=expected) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        expected = f"what this version of laststand verify writes ({error})"
        raise ConfigError(key=path.stem, value=str(path), expected=expected) from None
    if read.version != version:
        expected = f"{version} in {path}, which another version of this program wrote; laststand verify writes it again"
        raise ConfigError(key="version", value=str(read.version), expected=expected)
    return read


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def summary(report: VerdictReport) -> str:
    """Returns at most twelve lines for a terminal: verdict, counts, what fired, the first story or doubts."""
    lines = [headline(report)]
    for counts in report.counts:
        lost = "loss not tracked" if counts.acks == 0 else f"{counts.lost} lost"
        lines.append(f"  {acks_setting(counts.acks)}: {counts.sent} records sent, {counts.acked} acked, {lost}")
    if unseen := sum(partition.unseen for partition in report.partitions):
        lines.append(f"  {unseen} records were acknowledged by brokers, and no client saw it")
    lines.extend(f"  {each.sentence}" for each in report.readers[:_READERS_MAX] if each.sentence is not None)
    if any(partition.workloads for partition in report.availability):
        lines.append(f"  availability: {_availability_in_words(report)}")
    if report.guarantee_of_commits is not None and not report.losses:
        kind = report.guarantee_of_commits.value
        lines.append(f"  committed records were lost, none of them acknowledged with acks=all: guarantee {kind}")
    elif report.worst_guarantee is not None and not report.losses:
        kind = report.worst_guarantee.value
        lines.append(f"  acknowledged records did not reach a consumer, and none is lost: guarantee {kind}")
    lines.append(f"  checks: {_checks_in_words(report)}")
    lines.extend(f"  {line}" for line in report.exempted())
    details = [f"unknown: {reason}" for reason in report.unknown_reasons]
    details.extend(loss.story[0].text for loss in report.losses)
    details.extend(dict.fromkeys(line.text for loss in report.losses for line in loss.story[1:]))
    if not report.losses:
        details.extend(f"{check.check_id}: {check.examples[0]}" for check in report.violated())
    left = max(_SUMMARY_LINES - len(lines), 1)
    if len(details) > left:
        details = [*details[: left - 1], f"... {len(details) - left + 1} more lines in {VERDICT_FILE}"]
    return "\n".join([*lines, *(f"  {detail}" for detail in details)])


def _availability_in_words(report: VerdictReport) -> str:
    """Returns the longest wait of all partitions and workloads, of which there must be one."""
    waited = [(workload, partition) for partition in report.availability for workload in partition.workloads]
    longest, partition = max(waited, key=lambda each: each[0].longest_without_ack_s)
    where = f"{partition.topic}-{partition.partition}, {acks_setting(longest.acks)}"
    parts = [f"at most {longest.longest_without_ack_s:.2f} s without an ack ({where})"]
    if report.p99_ack_s is not None:
        parts.append(f"99 % acked within {report.p99_ack_s:.3f} s")
    if report.leaderless_s is not None and report.below_min_isr_s is not None:
        parts.append(f"{report.leaderless_s:.2f} s without a leader")
        parts.append(f"{report.below_min_isr_s:.2f} s below min ISR")
    after = [workload.slowest_after_fault for workload, _ in waited if workload.slowest_after_fault is not None]
    if after:
        slowest = max(after, key=lambda each: inf if each.seconds is None else each.seconds)
        what = "no ack" if slowest.seconds is None else f"first ack {slowest.seconds:.2f} s"
        parts.append(f"{what} after {slowest.fault} {slowest.target}")
    return ", ".join(parts)


_IN_WORDS: Final = {
    CheckStatus.OK: "held",
    CheckStatus.VIOLATED: "violated",
    CheckStatus.EXEMPT: "exempt",
    CheckStatus.UNKNOWN: "unknown",
    CheckStatus.NOT_PROMISED: "not promised in this era",
    CheckStatus.NOT_ASKED: "not asked",
}
_NAMED: Final = (CheckStatus.VIOLATED, CheckStatus.UNKNOWN)


def _checks_in_words(report: VerdictReport) -> str:
    parts = []
    for status, words in _IN_WORDS.items():
        found = [check for check in report.checks if check.status is status]
        names = ", ".join(f"{check.check_id} {check.name}" for check in found)
        is_named = status in _NAMED and len(found) < len(report.checks)
        if found:
            parts.append(f"{len(found)} {words}{f' ({names})' if is_named else ''}")
    return ", ".join(parts) or "none"
