"""A mistyped word is answered with the nearest name, wherever it was typed."""

from pathlib import Path

import pytest

from laststand.cli.main import main

RUN = ("run", "kip-966/last-replica-standing", "--driver", "simulator")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ((*RUN, "--era", "kip966"), "did you mean 'kip-966'?"),
        ((*RUN, "--set", "erl=off"), "did you mean 'elr'?"),
        ((*RUN, "--set", "elr=onn"), "did you mean 'on'?"),
        ((*RUN, "--set", "broker.session.timeout=3"), "did you mean 'broker.session.timeout.ms'?"),
        (("run", "kip-966/last-replica-standig"), "did you mean 'kip-966/last-replica-standing'?"),
        (("run", "x", "--driver", "simulatr"), "Did you mean 'simulator'?"),
        (("simulate", "--profile", "recoverry"), "did you mean 'recovery'?"),
        (("analyze", "elrcost", "x"), "Did you mean 'elr-cost'?"),
        (("chaos", "kil", "1"), "Did you mean 'kill'?"),
        (("rn", "x"), "Did you mean 'run'?"),
        (("run", "nowhere.yaml"), "there is none"),
        (("run", "./nowhere"), "there is none"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
def test_the_nearest_name_is_in_the_message(
    words: tuple[str, ...], meant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["laststand", *words])
    assert main() == 254
    (line,) = capsys.readouterr().err.splitlines()
    assert meant in line


def test_an_unknown_condition_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "name: mine\ncluster: {brokers: 1}\ntopics: [{name: orders, replicas: [[0]]}]\n"
        "workload: {producers: [{acks: all, rate: 10}]}\nsteps: [{until: {akced: 1}}]\n"
    )
    monkeypatch.setattr("sys.argv", ["laststand", "scenarios", "check", str(scenario)])
    assert main() == 254
    assert "unknown key 'akced'" in (said := capsys.readouterr().err)
    assert "did you mean 'acked'?" in said


def test_the_help_of_chaos_has_whole_sentences_below_headings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["laststand", "chaos", "--help"])
    assert main() == 0
    told = capsys.readouterr().out
    assert told.count("...") == 1, "only the usage has dots: [ARGS]..."
    assert [word for word in ("Processes and disks:", "Links:", "Single messages:", "More:") if word not in told] == []
