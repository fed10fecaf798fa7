"""The folder of commands has a file for each verb, and no other."""

from pathlib import Path

import click

from laststand.cli import commands, main


def test_each_file_of_the_folder_of_commands_is_a_verb_and_each_verb_has_its_own() -> None:
    verbs = {name for names in main._SECTIONS.values() for name in names}
    places = {name: main._PLACES.get(name, name.replace("-", "_")).partition(":")[0] for name in verbs}
    files = {file.stem for file in Path(commands.__path__[0]).glob("*.py")} - {"__init__"}
    assert sorted(places.values()) == sorted(files)


def test_a_verb_is_the_only_one_in_its_file() -> None:
    for name, command in main.cli.commands.items():
        assert command.callback is not None
        module = __import__(command.callback.__module__, fromlist=["*"])
        roots = [each for each in vars(module).values() if isinstance(each, click.Command) and each.name == name]
        assert roots == [command], name
