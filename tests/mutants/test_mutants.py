"""The command on a package of two functions: one that tests pin down, and one that they let slip."""

import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from tests.mutants.survivors import Change, ExplanationError, read_explained

ROOT = Path(__file__).parents[2]
CONFIGURATION = """
[tool.mutmut]
source_paths = ["gates"]
also_copy = []
pytest_add_cli_args_test_selection = ["tests"]
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
pythonpath = ["."]
"""
GATES = """
def is_open(size: int, required: int) -> bool:
    return size >= required


def is_shut(size: int, required: int) -> bool:
    return size < required
"""
TESTS = """
from gates.gate import is_open, is_shut


def test_the_gate_is_open_from_the_required_size_on() -> None:
    assert [is_open(size, 2) for size in (1, 2, 3)] == [False, True, True]


def test_the_gate_is_shut_below() -> None:
    assert is_shut(1, 2)
"""
SURVIVOR = Change(
    file="gates/gate.py",
    function="is_shut",
    removed=("return size < required",),
    added=("return size <= required",),
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": CONFIGURATION,
        "gates/__init__.py": "",
        "gates/gate.py": GATES,
        "tests/test_gate.py": TESTS,
        "tests/mutants/explained.txt": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def try_mutants(project: Path, *arguments: str) -> tuple[int, str]:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.mutants.__main__ import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def test_a_survivor_is_reported_until_it_is_explained_or_killed(project: Path) -> None:
    exit_code, output = try_mutants(project)
    assert exit_code == 1, output
    assert SURVIVOR.describe() in output
    assert "is_open" not in output.partition("mutations/second")[2]
    assert "1 different survivors: 0 explained, 1 not" in output

    (project / "tests/mutants/explained.txt").write_text(f"# Nobody asks at the limit.\n{SURVIVOR.describe()}\n")
    assert try_mutants(project, "--report")[0] == 0

    (project / "tests/test_gate.py").write_text(TESTS + "    assert not is_shut(2, 2)\n")
    exit_code, output = try_mutants(project)
    assert exit_code == 0, output
    assert "0 different survivors" in output


def test_only_files_that_differ_from_a_commit_are_tried(project: Path) -> None:
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "gates"]):
        subprocess.run([*git, *command], cwd=project, check=True)
    assert try_mutants(project, "--since", "HEAD") == (0, "mutants: of the files that are mutated, none is meant\n")
    assert try_mutants(project, "--since", "missing") == (254, "mutants: git knows no commit missing here\n")


def test_files_are_tried_until_they_were_judged_as_they_are(project: Path) -> None:
    nothing = "mutants: of the files that are mutated, none is meant\n"
    gate = project / "gates/gate.py"
    (project / "tests/test_gate.py").write_text(TESTS + "    assert not is_shut(2, 2)\n")
    assert try_mutants(project, "--unjudged", "gates/gate.py")[0] == 0
    assert try_mutants(project, "--unjudged", "gates/gate.py") == (0, nothing)
    gate.write_text(f"{GATES}\n\ndef is_wide(size: int) -> bool:\n    return size > 7\n")
    exit_code, output = try_mutants(project, "--unjudged", "gates/gate.py")
    assert exit_code == 1
    assert "mutants: gates/gate.py is not judged as it is" in output
    assert try_mutants(project, "--unjudged", "gates/gate.py")[0] == 1, "what survived is tried again"
    gate.write_text(GATES)
    assert try_mutants(project, "--unjudged", "gates/gate.py") == (0, nothing)


def test_small_files_come_first_where_the_lines_are_few(tmp_path: Path) -> None:
    from tests.mutants.__main__ import within  # mutmut takes a third of a second to import, in each worker

    large, small, middle = (tmp_path / name for name in ("large", "small", "middle"))
    for path, lines in ((large, 9), (small, 2), (middle, 3)):
        path.write_text("line\n" * lines)
    assert within([large, small, middle], 5) == ([small, middle], [large])
    assert within([large], 5) == ([large], [])


def test_the_list_of_what_was_judged_has_files_that_are_mutated() -> None:
    lines = (ROOT / "tests/mutants/judged.txt").read_text().splitlines()
    mutated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    assert lines
    assert {line.split("  ")[1] for line in lines} <= set(mutated)


def test_a_reason_holds_up_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "explained.txt"
    other = Change(file="gates/gate.py", function="Gate.is_shut", removed=("a",), added=())
    path.write_text(f"# One\n# reason.\n{SURVIVOR.describe()}\n\n{other.describe()}\n\n# Another.\na.py b\n+ c\n")
    reasons = read_explained(path).reasons
    assert reasons[SURVIVOR] == reasons[other] == "One reason."
    assert reasons[Change(file="a.py", function="b", removed=(), added=("c",))] == "Another."


def test_a_pattern_explains_what_changes_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "explained.txt"
    path.write_text("# What an error says.\n~ message=.*\\)\n~ why=.*\n")
    explained = read_explained(path)
    refuse = Change(file="a.py", function="b", removed=('f(c, message="no")',), added=("f(c, )",))
    assert not explained.explain(refuse)
    assert explained.explain(msgspec.structs.replace(refuse, added=('f(c, message="XXnoXX")',)))
    assert not explained.explain(msgspec.structs.replace(refuse, added=('f(d, message="no")',)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SURVIVOR.describe(), "1: no reason is given"),
        ("~ message=", "1: no reason is given"),
        ("# Reason.\n~ (", "2: no pattern: missing"),
        (f"# Reason.\n{SURVIVOR.describe()}\n\n{SURVIVOR.describe()}", "6: explained before"),
        ("# Reason.\ngates/gate.py is_shut", "2: not a file, a function and the lines that change"),
        ("# Reason.\ngates/gate.py\n- a", "2: not a file, a function and the lines that change"),
        ("# Reason.\ngates/gate.py is_shut\na\n- b", "2: not a file, a function and the lines that change"),
    ],
)
def test_a_list_of_another_form_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "explained.txt"
    path.write_text(text)
    with pytest.raises(ExplanationError, match=f"{path}:{problem}"):
        read_explained(path)
