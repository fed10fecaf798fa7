"""Histories of list-append: a list is judged by its last reads, and an append that nobody asked for is not known.

A history is written as lines of ``type process micro-ops``, which are those of Jepsen's form.
"""

import random
from pathlib import Path

import pytest

from laststand.chaos.external.appended_lists import ListRead, last_reads
from laststand.chaos.external.imported_history import import_history
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.report.page import write_report
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport

EXAMPLES = Path(__file__).parents[4] / "docs/examples/histories"


def edn(folder: Path, history: str) -> Path:
    folder.mkdir(exist_ok=True)
    lines = []
    for index, line in enumerate(history.strip().splitlines()):
        kind, process, micro_ops = line.strip().split(maxsplit=2)
        value = f":value [{micro_ops}], :process {process}, :time {index * 100}, :index {index}"
        lines.append(f"{{:type :{kind}, :f :txn, {value}}}")
    path = folder / "history.edn"
    path.write_text("\n".join(lines))
    return path


def judged(folder: Path, history: str) -> VerdictReport:
    path = edn(folder, history)
    import_history([path], folder / "run", era="kafka-4.2", has_read_to_end=False)
    return judge_here(folder / "run").report


def violated(report: VerdictReport) -> set[str]:
    return {check.check_id for check in report.violated()}


def appended(*elements: int, process: int = 0) -> str:
    return "\n".join(f"{kind} {process} [:append 7 {element}]" for element in elements for kind in ("invoke", "ok"))


def read(elements: str, process: int = 1) -> str:
    return f"invoke {process} [:r 7 nil]\nok {process} [:r 7 {elements}]"


def written(*parts: str) -> str:
    return "\n".join(parts)


@pytest.mark.parametrize(
    ("elements", "checks", "lost"),
    [
        ("[1 2 3]", set(), 0),
        ("[1 3]", {"D1"}, 1),
        ("[1 2]", {"D1"}, 1),
        ("nil", {"D1"}, 3),
        ("[1 2 3 2]", {"D12"}, 0),
        ("[1 3 2]", {"D14"}, 0),
        ("[1 2 3 9]", {"D10"}, 0),
    ],
)
def test_a_list_is_judged_by_its_last_read(elements: str, checks: set[str], lost: int, tmp_path: Path) -> None:
    report = judged(tmp_path, written(appended(1, 2, 3), read(elements)))
    assert (violated(report), report.lost_records, report.doubts) == (checks, lost, ())
    assert report.verdict is (Verdict.VIOLATION if checks else Verdict.VALID)


@pytest.mark.parametrize(("elements", "is_known"), [("[1 2 3]", True), ("[1 3 2]", False), ("[1 3]", True)])
def test_the_order_within_a_transaction_is_not_known_to_be_right(
    elements: str, *, is_known: bool, tmp_path: Path
) -> None:
    both = "[:append 7 2] [:append 7 3]"
    report = judged(tmp_path, written(appended(1), f"invoke 0 {both}\nok 0 {both}", read(elements)))
    moved = [reason for reason in report.unknown_reasons if "key-7-0 has 3 before 2, which the same" in reason]
    assert bool(moved) is not is_known
    assert report.verdict is not Verdict.VALID or elements == "[1 2 3]"


def test_the_example_lost_an_element(tmp_path: Path) -> None:
    import_history([EXAMPLES / "list-append.edn"], tmp_path / "run", era="kafka-4.2", has_read_to_end=False)
    report = judge_here(tmp_path / "run").report
    assert (report.verdict, violated(report), report.lost_records) == (Verdict.VIOLATION, {"D1"}, 1)
    assert [(each.acked, each.lost) for each in report.counts] == [(4, 1)]
    assert "append-2 " in report.violated()[0].examples[0]
    page = tmp_path / "report.html"
    write_report(tmp_path / "run", page)
    assert "1 record of key-7-0 acknowledged with acks=all, without an offset" in page.read_text()


def test_what_was_acknowledged_after_the_last_read_had_begun_is_not_known(tmp_path: Path) -> None:
    """The read may have been served before the append was."""
    report = judged(
        tmp_path,
        written(appended(1), "invoke 1 [:r 7 nil]", appended(2), "ok 1 [:r 7 [1]]"),
    )
    assert (report.verdict, violated(report), report.lost_records) == (Verdict.UNKNOWN, set(), 0)
    assert report.unknown_reasons == (
        "1 acknowledged records of key-7-0 have no offset, and no read began after their acknowledgement",
    )


