"""``report``, ``show``, and the report that ``run`` leaves: what they write, print and refuse."""

import json
from pathlib import Path

import pytest

from laststand.cli.main import cli
from laststand.cli.output.pictures import leave_reports
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.report.page import REPORT_FILE
from laststand.emulator.verification.story.story_file import STORY_FILE
from tests.unit.report.judged_runs import kept, lost


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("store")
    return {"lost": lost(base / "a" / "1").directory, "kept": kept(base / "b" / "1").directory}


def laststand(*words: str | Path) -> None:
    cli.main([str(word) for word in words], standalone_mode=False)


def test_a_report_goes_into_its_run_and_two_are_compared(
    store: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    laststand("report", store["lost"])
    alone = (store["lost"] / REPORT_FILE).read_text()
    laststand("report", store["lost"], store["kept"], "--json")
    compared = [(store[name] / REPORT_FILE).read_text() for name in ("lost", "kept")]
    assert "Where they part" not in alone
    assert all("Where they part" in each for each in compared)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{store['lost'] / REPORT_FILE}\n")
    assert json.loads(printed.partition("\n")[2]) == {
        "reports": [str(store[n] / REPORT_FILE) for n in ("lost", "kept")]
    }


def test_a_report_can_go_elsewhere_and_be_opened(
    store: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    laststand("report", store["lost"], "-o", tmp_path / "page.html", "--open")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert opened == [(tmp_path / "page.html").as_uri()]


def test_more_than_two_runs_have_an_overview(store: dict[str, Path], tmp_path: Path) -> None:
    laststand("report", store["lost"], store["kept"], store["lost"], "-o", tmp_path / "all.html")
    assert "What each protocol would have lost" in (tmp_path / "all.html").read_text()


def test_mistakes_are_named(store: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"verdict\.json"):
        laststand("report", tmp_path)
    with pytest.raises(ConfigError, match=r"verdict\.json"):
        laststand("show", tmp_path)
    with pytest.raises(UserError, match=r"-o .*missing/page\.html: cannot be written"):
        laststand("report", store["lost"], "-o", tmp_path / "missing" / "page.html")
    with pytest.raises(ConfigError, match="expected a directory: there is none"):
        laststand("export", tmp_path / "missing", tmp_path / "out", "--to", "perfetto")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="orders-7: unknown; partitions of this run: orders-0"):
        laststand("show", store["lost"], "--partition", "orders-7")


def test_show_prints_a_picture(store: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    laststand("show", store["lost"])
    text = capsys.readouterr().out
    assert text.startswith("VIOLATION, guarantee broken")
    assert "\norders-0\n" in text
    assert "\nbroker 2  i" in text
    laststand("show", store["lost"], "--json")
    document = json.loads(capsys.readouterr().out)
    picture, _, legend = text.partition("\norders-0\n")[2].partition("\n\n")
    assert document["pictures"]["orders-0"] == picture.splitlines()
    assert "L leads" in legend
    assert max(map(len, legend.splitlines())) <= 80


def test_a_report_that_cannot_be_written_is_a_line_and_no_failure(
    store: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = kept(tmp_path / "c" / "1").directory
    (broken / STORY_FILE).write_text("[]")
    found = leave_reports([store["kept"], broken])
    assert found == (None, None)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        f"the report on {store['kept']}",
        f"the report on {broken}",
    ]
    assert leave_reports([store["kept"]]) == (store["kept"] / REPORT_FILE,)
