"""``laststand setup``: looks for the programs that runs need besides Python, and builds one of them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.requirements import require_spark
from laststand.emulator.cluster.toxiproxy_build import BuildError, provide_toxiproxy
from laststand.emulator.core.errors import MissingToolError


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """A program, what needs it, and its place or why it is missing."""

    program: str
    needed_for: str
    path: str | None
    problem: str | None


@click.command(short_help="Find or build the programs that runs need besides Python.")
@json_option
def setup(output: Output) -> int:
    """Look for toxiproxy-server and Java, and build the former if there is a Go but no toxiproxy-server.

    toxiproxy-server is needed where links are cut, Java where a run is judged. The build takes up to a minute, needs
    Go's module proxy, and is kept in ~/.cache/laststand. `pip install 'laststand[faults,verify]'` brings a Go and a
    Java for machines that have none.

    Exit code: 0 everything is there, 254 something is missing.
    """
    found = [
        _requirement("toxiproxy-server", "run, up (without --no-proxies), replay --driver process", _toxiproxy),
        _requirement("java", "run, verify", _java),
    ]
    if output is Output.JSON:
        print_json(found)
    else:
        print_listing(
            ("PROGRAM", "FOUND", "NEEDED FOR"),
            [(each.program, each.path or f"missing: {each.problem}", each.needed_for) for each in found],
        )
    return ExitCode.VALID if all(each.problem is None for each in found) else ExitCode.USAGE


def _requirement(program: str, needed_for: str, find: Callable[[], Path]) -> Requirement:
    try:
        return Requirement(program=program, needed_for=needed_for, path=str(find()), problem=None)
    except (MissingToolError, BuildError) as error:
        return Requirement(program=program, needed_for=needed_for, path=None, problem=str(error))


def _toxiproxy() -> Path:
    return provide_toxiproxy(announce=partial(click.echo, err=True))


def _java() -> Path:
    from laststand.emulator.verification.spark.java import find_java

    require_spark()
    return find_java().executable
