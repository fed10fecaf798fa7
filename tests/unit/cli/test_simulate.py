"""``simulate`` and ``replay`` as a user meets them: what they print, what they refuse, and the code they end with."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from laststand.cli.main import cli
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.cli.runs.plan_file import read_plan
from laststand.emulator.plan.plan_yaml import read_plan_yaml
from laststand.emulator.simulator.search import explorer
from laststand.emulator.simulator.search.explorer import Schedule, SweepOptions

ROOT = Path(__file__).parents[3]
REGRESSIONS = sorted((ROOT / "tests/simulation/regressions").glob("*.txt"))

LEFT = {"events", "history.jsonl", "plan.yaml", "verdict.json", "story.json", "report.html"}
"""In the directory of a simulated run."""

PLAN = """\
# a loss
cluster brokers=3 era=kip-966 elr=off
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=1
cut 1->100
expire 2
power-loss 0 keep=none kept=0 truncation=kept
"""


def laststand(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def check_refused(result: Result, complaint: str) -> None:
    assert isinstance(result.exception, UserError), result.output
    assert complaint in str(result.exception)
    assert result.stdout == ""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("seeds", ["", "5..1", "abc", "1..", "..5", "1..2..3", "-1..3", "1-3", "²..5"])
def test_bad_seeds_are_refused(seeds: str) -> None:
    check_refused(laststand("simulate", f"--seeds={seeds}"), "expected A..B with A not above B, or one seed")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--set=log.flush.interval.ms=5", "the simulated disk has no timed flush"),
        ("--limit=nan", "a number of seconds"),
    ],
)
def test_what_means_nothing_here_is_refused(option: str, complaint: str) -> None:
    check_refused(laststand("simulate", option), complaint)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--jobs=2", "--master=local[2]"], "--jobs and --master exclude each other"),
        (["--conf=spark.executor.memory=1g"], "need --master"),
        (["--driver-address=localhost"], "need --master"),
        (["--conf=memory=1g"], "expected spark.KEY=VALUE"),
    ],
)
def test_options_of_spark_go_with_a_master(options: list[str], complaint: str) -> None:
    check_refused(laststand("simulate", "--seeds=1..2", *options), complaint)


@pytest.mark.parametrize("options", [["--jobs=2"], ["--keep-going"], ["--limit=1"], ["--master=local[2]"]])
def test_one_schedule_takes_no_options_of_a_sweep(options: list[str]) -> None:
    check_refused(laststand("simulate", "--seed=1", *options), "need --seeds")


def test_one_seed_is_a_sweep_too() -> None:
    result = laststand("simulate", "--seeds=3", "--profile=steady")
    assert result.return_value == ExitCode.VALID
    assert result.stdout.startswith("1 schedules")


def test_a_finding_is_printed_as_a_plan_that_replays_and_the_command_that_plays_it_whole(tmp_path: Path) -> None:
    options = ["--era=kafka-0.10", "--profile=elections", "--set=min.insync.replicas=1"]
    found = laststand("simulate", "--seeds=3..40", *options)
    assert found.return_value == ExitCode.VIOLATION
    plan = found.stdout[found.stdout.index("# seed") :]
    assert laststand("replay", str(written(tmp_path / "plan.txt", plan))).return_value == ExitCode.VIOLATION
    words = next(line for line in plan.splitlines() if line.startswith("# whole: ")).split()[3:]
    again = laststand(*words)
    assert again.return_value == ExitCode.VIOLATION
    assert "FOUND" in again.stdout


def test_a_sweep_with_a_finding_leaves_its_shrunk_run_with_verdict_story_and_report(tmp_path: Path) -> None:
    result = laststand("simulate", "--seeds=1..40", "--era=kafka-0.10", f"--out={tmp_path / 'found'}")
    run = left_run(tmp_path / "found")
    assert f"# run directory: {run}\n" in result.stdout


def test_a_sweep_keeps_every_run_on_request_and_says_so(tmp_path: Path) -> None:
    sweep = ("simulate", "--seeds=1..2", "--profile=steady", "--no-report")
    result = laststand(*sweep, "--keep=all", "--coverage", f"--out={tmp_path / 'all'}")
    assert sorted(run.name for run in (tmp_path / "all").iterdir()) == ["seed-1", "seed-2"]
    assert all((run / "verdict.json").is_file() for run in (tmp_path / "all").iterdir())
    assert "0 findings, 2 other runs" in result.stderr
    assert "coverage: " in result.stdout
    assert "coverage: " not in laststand(*sweep).stdout
    check_refused(laststand(*sweep, "--keep=all"), "--keep all needs --out")


def test_a_sweep_draws_each_schedule_once_and_leaves_the_plan_that_it_drew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    explore = explorer.explore

    def count(seed: int, options: SweepOptions) -> Schedule:
        drawn.append(seed)
        return explore(seed, options)

    monkeypatch.setattr("laststand.emulator.simulator.search.sweep.explore", count)
    monkeypatch.setattr("laststand.emulator.simulator.search.explorer.explore", count)
    sweep = ("simulate", "--seeds=1..2", "--profile=steady", "--no-report", "--keep=all")
    assert "2 other runs" in laststand(*sweep, f"--out={tmp_path / 'all'}").stderr
    assert drawn == [1, 2]
    plan = explore(2, SweepOptions(profiles=("steady",))).plan
    assert read_plan_yaml(tmp_path, (tmp_path / "all/seed-2/plan.yaml").read_text()) == plan


def test_a_sweep_with_a_finding_is_one_document_with_plans_as_text(tmp_path: Path) -> None:
    result = laststand("simulate", "--seeds=1..40", "--era=kafka-0.10", "--json", f"--out={tmp_path / 'found'}")
    assert result.return_value == ExitCode.VIOLATION
    (finding,) = json.loads(result.stdout)["findings"]
    for name, text in {"whole": finding["plan"], "shrunk": finding["shrunk"]["plan"]}.items():
        assert laststand("replay", str(written(tmp_path / name, text))).return_value == ExitCode.VIOLATION
    assert "shrinking the plan" in result.stderr
    assert finding["run"] == str(left_run(tmp_path / "found"))


def left_run(out: Path) -> Path:
    """Returns the one run that a sweep left, which is whole."""
    [run] = out.iterdir()
    assert {path.name for path in run.iterdir()} >= LEFT
    verdict = json.loads((run / "verdict.json").read_text())["verdict"]
    assert f"verdict: {verdict}" in laststand("replay", str(run)).stdout
    return run


def test_a_sweep_that_finds_nothing_leaves_nothing(tmp_path: Path) -> None:
    assert laststand("simulate", "--seeds=3", "--profile=steady", f"--out={tmp_path / 'found'}").return_value == 0
    assert list(tmp_path.iterdir()) == []


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["exploring", "shrinking"])
def test_an_interrupted_sweep_prints_what_it_has(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--seeds=3..40", "--era=kafka-0.10", "--profile=elections", "--set=min.insync.replicas=1"]
    if moment == "exploring":
        monkeypatch.setattr("laststand.cli.commands.simulate._progress", lambda: interrupt)
    else:
        monkeypatch.setattr("laststand.emulator.simulator.search.shrink.shrink", interrupt)
    result = laststand("simulate", *options)
    assert result.return_value == ExitCode.INTERRUPTED
    assert result.stderr.endswith("interrupted\n")
    assert " with findings\nmedians per schedule: acks " in result.stdout
    plan = result.stdout[result.stdout.index("# seed") :]
    assert ", not shrunk\n" in plan
    assert laststand("replay", str(written(tmp_path / "plan.txt", plan))).return_value == ExitCode.VIOLATION
    as_json = laststand("simulate", *options, "--json")
    assert as_json.return_value == ExitCode.INTERRUPTED
    document = json.loads(as_json.stdout)
    assert document["is_interrupted"] is True
    assert [(each["plan"] in result.stdout, each["shrunk"]) for each in document["findings"]] == [(True, None)]


def test_a_directory_that_exists_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    plan = written(tmp_path / "plan.txt", PLAN)
    for verb in (["simulate", "--seed=1"], ["replay", str(plan)]):
        check_refused(laststand(*verb, f"--out={tmp_path}"), "exists; expected a new directory")


def test_the_run_directory_is_named(tmp_path: Path) -> None:
    out = tmp_path / "run"
    told = laststand("simulate", "--seed=1", f"--out={out}").stdout
    assert told.endswith(f"run directory: {out}\nreport: {out / 'report.html'}\n")
    assert {path.name for path in out.iterdir()} >= LEFT
    assert f"run directory: {tmp_path / 'again'}" in laststand("replay", str(out), f"--out={tmp_path / 'again'}").stdout


def test_a_run_is_described_with_the_same_words_whether_it_is_written_or_not(tmp_path: Path) -> None:
    plan = str(written(tmp_path / "plan.txt", LATE))
    played, kept = laststand("replay", plan), laststand("replay", plan, f"--out={tmp_path / 'run'}", "--no-report")
    again = laststand("replay", str(tmp_path / "run"))
    by_name = laststand("replay", str(tmp_path / "run/plan.yaml"))
    assert kept.stdout == f"{played.stdout}run directory: {tmp_path / 'run'}\n"
    assert again.stdout == by_name.stdout == played.stdout
    assert "  line 8, action 2: kill 2" in again.stderr


def test_a_mistake_in_a_document_is_reported_with_its_line(tmp_path: Path) -> None:
    laststand("replay", str(written(tmp_path / "plan.txt", LATE)), f"--out={tmp_path / 'run'}")
    path = tmp_path / "run/plan.yaml"
    written(path, path.read_text().replace("kill: {node: 2}", "kill: {node: 7}", 1))
    check_refused(laststand("replay", str(tmp_path / "run")), f"{path}:7: node: no node 7")
    check_refused(laststand("replay", str(written(path, "steps: ["))), f"{path}:1: no YAML")


def test_a_directory_without_a_plan_is_no_run(tmp_path: Path) -> None:
    check_refused(laststand("replay", str(tmp_path)), "not a run directory")


def test_a_plan_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert read_plan(written(tmp_path / "plan.txt", "\ufeff" + PLAN)).plan.brokers == 3


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_plans_that_are_kept_have_no_mistakes(path: Path) -> None:
    read_plan(path)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("expire 2", "explode 2", "line 6: "),
        ("keep=none", "keep=some", "line 7: "),
        ("brokers=3", "brokers=0", "line 2: brokers=0 is not allowed; expected 1 to 100"),
        ("brokers=3", "brokers=3 brokers=4", "line 2: brokers=4 is not allowed; expected one value, and 3 is it"),
        ("(0,1,2)", "(0,1,7)", "line 3: replicas=(0,1,7) is not allowed; expected different brokers 0 to 2"),
        ("(0,1,2)", "(0,1,1)", "expected different brokers 0 to 2"),
        ("min.insync.replicas=2", "min.insync.replica=2", "min.insync.replica"),
        ("min.insync.replicas=2", "min.insync.replicas=x", "expected an integer from 1 on"),
        (
            "produce orders-0",
            "produce orders-7",
            "line 4: 'produce orders-7 acks=all records=1': no such partition; there are orders-0",
        ),
        ("records=1", "records=-3", "expected records from 1 on"),
        ("cut 1->100", "wait -5", "'wait -5': expected a time from 0 on"),
        ("cut 1->100", "cut 5->100", "'cut 5->100': no node 5; there are brokers 0 to 2 and the controller 100"),
        ("cut 1->100", "hold 7->100 Fetch request", "no node 7"),
        (
            "cut 1->100",
            "hold 1->100 Fetsh request",
            "line 5: 'hold 1->100 Fetsh request': no such kind of message; there",
        ),
        ("cut 1->100", "min-isr refunds value=1", "no such topic; there are orders"),
        ("cut 1->100", "reassign orders-0 replicas=0,1,3", "no broker 3"),
        ("expire 2", "expire 9", "'expire 9': no broker 9; there are brokers 0 to 2"),
        ("expire 2", "expire 100", "'expire 100': no broker 100; there are brokers 0 to 2"),
        ("expire 2", "kill 1000", "'kill 1000': no node 1000; there are brokers 0 to 2 and the controller 100"),
        ("acks=all records=1", "acks=0 records=1", "expected acks all or 1"),
        ("cut 1->100", "cut 1->1", "'cut 1->1': a link from 1 to itself does not exist"),
        ("cut 1->100", "cut 1->1000", "nothing dials the client"),
        ("cut 1->100", "slow 1->100 ms=-5", "expected ms from 0 on"),
        ("cut 1->100", "clock 1 rate=0", "expected rate from 1 on"),
        ("cut 1->100", "draw -1", "expected a number from 0 on"),
        (
            "cut 1->100",
            "min-isr orders value=0",
            "min.insync.replicas: '0' is not allowed, allowed: an integer from 1 on",
        ),
        ("cut 1->100", "release 1->100 Fetch request count=0", "expected count from 1 on"),
        ("cut 1->100", "reassign orders-0 replicas=0,0,1", "expected different brokers"),
        ("brokers=3", "brokers=3 log.flush.interval.ms=5", "line 2: log.flush.interval.ms=5 is not allowed"),
        ("min.insync.replicas=2", "flush.ms=5", "line 3: flush.ms=5 is not allowed; expected it not at all: the simul"),
        ("brokers=3", "brokers=3 metadata.version=banana", "banana"),
        ("(0,1,2)", "(0,1,2);(1,2)", "topic=orders is not allowed; expected what Kafka takes: INVALID_REPLICA_ASSIGN"),
        ("cut 1->100", "crash-within 100 after-effects=1", "no broker 100; there are brokers 0 to 2"),
        ("cut 1->100", "crash-within 1 after-effects=-1", "expected after-effects from 0 on"),
        ("kept=0", "kept=-1", "expected kept from 0 on"),
        ("cut 1->100", "elr-feature level=2", "expected a level from 0 to 1"),
        ("topic orders", "topic", "line 3: topic=replicas=(0,1,2) is not allowed; expected a name first"),
        (
            "produce",
            "topic orders replicas=(0)\nproduce",
            "line 4: topic=orders is not allowed; expected one such line",
        ),
    ],
)
def test_a_mistake_in_a_plan_is_reported(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    path = written(tmp_path / "plan.txt", PLAN.replace(old, new))
    refused = laststand("replay", str(path))
    check_refused(refused, complaint)
    assert str(path) in str(refused.exception)


LATE = """\
# two actions come too late
cluster brokers=3
topic orders replicas=(0,1,2) min.insync.replicas=2

