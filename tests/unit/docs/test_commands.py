"""Every command that a document shows is one: it parses as pasted, and what needs no cluster and no time is run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from laststand.cli.main import cli
from laststand.cli.options.settings import PROFILE_NAMES
from laststand.emulator.simulator.profiles.profiles import ALL_PROFILES
from tests.documented_scenarios import documents

_ROOT = Path(__file__).parents[3]
_DOCUMENTS = documents()
_BLOCK = re.compile(r"```[a-z]*\n(.*?)```", re.DOTALL)
_INLINE = re.compile(r"`(laststand [a-z][^`]*)`")
_SUBSTITUTED = re.compile(r"\$\((laststand [^)]*)\)")
_OUTPUT_PREFIXES = ("laststand: ",)
_SEPARATORS = frozenset("|;&")


def commands(text: str) -> Iterator[tuple[str, ...]]:
    """Yields the arguments of every ``laststand`` that a text shows in code blocks, and beside a tool of Kafka's."""
    for block in _BLOCK.findall(text):
        if not is_synopsis(block) and not is_drawing(block):
            for line in block.replace("\\\n", " ").splitlines():
                yield from _of_line(line)
    for row in text.splitlines():
        if row.startswith("| `kafka-"):
            for shown in _INLINE.findall(row):
                yield from _of_line(shown)


def is_drawing(block: str) -> bool:
    """Returns whether a block shows boxes and arrows."""
    return "─" in block


def is_synopsis(block: str) -> bool:
    """Returns whether a block says what can be typed, rather than what to type."""
    return "[--" in block


def _of_line(line: str) -> Iterator[tuple[str, ...]]:
    for inner in _SUBSTITUTED.findall(line):
        yield from _of_line(inner)
    line = _SUBSTITUTED.sub("", line.removeprefix("$ ").strip())
    if "laststand " not in line or line.startswith(_OUTPUT_PREFIXES):
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= _SEPARATORS:
            if words and words[0].rpartition("/")[2] == "laststand":
                yield tuple(_without_redirections(words[1:]))
            words = []
        else:
            words.append(word)


def _without_redirections(words: list[str]) -> Iterator[str]:
    skip = False
    for word in words:
        if skip:
            skip = False
        elif set(word) <= {"<", ">"}:
            skip = True
        else:
            yield word


def parsed(arguments: tuple[str, ...]) -> click.Context:
    """Returns the context of the command that would be executed.

    Raises:
        click.ClickException: it would not.
    """
    context = cli.make_context("laststand", list(arguments))
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


def _shown() -> list[tuple[Path, tuple[str, ...]]]:
    found = [(path, each) for path in _DOCUMENTS for each in commands(path.read_text(encoding="utf-8"))]
    return list(dict.fromkeys(found))


SHOWN = _shown()
_QUICK = [
    arguments
    for _, arguments in SHOWN
    if arguments[:1] == ("completion",) or (arguments[:1] == ("replay",) and "tests/simulation" in arguments[1])
]


def test_commands_are_found() -> None:
    assert len(SHOWN) > 80
    assert {path.name for path, _ in SHOWN} >= {"README.md", "standing-cluster.md", "from-kafka.md", "install.md"}
    assert ("produce", "orders") in [arguments for _, arguments in SHOWN]  # behind a pipe


@pytest.mark.parametrize(
    ("path", "arguments"),
    SHOWN,
    ids=[f"{path.relative_to(_ROOT)}: {shlex.join(arguments)[:60]}" for path, arguments in SHOWN],
)
def test_a_command_parses_as_pasted(path: Path, arguments: tuple[str, ...]) -> None:
    try:
        parsed(arguments)
    except click.ClickException as error:
        pytest.fail(f"{path.relative_to(_ROOT)}: laststand {shlex.join(arguments)}: {error.format_message()}")


@pytest.mark.parametrize("arguments", [("up", "--nothing"), ("nothing",), ("topics", "create", "a", "b", "c")])
def test_what_is_no_command_does_not_parse(arguments: tuple[str, ...]) -> None:
    with pytest.raises(click.ClickException):
        parsed(arguments)


@pytest.mark.parametrize("arguments", _QUICK, ids=shlex.join)
def test_what_needs_no_cluster_runs(arguments: tuple[str, ...]) -> None:
    program = (sys.executable, "-m", "laststand.cli", *arguments)
    done = subprocess.run(program, cwd=_ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout


def test_something_is_run() -> None:
    assert {arguments[0] for arguments in _QUICK} == {"completion", "replay"}


def test_a_synopsis_names_options_and_commands_that_there_are() -> None:
    options = {option for path in paths() for parameter in path[-1].params for option in parameter.opts}
    names = {command.name for path in paths() for command in path}
    for path in _DOCUMENTS:
        for block in filter(is_synopsis, _BLOCK.findall(path.read_text(encoding="utf-8"))):
            assert set(re.findall(r"--[a-z-]+", block)) <= options, path
            alternatives = re.findall(r"(?:laststand(?: [a-z-]+)?|\|) ([a-z-]+)", block)
            assert set(alternatives) <= names, path


def paths() -> Iterator[tuple[click.Command, ...]]:
    """Yields every command with the groups above it."""

    def below(command: click.Command, above: tuple[click.Command, ...]) -> Iterator[tuple[click.Command, ...]]:
        here = (*above, command)
        yield here
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from below(found, here)

    return below(cli, ())


def test_every_verb_has_json() -> None:
    lacking = [
        path[-1].name
        for path in paths()
        if not isinstance(path[-1], click.Group)
        and not any("--json" in parameter.opts for parameter in path[-1].params)
    ]
    assert lacking == ["completion", "compose", "events", "hooks"], (
        "compose and hooks print YAML, events nothing but JSON"
    )


def test_the_help_names_every_kind_of_schedule() -> None:
    assert tuple(ALL_PROFILES) == PROFILE_NAMES


@pytest.mark.parametrize("verb", ["up", "run", "simulate"])
def test_the_help_names_every_era(verb: str) -> None:
    from laststand.emulator.core.switches import ERAS

    context = cli.make_context("laststand", [verb, "x"], resilient_parsing=True)
    command = cli.get_command(context, verb)
    assert command is not None
    text = " ".join(command.get_help(click.Context(command, info_name=verb)).split())
    assert [era for era in ERAS if era not in text] == []


def test_every_analysis_has_a_section_with_its_output() -> None:
    from laststand.cli.commands.analyze import SUMMARIES

    page = (_ROOT / "docs/analyses.md").read_text(encoding="utf-8")
    sections = {section.partition("\n")[0]: section for section in page.split("\n## ")}
    assert [name for name in SUMMARIES if not _BLOCK.search(sections.get(name, ""))] == []
