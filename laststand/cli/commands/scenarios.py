"""``laststand scenarios``: lists the bundled scenarios, checks files, and creates a new one."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.options.completion import complete_scenarios
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError
from laststand.emulator.plan.path_words import PATH_WORD_RULE, is_path_name

if TYPE_CHECKING:
    from laststand.chaos.scenario.scenario import Scenario


_SKELETON: Final = """\
# yaml-language-server: $schema={schema}
name: {name}
title: The leader loses power while a producer is at work
cluster:
  brokers: 3                                  # ids 0 to 2, and one controller
  properties:                                 # Kafka's names: docs/properties.md
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 250
topics:
  - {{name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}}
workload:
  producers: [{{acks: all, rate: 200}}]         # records a second
  consumers: [{{}}]
steps:                                        # all steps and conditions: docs/scenarios.md
  - until: {{acked: 100, acks: all}}            # counted from the start of the step
  - power_loss: {{node: leader(orders-0), as: first}}
  - until: {{acked: 100, acks: all, within: 20 s}}
  - start: {{node: first}}
  - until: {{partition: orders-0, isr: [0, 1, 2]}}
expect:                                       # by era; without it a run passes if the verdict is valid
  kip-966: {{verdict: valid, lost: 0}}
"""


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario in the list.

    Attributes:
        actions: its actions, by the names of its steps.
        drivers: the drivers that can play it.
        expected: the verdict by era.
    """

    name: str
    title: str
    source: str
    actions: tuple[str, ...]
    drivers: tuple[str, ...]
    expected: dict[str, str]


@click.group(short_help="List, check and create scenarios.", invoke_without_command=True)
@json_option
@click.pass_context
def scenarios(context: click.Context, output: Output) -> None:
    """Print every scenario that can be run by name, and what it shows; --json adds its actions, eras and drivers."""
    if context.invoked_subcommand is not None:
        return
    from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, scenario_names
    from laststand.cli.output.tables import print_json

    found = [_listed(load_scenario(find_scenario(name))) for name in scenario_names()]
    if output is Output.JSON:
        print_json(found)
        return
    for each in found:
        click.echo(each.name)
        click.echo(f"  {each.title}")


def _listed(scenario: "Scenario") -> _Listed:
    from laststand.chaos.play.expressible import not_expressible
    from laststand.chaos.scenario import conditions
    from laststand.emulator.plan.actions import spec_of
    from laststand.emulator.plan.drivers import DriverName

    actions = (spec_of(step.action).verb for step in scenario.steps if not isinstance(step.action, conditions.Until))
    return _Listed(
        name=scenario.name,
        title=scenario.title,
        source=scenario.source,
        actions=tuple(dict.fromkeys(actions)),
        drivers=tuple(
            driver.value for driver in DriverName if not not_expressible(scenario, scenario.properties, driver)
        ),
        expected={era: expectation.verdict.value for era, expectation in scenario.expect},
    )


@scenarios.command(short_help="Read scenarios without playing them.")
@click.argument("names", metavar="SCENARIO...", nargs=-1, required=True, shell_complete=complete_scenarios)
@json_option
def check(names: tuple[str, ...], output: Output) -> None:
    """Read SCENARIOs (files, folders, names, suites), and say what is wrong with each: 254 if anything is.

    It needs no cluster and no Java, so that it can run before each commit.
    """
    from laststand.chaos.suite.selection import check_all
    from laststand.emulator.report.numbers import plural

    found, problems = check_all(names)
    if problems:
        raise UserError("\n".join(problems))
    report_done(f"{plural(found, 'scenario')} in order", {"scenarios": found}, output)


@scenarios.command(short_help="Begin a scenario.")
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="File to write; NAME.yaml if not given.")
@json_option
def new(name: str, out: Path | None, output: Output) -> None:
    """Write a scenario called NAME that can be played as it stands, with comments.

    Beside it goes the JSON Schema by which editors complete keys.
    """
    from laststand.chaos.scenario.schema import FILE_NAME

    if not is_path_name(name):
        raise UserError(f"{name!r} is no name: expected {PATH_WORD_RULE}, and '/' between such words")
    path = out or Path(f"{name}.yaml")
    if path.exists():
        raise UserError(f"{path}: exists already")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_SKELETON.format(name=name, schema=FILE_NAME), encoding="utf-8")
    path.with_name(FILE_NAME).write_bytes(_schema_text())
    report_done(f"{path}: play it with: laststand run {path}", {"scenario": str(path)}, output)


@scenarios.command(short_help="Print the JSON Schema of scenario files.")
@click.option("--json", "is_json", is_flag=True, help="No effect: a schema is JSON.")
def schema(*, is_json: bool) -> None:
    """Print the JSON Schema of scenario files, by which editors complete and check keys."""
    click.echo(_schema_text(), nl=False)


def _schema_text() -> bytes:
    from laststand.chaos.scenario.schema import scenario_schema

    return msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2) + b"\n"