kill 2
kill 2
produce orders-0 acks=all records=1
wait 500
mend 0->1
"""


def test_actions_that_were_skipped_are_reported_with_their_lines(tmp_path: Path) -> None:
    plan = str(written(tmp_path / "plan.txt", LATE))
    result = laststand("replay", plan)
    assert result.return_value == ExitCode.VALID
    assert result.stderr.splitlines() == [
        "skipped, because impossible at the time: 2 of 5 actions",
        "  line 6, action 2: kill 2",
        "  line 9, action 5: mend 0->1",
    ]
    document = json.loads(laststand("replay", plan, "--json").stdout)
    assert document["skipped"] == [
        {"position": 2, "line": 6, "action": "kill 2"},
        {"position": 5, "line": 9, "action": "mend 0->1"},
    ]
    assert document["unknown"] is None


def test_of_many_skipped_actions_the_first_few_are_reported(tmp_path: Path) -> None:
    result = laststand("replay", str(written(tmp_path / "plan.txt", LATE + 7 * "mend 0->1\n")))
    assert len(result.stderr.splitlines()) == 7
    assert result.stderr.endswith("  and 4 more\n")


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ("", "the plan has no actions"),
        ("mend 0->1\nheal\n", "every action was skipped"),
        ("recreate orders\n", "nothing was acknowledged"),
    ],
)
def test_a_replay_that_proves_nothing_says_so(tmp_path: Path, actions: str, why: str) -> None:
    plan = str(written(tmp_path / "plan.txt", LATE[: LATE.index("kill")] + actions))
    result = laststand("replay", plan)
    assert result.return_value == ExitCode.UNKNOWN
    assert result.stderr.splitlines()[-1].startswith(f"unknown: {why}")
    as_json = laststand("replay", plan, "--json")
    assert as_json.return_value == ExitCode.UNKNOWN
    assert json.loads(as_json.stdout)["unknown"].startswith(why)


def test_a_schedule_has_only_actions_that_were_enabled() -> None:
    result = laststand("simulate", "--seed=2", "--json")
    assert result.return_value == ExitCode.VALID
    document = json.loads(result.stdout)
    assert (document["skipped"], document["unknown"]) == ([], None)


def test_what_is_no_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xa1\xff")
    check_refused(laststand("replay", str(tmp_path / "binary")), "not a text file")
    check_refused(laststand("replay", str(tmp_path / "nowhere")), "cannot be read (No such file or directory)")


def test_what_is_not_expressible_is_a_document_too(tmp_path: Path) -> None:
    plan = str(written(tmp_path / "plan.txt", PLAN.replace("expire 2", "draw 2")))
    result = laststand("replay", plan, "--driver=process", "--json")
    assert isinstance(result.exception, UserError)
    assert [each["what"] for each in json.loads(result.stdout)["not_expressible"]]
    assert "not expressible: " in laststand("replay", plan, "--driver=process").stdout
    assert "not expressible: " in laststand("replay", plan, "--driver=process", "--own-waits").stdout


def test_own_waits_are_for_processes(tmp_path: Path) -> None:
    plan = str(written(tmp_path / "plan.txt", PLAN))
    check_refused(laststand("replay", plan, "--own-waits"), "--own-waits is for plans of the simulator")


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("era: kip-967\nswitches: {}\n", "era=kip-967 is not allowed"),
        ("era: kip-966\nswitches: {elr: perhaps}\n", "elr=perhaps is not allowed"),
        ("era: kip-966\nswitches: {}\nproperties: [1]\n", "'list' object has no attribute 'items'"),
        ("era: kip-966\nswitches: [elr]\n", "'list' object has no attribute 'items'"),
        ("era: kip-966\nswitches: {elr: on\nseed: [\n", "expected a run's (line 3 is no YAML: "),
        ("era: kip-966\nswitches: {}\nproperties: {log.segment.byte: 5}\n", "log.segment.byte"),
    ],
)
def test_rules_beside_a_recorded_plan_are_checked(tmp_path: Path, rules: str, complaint: str) -> None:
    story = ROOT / "chaos/scenarios/kip-497/leader-cut-off.yaml"
    written(tmp_path / "plan.yaml", story.read_text())
    cluster_file = written(tmp_path / "cluster.yaml", rules)
    check_refused(laststand("replay", str(tmp_path), f"--out={tmp_path / 'run'}"), f"{cluster_file}: ")
    check_refused(laststand("replay", str(tmp_path), f"--out={tmp_path / 'run'}"), complaint)
    assert not (tmp_path / "run").exists()