def test_a_lost_element_is_found_though_a_later_one_is_not_known(tmp_path: Path) -> None:
    report = judged(tmp_path, written(appended(1, 2), read("[2]"), appended(3)))
    assert (report.verdict, violated(report), report.lost_records) == (Verdict.VIOLATION, {"D1"}, 1)


def test_nothing_is_known_of_a_list_without_a_read(tmp_path: Path) -> None:
    report = judged(tmp_path, appended(1, 2))
    assert (report.verdict, violated(report)) == (Verdict.UNKNOWN, set())
    assert report.unknown_reasons == (
        "2 acknowledged records of key-7-0 have no offset, and no read began after their acknowledgement",
    )
    durable = next(check for check in report.checks if check.check_id == "D1")
    assert durable.status is CheckStatus.NOT_ASKED


@pytest.mark.parametrize("elements", ["[1]", "[1 2]"])
def test_an_append_of_unknown_outcome_may_be_there_or_not(elements: str, tmp_path: Path) -> None:
    unknown = "invoke 3 [:append 7 2] [:r 7 nil]\ninfo 3 [:append 7 2] [:r 7 nil]"
    report = judged(tmp_path, written(appended(1), unknown, read(elements)))
    assert (report.verdict, violated(report), report.lost_records) == (Verdict.VALID, set(), 0)


def test_an_append_that_failed_for_certain_is_nowhere(tmp_path: Path) -> None:
    failed = "invoke 3 [:append 7 2]\nfail 3 [:append 7 2]"
    assert violated(judged(tmp_path / "there", written(appended(1), failed, read("[1 2]")))) == {"D11"}
    assert judged(tmp_path / "gone", written(appended(1), failed, read("[1]"))).verdict is Verdict.VALID


def test_reads_that_fork_are_found(tmp_path: Path) -> None:
    report = judged(tmp_path, written(appended(1, 2, 3), read("[1 3]"), read("[1 2 3]")))
    assert (violated(report), report.lost_records) == ({"D5"}, 0)


def test_reads_at_the_same_time_that_fork_are_found_and_neither_makes_the_others_elements_lost(tmp_path: Path) -> None:
    both = "invoke 3 [:append 7 {0}]\ninvoke 4 [:append 7 {1}]\nok 3 [:append 7 {0}]\nok 4 [:append 7 {1}]"
    reads = "invoke 1 [:r 7 nil]\ninvoke 2 [:r 7 nil]\nok 1 [:r 7 [1 2]]\nok 2 [:r 7 [1 3]]"
    report = judged(tmp_path, written(appended(1), both.format(2, 3), reads))
    assert (violated(report), report.lost_records) == ({"D5"}, 0)


def test_an_element_that_was_read_and_is_gone_at_the_end_is_lost(tmp_path: Path) -> None:
    report = judged(tmp_path, written(appended(1, 2), read("[1 2]"), read("[1]")))
    assert (violated(report), report.lost_records) == ({"D1", "D5"}, 1)


def test_a_stale_read_makes_nothing_lost(tmp_path: Path) -> None:
    report = judged(tmp_path, written(appended(1, 2), read("[1]"), read("[1 2]")))
    assert (report.verdict, violated(report)) == (Verdict.VALID, set())


def test_a_short_read_at_the_same_time_as_a_long_one_makes_nothing_lost(tmp_path: Path) -> None:
    """The short one began last: it may have been served first, before the long one and the append were."""
    reads = "invoke 1 [:r 7 nil]\ninvoke 2 [:r 7 nil]\nok 2 [:r 7 [1]]\nok 1 [:r 7 [1 2]]"
    report = judged(tmp_path, written(appended(1), "invoke 3 [:append 7 2]", reads, "ok 3 [:append 7 2]"))
    assert (report.verdict, violated(report)) == (Verdict.VALID, set())


def test_a_transaction_reads_what_it_appended(tmp_path: Path) -> None:
    own = "[:r 7 {}] [:append 7 2] [:r 7 {}]"
    begun, ended = "invoke 1 " + own.format("nil", "nil"), "ok 1 " + own.format("[1]", "[1 2]")
    report = judged(tmp_path, written(appended(1), begun, ended))
    assert (report.verdict, violated(report)) == (Verdict.VALID, set())


