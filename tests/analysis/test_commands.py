"""``laststand sql``, ``export`` and ``analyze`` over hand-written runs, in the session of the tests."""

import csv
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from laststand.cli.commands.analyze import SUMMARIES
from laststand.cli.main import cli
from laststand.cli.output.output import Output
from laststand.cli.program.user_error import UserError
from laststand.cli.spark.sql_prompt import ask_queries
from laststand.emulator.analysis import Runs, catalogue
from laststand.emulator.analysis.analyses import ANALYSES
from laststand.emulator.analysis.catalogue import FILLED, TABLE_NAMES, table_columns
from laststand.emulator.analysis.kept_tables import KEPT_FILE
from laststand.emulator.verification.spark import session
from tests.verification.run_builder import healthy

pytestmark = pytest.mark.usefixtures("one_session")


# A query that names no table has all tables opened, which takes seconds.
def run_cli(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments], input=stdin, standalone_mode=False)


def complaint(*arguments: str | Path) -> str:
    """Returns the one line of a user error, which ``main`` prints before it exits with 254."""
    result = run_cli(*arguments)
    assert isinstance(result.exception, UserError | click.ClickException), result
    assert result.stdout == ""
    text = str(result.exception)
    assert "\n" not in text
    return text


def test_sql_prints_a_table(failover_run: Path) -> None:
    result = run_cli("sql", failover_run, "SELECT fault, targets, duration_s, had_effect FROM faults ORDER BY time_s;")
    assert result.exception is None
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "fault       targets  duration_s  had_effect",
        "isolate     [0]          11.000  true",
        "isolate     [1]           7.000  true",
        "power_loss  [2]           2.000  true",
    ]


def test_sql_prints_json_and_csv(failover_run: Path) -> None:
    query = "SELECT time_s, leader, isr, leader is null AS leaderless FROM partition_changes WHERE election = 'elr'"
    assert json.loads(run_cli("sql", "--json", failover_run, query).stdout) == [
        {"time_s": 15.0, "leader": 1, "isr": [1], "leaderless": False}
    ]
    rows = list(csv.reader(io.StringIO(run_cli("sql", "--csv", failover_run, query).stdout)))
    assert rows == [["time_s", "leader", "isr", "leaderless"], ["15.0", "1", "[1]", "false"]]


def test_a_directory_stands_for_the_runs_in_it(failover_run: Path, tmp_path: Path) -> None:
    for name in ("1", "2"):
        shutil.copytree(failover_run, tmp_path / "store" / name)
    (tmp_path / "store/latest").symlink_to("2")
    assert json.loads(run_cli("sql", "--json", tmp_path / "store", "SELECT count(*) AS n FROM runs").stdout) == [
        {"n": 2}
    ]


