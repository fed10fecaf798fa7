"""``action.yml``: its shell steps, run as GitHub runs them, with the variables that GitHub documents."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{ ([\w.]+) \}\}")


class Runner:
    """The part of a GitHub runner that a composite action sees."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self.temporary = directory
        self.files = {name: directory / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        self._programs = programs

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Runs a step with inputs, and with the defaults of all others."""
        values = {
            f"inputs.{key}": inputs.get(key, declared.get("default")) for key, declared in ACTION["inputs"].items()
        }
        values["github.action_path"] = str(ROOT)

        def resolve(text: str) -> str:
            while (found := EXPRESSION.search(text)) is not None:
                text = text.replace(found[0], values[found[1]])
            return text

        step = STEPS[name]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")},
            **{key: resolve(value) for key, value in step["env"].items()},
            **{key: str(path) for key, path in self.files.items()},
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTIONS": "true",
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path, Path(sys.executable).parent)


def test_a_suite_that_passes_leaves_summary_and_results(runner: Runner) -> None:
    ended = runner.run(
        "Play", scenarios="kip-497/answer-lost\nkip-841/fenced-follower", eras="kip-966", driver="simulator"
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "| kip-841/fenced-follower |" in runner.files["GITHUB_STEP_SUMMARY"].read_text()
    outputs = dict(line.split("=", 1) for line in runner.files["GITHUB_OUTPUT"].read_text().splitlines())
    assert len(ElementTree.parse(outputs["junit"]).getroot().findall(".//testcase")) == 2
    assert json.loads(Path(outputs["results"]).read_text())
    assert "::error" not in ended.stdout


def test_a_cell_that_does_not_pass_fails_the_step_and_is_annotated(runner: Runner) -> None:
    options = "--set maximal_isr=proposed --seed 7"
    ended = runner.run("Play", scenarios="kip-497/leader-cut-off", eras="kip-966", driver="simulator", options=options)
    assert ended.returncode == 1
    assert "::error file=" in ended.stdout + ended.stderr
    assert list((runner.temporary / "laststand" / "store").rglob("verdict.json"))


@pytest.mark.parametrize(("judge", "extras"), [("here", "faults"), ("spark", "faults,verify")])
def test_the_checkout_is_installed_with_what_the_judge_needs(tmp_path: Path, judge: str, extras: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    # In the place of Python: what makes an environment whose programs say what they were asked.
    (programs / "python3").write_text(
        '#!/bin/sh\nmkdir -p "$3/bin"\nfor name in pip laststand; do\n'
        'printf "#!/bin/sh\\necho $name \\"\\$@\\"\\n" > "$3/bin/$name"; chmod +x "$3/bin/$name"\ndone\n'
    )
    (programs / "python3").chmod(0o755)
    runner = Runner(tmp_path, programs)
    ended = runner.run("Install", judge=judge)
    assert ended.stdout.splitlines() == [f"pip install --quiet {ROOT}[{extras}]", "laststand setup"]
    assert runner.files["GITHUB_PATH"].read_text() == f"{tmp_path}/laststand-venv/bin\n"


def test_what_is_kept_is_what_was_played() -> None:
    kept = STEPS["Keep what did not pass"]
    assert kept["uses"].startswith("actions/upload-artifact@")
    assert kept["with"]["path"] == "${{ runner.temp }}/laststand"