def test_a_history_that_breaks_off_is_not_known_but_for_what_it_shows(tmp_path: Path) -> None:
    torn = "invoke 3 [:append 7 3]"
    report = judged(tmp_path / "whole", written(appended(1, 2), read("[1 2]"), torn))
    assert (report.verdict, violated(report)) == (Verdict.UNKNOWN, set())
    report = judged(tmp_path / "lossy", written(appended(1, 2), read("[2]"), torn))
    assert (report.verdict, violated(report), report.lost_records) == (Verdict.VIOLATION, {"D1"}, 1)


def played(seed: int, *, loses: bool) -> str:
    """Writes a history of four processes on one list, each of whose operations takes effect at one moment.

    A list that loses forgets an acknowledged element once, for good. The list is read at the end.
    """
    draw = random.Random(seed)
    elements: list[int] = []
    lines: list[str] = []
    acked: list[int] = []
    begun: dict[int, int | None] = {}
    answers: dict[int, str] = {}
    for step in range(60):
        process = draw.randrange(4)
        if process not in begun:
            begun[process] = step if draw.random() < 0.6 else None
            asked = "[:r 7 nil]" if begun[process] is None else f"[:append 7 {step}]"
            lines.append(f"invoke {process} {asked}")
        elif process not in answers:
            element = begun[process]
            answers[process] = f"[:r 7 {elements or 'nil'}]".replace(",", "") if element is None else ""
            elements += [] if element is None else [element]
        else:
            element = begun.pop(process)
            lines.append(f"ok {process} {answers.pop(process) or f'[:append 7 {element}]'}")
            acked += [] if element is None else [element]
            if loses and len(acked) == 3:
                elements.remove(acked[1])
                loses = False
    return written(*lines, read(f"{elements}".replace(",", ""), process=9))


@pytest.mark.parametrize("seed", range(6))
def test_only_a_list_that_loses_is_convicted(seed: int, tmp_path: Path) -> None:
    kept, lost = (judged(tmp_path / f"{loses}", played(seed, loses=loses)) for loses in (False, True))
    assert (violated(kept), kept.lost_records) == (set(), 0)
    assert ("D1" in violated(lost), lost.lost_records) == (True, 1)


def test_last_reads_are_over_before_no_other() -> None:
    partition = TopicPartition("key-7", 0)

    def began(operation: str) -> ListRead:
        return ListRead("p", operation, partition, None)

    def gave(operation: str, *elements: str) -> ListRead:
        return ListRead("p", operation, partition, elements)

    history = [began("a"), gave("a", "1", "2", "3"), began("b"), began("c"), gave("c"), gave("b", "1")]
    found = last_reads(history)[partition]
    assert (found.begun, found.ended, found.elements) == (3, 5, ("1",))
    assert (found.offset("1"), found.offset("2")) == (0, None)


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ("invoke 0 [:append 7]", "edn:1.*append has a key and a value"),
        ("invoke 0 [:append 7 nil]", "edn:1.*append has one element"),
        ("invoke 0 [:append 7 [1]]", "edn:1.*append has one element"),
        ("invoke 0 [:r 7 nil]\nok 0 [:r 7 5]", "edn:2.*r gives a list, or nil"),
        ("invoke 0 [:w 7 5]", "edn:1.*w is none of send, poll, append and r"),
        ("ok 0 [:r 7 [1]]", "edn:1.*process 0 has nothing begun"),
        ("invoke 0 [:r 7 nil]\ninvoke 0 [:r 7 nil]", "edn:2.*has no outcome yet"),
        ("invoke 0 [:append 7 1]\nok 0 [:append 7 2]", "edn:2.*process 0 began something else"),
        (written(appended(1), "invoke 0 [:append 7 1]"), "edn:3.*1 is appended to 7 twice"),
        ("invoke 0 [:append 7 1] [:send 7 2]", "edn:1.*7 is a queue or a list, and not both"),
        ("invoke 0 [:append 7 1]\nok 0 [:append 7 ", "edn:2"),
    ],
)
def test_what_is_no_list_append_is_refused_in_a_line_and_leaves_nothing(
    history: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=reason) as raised:
        import_history([edn(tmp_path, history)], tmp_path / "run", era="kafka-4.2", has_read_to_end=False)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()
