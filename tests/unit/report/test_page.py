"""The page of a run says what was lost and why, asks the network for nothing, and escapes what comes from a run."""

import dataclasses
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.report.comparison import compare_decisions
from laststand.emulator.report.headline import headline
from laststand.emulator.report.page import DRAWN_MAX, REPORT_FILE, render, write_report
from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.report.steps import Tone
from laststand.emulator.report.worst_first import worst_first
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.story.run import RunStory
from laststand.emulator.verification.story.story_file import STORY_FILE
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.unit.report.judged_runs import judged, kept, left_by, lost
from tests.verification.run_builder import RunBuilder, healthy

EVIL = "<script>alert('&')</script>\"'>"


class Page(HTMLParser):
    """A page as a browser would take it, as far as these tests ask: elements, attributes, ids, text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> Iterator[str]:
        return (value for _, attributes in self.elements if (value := attributes.get(name)) is not None)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return lost(tmp_path_factory.mktemp("lost") / "story" / "1")


@pytest.fixture(scope="module")
def survival(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return kept(tmp_path_factory.mktemp("kept") / "story" / "1")


def test_a_loss_is_reported_in_a_number_and_a_sentence(loss: ReportedRun) -> None:
    head = headline(loss.verdict, worst_first(loss.verdict, loss.story), loss.story)
    assert (head.figure, head.rest) == ("100", "of 110 records acknowledged with acks=all are gone")
    assert head.cause == (
        "Broker 2 lost power with nothing flushed, came back empty and was elected leader; "
        "brokers 0 and 1 cut their logs to follow it."
    )
    assert head.guarantee == "Guarantee broken."


@pytest.mark.parametrize(
    ("loss_class", "words"),
    [
        (LossClass.GONE_EVERYWHERE, "are gone"),
        (LossClass.ONLY_UNELECTABLE, "are only where nobody may lead"),
        (LossClass.NOT_ON_LEADER, "are not in the leader's log"),
        (LossClass.GONE_FOR_A_TIME, "were gone for a time"),
        (LossClass.UNREAD, "were not read"),
    ],
)
def test_what_is_left_of_the_records_is_reported(loss: ReportedRun, loss_class: LossClass, words: str) -> None:
    losses = tuple(msgspec.structs.replace(each, loss_class=loss_class) for each in loss.verdict.losses)
    rest = _rest(loss, msgspec.structs.replace(loss.verdict, losses=losses))
    assert rest == f"of 110 records acknowledged with acks=all {words}"
    other = next(each for each in LossClass if each is not loss_class)
    mixed = (*losses, msgspec.structs.replace(losses[0], loss_class=other))
    assert _rest(loss, msgspec.structs.replace(loss.verdict, losses=mixed)).endswith("are not where they must be")


def _rest(run: ReportedRun, verdict: VerdictReport) -> str:
    return headline(verdict, worst_first(verdict, run.story), run.story).rest


@pytest.mark.parametrize("known", [(), ("payments",)])
def test_a_loss_in_a_partition_that_the_story_does_not_have_is_described_in_its_own_words(
    loss: ReportedRun, known: tuple[str, ...]
) -> None:
    partitions = tuple(msgspec.structs.replace(loss.story.partitions[0], topic=topic) for topic in known)
    run = dataclasses.replace(loss, story=msgspec.structs.replace(loss.story, partitions=partitions))
    first_line = loss.verdict.losses[0].story[0].text
    head = headline(run.verdict, worst_first(run.verdict, run.story), run.story)
    assert (head.figure, head.cause) == ("100", first_line)
    assert first_line in Page(render(run)).text


def test_a_valid_run_says_who_kept_everything_at_the_worst_moment(survival: ReportedRun) -> None:
    head = headline(survival.verdict, worst_first(survival.verdict, survival.story), survival.story)
    assert head.figure == "All 110"
    assert re.search(r"; at the worst moment, [\d.]+ s, only broker 1 had all of them", head.cause)


def steps_of(page: Page) -> list[str]:
    text = page.text
    return re.findall(r"(Broker \d [^.0-9]*?|Only broker \d [^.0-9]*?) [\d.]+ s", text)


def test_the_steps_of_a_loss_lead_to_it_in_order(loss: ReportedRun) -> None:
    page = Page(render(loss))
    assert steps_of(page) == [
        "Only broker 2 is in sync",
        "Broker 2 loses power",
        "Broker 2 is elected with an empty log",
        "Broker 0 cuts its log",
        "Broker 1 cuts its log",
    ]
    assert "That was the last copy." in page.text


def test_the_steps_of_a_survival_say_what_prevented_the_loss(survival: ReportedRun) -> None:
    page = Page(render(survival))
    told = steps_of(page)
    assert {"Broker 2 loses power", "Broker 2 cannot prove a clean shutdown", "Broker 1 is elected"} <= set(told)
    assert "out of the ELR: it may not lead" in page.text
    assert any(value.split()[-1] == Tone.SAVED.value for value in page.values("class") if "disc" in value.split())


def test_every_step_is_in_story_and_picture_under_one_number(loss: ReportedRun) -> None:
    page = Page(render(loss))
    ids = list(page.values("id"))
    assert len(ids) == len(set(ids))
    links = [value.removeprefix("#") for value in page.values("href")]
    assert {link for link in links if "step" in link} == {each for each in ids if "step" in each} != set()
    assert set(links) <= set(ids)
    assert set(page.values("data-disc")) <= set(ids)


def test_the_picture_is_well_formed_and_within_its_bounds(loss: ReportedRun, survival: ReportedRun) -> None:
    for run in (loss, survival):
        [svg] = re.findall(r'<svg [^>]*class="figure".*?</svg>', render(run), re.DOTALL)
        root = ElementTree.fromstring(svg)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for each in root.iter("rect"):
            x, y = float(each.attrib["x"]), float(each.attrib["y"])
            assert -1 <= x <= x + float(each.attrib["width"]) <= width + 1
            assert -1 <= y <= y + float(each.attrib["height"]) <= height + 1


def paths(run: ReportedRun, class_: str) -> int:
    return len(re.findall(rf'<path [^>]*class="{class_}"', render(run)))


def test_only_what_the_oracle_calls_gone_is_red(loss: ReportedRun, survival: ReportedRun) -> None:
    assert paths(survival, "gone") == 0
    assert paths(loss, "gone") == 4
    spared = msgspec.structs.replace(
        loss.verdict, partitions=tuple(msgspec.structs.replace(each, gone=()) for each in loss.verdict.partitions)
    )
    other = ReportedRun(directory=loss.directory, verdict=spared, story=loss.story, plan=None)
    assert paths(other, "gone") == 0


def test_a_page_asks_the_network_for_nothing(loss: ReportedRun) -> None:
    text = render(loss)
    page = Page(text)
    policy = next(
        str(attributes["content"]) for tag, attributes in page.elements if tag == "meta" and "http-equiv" in attributes
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert [value for name in ("src", "style", "onclick") for value in page.values(name)] == []
    assert all(value.startswith("#") for value in page.values("href"))
    assert re.findall(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", text) == []


def evil(path: Path) -> RunBuilder:
    run = healthy(path)
    for lines in run.files.values():
        for line in lines:
            if line.get("topic") == "orders":
                line["topic"] = EVIL
    run.step(f"{{until: {EVIL}}}")
    return run


ASKED: str = """<<"traces", 2>>
<<"accepted", 1>>
<<"rejected", 2, 17, "Decide", "0-0:1">>
Model checking completed. No error has been found.
"""


def test_the_first_line_that_the_specification_cannot_follow_is_in_the_page(tmp_path: Path) -> None:
    directory = left_by(healthy(tmp_path / "run" / "1"))
    assert "Specification" not in Page(render(read_reported_run(directory))).text
    (directory / "tla.txt").write_text(ASKED.replace('"rejected", 2, 17, "Decide", "0-0:1"', '"accepted", 2'))
    assert "from the first line to the last: 2 accepted" in Page(render(read_reported_run(directory))).text
    (directory / "tla.txt").write_text(ASKED)
    text = Page(render(read_reported_run(directory))).text
    assert "line 17 of a trace" in text
    assert "Decide" in text
    assert re.search(r"event\s*0-0:1\b", text)
    (directory / "tla.txt").write_text("it was stopped")
    with pytest.raises(ConfigError, match=r"tla\.txt=it was stopped .*the output of TLC"):
        read_reported_run(directory)


def test_what_comes_from_a_run_is_text(tmp_path: Path) -> None:
    directory = left_by(evil(tmp_path / EVIL.replace("/", "") / "1"))
    (directory / "plan.yaml").write_text(f"name: {EVIL}\n</pre>{EVIL}")
    text = render(read_reported_run(directory))
    plain = Page(render(read_reported_run(left_by(healthy(tmp_path / "plain" / "1")))))
    page = Page(text)
    assert EVIL in page.text
    assert "alert('" not in text
    scripts = [tag for tag, _ in page.elements if tag == "script"]
    assert scripts == [tag for tag, _ in plain.elements if tag == "script"]


def test_every_check_is_in_the_page_with_its_statement_its_source_and_what_it_found(loss: ReportedRun) -> None:
    sources = {check.check_id: check.source for check in CHECKS}
    assert sources["H2"].startswith("KIP-966")
    assert min(len(source) for source in sources.values()) >= len("KIP-516")
    page = Page(render(loss)).text
    for check in loss.verdict.checks:
        for words in (check.name, check.statement, sources[check.check_id], *check.examples):
            assert words in page
        assert check.not_asked_because is None or check.not_asked_because in page
    assert "acknowledged by broker 0 (ISR 0 1 2)" in page


def test_two_runs_part_at_the_first_decision_that_differs(loss: ReportedRun, survival: ReportedRun) -> None:
    found = compare_decisions(loss, survival)
    assert re.fullmatch(
        r"The two clusters decide alike until [\d.]+ s. Then kafka-3.9 commits ISR 2, and kip-966 ISR 2, ELR 1.",
        found.sentence,
    )
    assert [row.is_first for row in found.rows].count(True) == 1
    assert {"elr", "unclean_detection"} == {name for name, _, _ in found.switches}
    assert compare_decisions(loss, loss).sentence == "The two clusters decide alike to the end."
    page = Page(render(loss, against=found))
    assert found.sentence in page.text
    assert "All 110 records acknowledged with acks=all are still there" in page.text
    ids = list(page.values("id"))
    assert {"p0-figure", "other-figure"} <= set(ids)
    assert len(ids) == len(set(ids))
    untold = msgspec.structs.replace(survival.story, partitions=(), problem="none")
    blank = ReportedRun(directory=survival.directory, verdict=survival.verdict, story=untold, plan=None)
    assert "other-figure" not in render(loss, against=compare_decisions(loss, blank))


def test_a_run_without_a_story_has_a_page_without_a_picture(loss: ReportedRun) -> None:
    untold = ReportedRun(
        directory=loss.directory, verdict=loss.verdict, story=RunStory(problem="KeyError: 7"), plan=None
    )
    page = Page(render(untold))
    assert "There is no picture: KeyError: 7" in page.text
    assert "100 of 110 records" in page.text


def test_a_run_that_proves_nothing_says_why(tmp_path: Path) -> None:
    directory = healthy(tmp_path / "run" / "1").finish()
    (directory / "history.jsonl").unlink()
    found = read_reported_run(judged(directory))
    head = headline(found.verdict, list(found.story.partitions), found.story)
    assert found.verdict.verdict is Verdict.UNKNOWN
    assert (head.figure, head.guarantee) == ("Nothing", "Guarantee unknown.")
    assert "history" in head.cause.lower()
    assert "is proved" in Page(render(found)).text


def test_a_report_is_written_whole_and_a_run_that_was_not_judged_is_refused(tmp_path: Path) -> None:
    directory = left_by(healthy(tmp_path / "run" / "1"))
    write_report(directory, directory / REPORT_FILE)
    assert (directory / REPORT_FILE).read_text().rstrip().endswith("</html>")
    (directory / STORY_FILE).unlink()
    with pytest.raises(ConfigError, match=r"story\.json"):
        write_report(directory, directory / "other.html")
    assert not (directory / "other.html").exists()
    with pytest.raises(ConfigError, match=r"verdict\.json"):
        write_report(tmp_path, tmp_path / "none.html")


def test_the_worst_partitions_are_drawn_and_the_others_in_small(loss: ReportedRun) -> None:
    [partition] = loss.story.partitions
    others = [msgspec.structs.replace(partition, partition=number) for number in range(1, 9)]
    story = msgspec.structs.replace(loss.story, partitions=(*others, partition))
    run = ReportedRun(directory=loss.directory, verdict=loss.verdict, story=story, plan=None)
    page = Page(render(run))
    assert list(page.values("class")).count("figure") == DRAWN_MAX
    assert list(page.values("class")).count("thumb") == 9 - DRAWN_MAX
    assert page.text.index("orders-0 100 of 110 lost") < page.text.index("orders-1 0 of 0 lost")
    assert len(set(page.values("id"))) == len(list(page.values("id")))