def test_sql_reads_the_query_from_a_file(failover_run: Path, tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT count(*) AS n FROM power_lost\n")
    result = run_cli("sql", "--json", failover_run, failover_run, "--file", tmp_path / "query.sql")
    assert json.loads(result.stdout) == [{"n": 1}]
    assert json.loads(
        run_cli("sql", "--json", failover_run, "--file", "-", stdin="SELECT 1 AS n FROM runs").stdout
    ) == [{"n": 1}]


def test_sql_lists_the_tables(failover_run: Path) -> None:
    tables = run_cli("sql", failover_run, "SHOW TABLES").stdout
    assert {"runs", "faults", "log_truncated"} <= set(tables.split())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT nothing FROM faults", "[UNRESOLVED_COLUMN"),
        ("SELECT * FROM faults, nowhere", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("SELEC fault FROM faults", "[PARSE_SYNTAX_ERROR]"),
        ("SELECT 1 / (count(*) - 3) FROM faults", "[DIVIDE_BY_ZERO]"),
        (" ", "the query is empty"),
    ],
)
def test_a_query_that_spark_refuses_is_one_line(failover_run: Path, query: str, reason: str) -> None:
    assert complaint("sql", failover_run, query).startswith(reason)


def test_nobody_waits_for_spark_to_learn_of_a_misspelled_name(
    failover_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.SparkSessionStarter, "at_work", lambda _: pytest.fail("Spark is waited for"))
    told = "no column 'fautl'; did you mean 'fault'?"
    assert complaint("sql", failover_run, "SELECT fautl FROM faults") == told
    assert complaint("sql", failover_run, "SELECT 1 FROM fautls") == "no table 'fautls'; did you mean 'faults'?"


def test_queries_come_one_after_another_without_one_on_the_command_line(failover_run: Path) -> None:
    typed = "SELECT count(*) AS n\n  FROM faults; SELECT ';' AS x FROM runs;\n\n\\d faults\nSELECT 2 AS y FROM runs\n"
    lines = [line.split() for line in run_cli("sql", failover_run, stdin=typed).stdout.splitlines()]
    assert lines[:5] == [["n"], ["3"], ["x"], [";"], ["column", "type", "unit", "meaning"]]
    assert lines[-2:] == [["y"], ["2"]]
    listed = run_cli("sql", failover_run, stdin="\\d\n\\q\nSELEC 1 FROM runs;\n").stdout
    assert set(TABLE_NAMES) <= set(listed.split())


def test_a_mistake_in_a_pipe_ends_it(failover_run: Path) -> None:
    result = run_cli("sql", failover_run, stdin="SELECT 1 AS n FROM runs; SELECT fautl FROM faults; SELECT 2 AS m;")
    assert str(result.exception) == "no column 'fautl'; did you mean 'fault'?"
    assert result.stdout.split() == ["n", "1"]
    assert (
        str(run_cli("sql", failover_run, stdin=r"\d fautls").exception) == "no table 'fautls'; did you mean 'faults'?"
    )


def test_at_a_terminal_a_mistake_is_reported_and_the_next_query_is_answered(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: Iterator[str | type[BaseException]] = iter(
        [
            *(r"\dd", "SELEC 1 FROM runs;", "SELECT 1", KeyboardInterrupt),
            *("SELECT fautl FROM faults;", "SELECT 7", "AS n FROM runs;", EOFError),
        ]
    )

    def typed(_: str) -> str:
        line = next(lines)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    ask_queries(runs, output=Output.TEXT)
    told = capsys.readouterr()
    assert told.out.split() == ["n", "7"]
    assert "no column 'fautl'; did you mean 'fault'?" in told.err
    assert "[PARSE_SYNTAX_ERROR]" in told.err
    assert "no command '\\\\dd'" in told.err


@pytest.mark.parametrize("arguments", [("sql", "SELECT fault FROM faults"), ("analyze", "elections")])
def test_what_is_kept_gives_the_same_answer_to_the_byte(
    failover_run: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for number in range(3):
        shutil.copytree(failover_run, tmp_path / str(number), ignore=shutil.ignore_patterns(KEPT_FILE))
    verb, word = arguments
    words: list[str | Path] = [verb, tmp_path, word] if verb == "sql" else [verb, word, tmp_path]
    decoded = run_cli(*words, "--no-cache", "--csv").stdout_bytes
    assert not list(tmp_path.rglob(KEPT_FILE))
    assert [run_cli(*words, "--csv").stdout_bytes for _ in range(2)] == [decoded, decoded]
    assert len(list(tmp_path.rglob(KEPT_FILE))) == 3
    assert decoded.count(b"\n") > 3


def test_nothing_is_left_in_the_directory_for_temporary_files(
    failover_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    complaint("sql", failover_run, "SELEC 1 FROM runs")
    assert run_cli("sql", failover_run, "SELECT 1 FROM runs").exception is None
    assert list(tmp_path.iterdir()) == []


def test_runs_that_cannot_be_read_are_one_line(failover_run: Path, tmp_path: Path) -> None:
    assert complaint("sql", tmp_path / "nowhere", "SELECT 1").endswith("nowhere: no such directory")
    assert "it is no run directory" in complaint("sql", tmp_path, "SELECT 1")
    assert complaint("sql", failover_run).startswith("the runs or the query are missing")
    assert complaint("sql", "--skip-broken", tmp_path, "SELECT 1") == "no run is left"
    result = run_cli("sql", "--json", "--skip-broken", tmp_path, failover_run, "SELECT count(*) AS n FROM runs")
    assert json.loads(result.stdout) == [{"n": 1}]
    assert result.stderr.startswith(f"left out: {tmp_path}: it is no run directory")


def test_analyze_names_the_run_once_above_its_table(failover_run: Path) -> None:
    result = run_cli("analyze", "elections", failover_run)
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        f"run {failover_run}, scenario failover, era kip-966, seed None",
        "reason           election      elections  partitions  first_s  last_s",
        "broker_fenced    isr                   2           1    5.000   9.000",
        "broker_fenced    no_candidate          1           1   12.000  12.000",
        "broker_unfenced  elr                   1           1   15.000  15.000",
    ]


def test_analyze_prints_rows_of_several_runs_with_their_names(failover_run: Path, tmp_path: Path) -> None:
    other = healthy(tmp_path / "healthy" / "1").finish()
    rows = list(csv.DictReader(io.StringIO(run_cli("analyze", "--csv", "acks-outcomes", failover_run, other).stdout)))
    assert sorted((row["scenario"], row["acks"], row["sent"]) for row in rows) == [
        ("failover", "-1", "40"),
        ("failover", "1", "10"),
        ("healthy", "-1", "30"),
    ]
    table = run_cli("analyze", "acks-outcomes", failover_run, other).stdout
    assert table.split()[:4] == ["run", "scenario", "era", "seed"]


def test_every_analysis_is_a_command(failover_run: Path) -> None:
    assert tuple(SUMMARIES) == tuple(ANALYSES)
    help_text = run_cli("analyze", "--help").stdout
    assert all(f"{name:<16} {summary}" in help_text for name, summary in SUMMARIES.items())
    assert "'nothing' is not one of" in complaint("analyze", "nothing", failover_run)


SOME_TABLES = ("faults", "history", "batch_appended")


def one_table_for_each_type() -> tuple[str, ...]:
    """Returns the tables that are no events, and those of events that have a type of column that none before has."""
    chosen: list[str] = []
    types: set[str] = set()
    for name in TABLE_NAMES:
        new = {column.spark_type for column in table_columns(name)} - types
        if name in FILLED or new:
            chosen.append(name)
            types |= new
    return tuple(chosen)


@pytest.fixture
def some_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets an export have a few tables: each costs Spark a query."""
    monkeypatch.setattr(catalogue, "TABLE_NAMES", SOME_TABLES)


@pytest.mark.usefixtures("some_tables")
@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_export_writes_each_table(
    spark: SparkSession, runs: Runs, failover_run: Path, tmp_path: Path, file_format: str
) -> None:
    directory = tmp_path / "tables"
    result = run_cli("export", failover_run, directory, "--to", file_format, "--json")
    assert json.loads(result.stdout)["directory"] == str(directory)
    assert sorted(path.name for path in directory.iterdir()) == sorted(SOME_TABLES)
    for name in SOME_TABLES:
        read = spark.read.schema(runs.table(name).schema).format(file_format).load(str(directory / name))
        assert sorted(map(str, read.collect())) == sorted(map(str, runs.table(name).collect()))


def test_csv_can_be_read_by_any_program(
    runs: Runs, failover_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, names = tmp_path / "tables", one_table_for_each_type()
    monkeypatch.setattr(catalogue, "TABLE_NAMES", names)
    run_cli("export", failover_run, directory, "--to", "csv")
    assert sorted(path.name for path in directory.iterdir()) == sorted(names)
    for name in names:
        (path,) = (directory / name).glob("*.csv")
        with path.open(newline="", encoding="utf-8") as file:
            read = list(csv.DictReader(file))
        table = runs.table(name)
        with path.open(newline="", encoding="utf-8") as file:
            assert next(csv.reader(file)) == table.columns, name
        rows = [row.asDict(recursive=True) for row in table.collect()]
        assert sorted(_csv_texts(row) for row in rows) == sorted(_csv_read(row, rows[0]) for row in read), name


def _csv_texts(row: dict[str, Any]) -> list[str]:
    return [_csv_text(value) for value in row.values()]


def _csv_text(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, sort_keys=True, default=str)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _csv_read(row: dict[str, str], like: dict[str, Any]) -> list[str]:
    return [
        json.dumps(json.loads(text), sort_keys=True) if text and isinstance(like[name], list | dict) else text
        for name, text in row.items()
    ]


@pytest.mark.usefixtures("some_tables")
def test_export_divides_tables_by_run(spark: SparkSession, runs: Runs, failover_run: Path, tmp_path: Path) -> None:
    directory, other = tmp_path / "tables", healthy(tmp_path / "healthy" / "1").finish()
    run_cli("export", failover_run, other, directory, "--by-run")
    folders = [path.name for path in (directory / "history").iterdir() if path.is_dir()]
    assert len(folders) == 2
    assert all(name.startswith("run=") for name in folders)
    whole = runs.table("history")
    read = spark.read.schema(whole.schema).parquet(str(directory / "history"))
    assert {row.run for row in read.select("run").distinct().collect()} == {str(failover_run), str(other)}
    own = read.filter(read.run == str(failover_run)).select(*whole.columns)
    assert sorted(map(str, own.collect())) == sorted(map(str, whole.collect()))


def test_traces_are_a_file_for_each_run_anyway(failover_run: Path, tmp_path: Path) -> None:
    told = complaint("export", failover_run, tmp_path / "traces", "--to", "jepsen", "--by-run")
    assert told == "--by-run divides tables; --to jepsen writes a file for each run"
    assert not (tmp_path / "traces").exists()


def test_export_overwrites_nothing(failover_run: Path, tmp_path: Path) -> None:
    assert complaint("export", failover_run, tmp_path) == f"{tmp_path}: exists; expected a new directory"
    assert complaint("export", failover_run).startswith("the runs or the directory are missing")
