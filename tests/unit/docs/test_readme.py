"""Documents show what works: scenarios can be read, links lead somewhere, README keeps to one read."""

import re
from pathlib import Path

import pytest

from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.chaos.scenario.step_reader import CONTROL_FLOW, VERBS
from laststand.emulator.core.switches import ERAS
from tests.documented_scenarios import STEP_CATALOGUE, documented_scenarios, documents

_ROOT = Path(__file__).parents[3]
_README = (_ROOT / "README.md").read_text(encoding="utf-8")
_ROOTS = ("", "emulator/", "emulator/**/", "chaos/**/", "tests/**/")
_DOCUMENTS = documents()


def _dead_links(text: str, folder: Path) -> list[str]:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    return [link for link in links if "://" not in link and not (folder / link).exists()]


def test_the_scenarios_that_documents_show_can_be_read() -> None:
    assert {"paused-leader", STEP_CATALOGUE} <= set(documented_scenarios())


def test_the_example_in_the_readme_of_chaos_has_every_step() -> None:
    text = (_ROOT / "chaos/README.md").read_text(encoding="utf-8")
    example, *elsewhere = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    scenario = read_scenario(Path("README.md"), example.replace("end: restore", "".join([*elsewhere, "end: restore"])))
    verbs = {verb for step in scenario.steps for verb in re.findall(r"\w+", step.text)[:1]}
    verbs |= {verb for verb in CONTROL_FLOW if f"- {verb}: " in example}
    assert verbs == set(VERBS)


def test_the_page_of_eras_names_every_era() -> None:
    page = (_ROOT / "docs/eras.md").read_text(encoding="utf-8")
    assert [era for era in ERAS if f"`{era}`" not in page] == []


def test_readme_is_read_in_one_go() -> None:
    assert len(_README.splitlines()) <= 120


def test_the_track_record_has_each_hazard_of_kafka_with_its_command() -> None:
    """S41 loses nothing on the versions that README names."""
    page = (_ROOT / "docs/kafka-hazards.md").read_text(encoding="utf-8")
    lost = dict(
        re.findall(r"^\| \[(S\d+)\]\(#.*\| (\d+ of \d+) \| \d+ of \d+ \| \d+ of \d+ \|$", page, flags=re.MULTILINE)
    )
    rows = re.findall(
        r"^\| \[(S\d+)\]\(docs/kafka-hazards.*\| (.*) \| `(laststand .*)` \|$", _README, flags=re.MULTILINE
    )
    assert {hazard: figure for hazard, figure, _ in rows} == lost
    for hazard, _, command in rows:
        section = page.partition(f"\n## {hazard}: ")[2].partition("\n## ")[0]
        assert f"\n{command}\n" in section


def test_docs_lists_every_page() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (_ROOT / "docs/README.md").read_text(encoding="utf-8"))
    pages = {path.name for path in (_ROOT / "docs").glob("*.md")} - {"README.md"}
    assert set(listed) == pages


@pytest.mark.parametrize("path", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert _dead_links(path.read_text(encoding="utf-8"), path.parent) == []


def test_a_dead_link_is_found() -> None:
    assert _dead_links("[a](README.md) [b](nowhere.md#x) [c](https://kafka.apache.org)", _ROOT) == ["nowhere.md"]


def _missing_files(text: str) -> list[str]:
    """Returns the files that a text names, by path or by name alone, and that are nowhere."""
    named = re.findall(r"`([\w./-]+\.(?:py|md|proto|yaml))`", text)
    return [each for each in named if not any(found for root in _ROOTS for found in _ROOT.glob(f"{root}{each}"))]


def test_every_file_in_the_architecture_exists() -> None:
    assert _missing_files((_ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")) == []


def test_a_missing_file_is_found() -> None:
    assert _missing_files("`core/image.py`, `links.py`, `core/nowhere.py`") == ["core/nowhere.py"]
