"""``laststand report``: a run's story as a page for the browser."""

import webbrowser
from pathlib import Path
from typing import Final

import click

from laststand.cli.options.run_argument import RUN
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError

_COMPARED: Final = 2


@click.command(short_help="Draw run directories as pages.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RUN)
@click.option(
    "-o",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page of one RUN, or an overview, there.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the first page in a browser.")
@json_option
def report(runs: tuple[Path, ...], *, target: Path | None, is_opened: bool, output: Output) -> None:
    """Write report.html into each RUN that was verified: a file that needs no network.

    A directory that holds runs stands for all of them. Two RUNs are compared with each other, decision by decision.
    With -o the page of the first goes to FILE; of more than two RUNs, FILE is an overview, scenarios by eras, with
    links to their pages.
    """
    from laststand.emulator.report.overview import PlayedCell, write_overview
    from laststand.emulator.report.page import REPORT_FILE, write_report
    from laststand.emulator.verification.reading.run_directory import find_runs

    if target is not None and not target.absolute().parent.is_dir():
        raise UserError(f"-o {target}: cannot be written: {target.absolute().parent} is no directory")
    runs = tuple(found for run in runs for found in find_runs(run))
    is_overview = target is not None and len(runs) > _COMPARED
    pages = []
    for run in runs if target is None or is_overview else runs[:1]:
        page = run / REPORT_FILE if target is None or is_overview else target
        write_report(run, page, against=_other(run, runs))
        pages.append(page)
    if target is not None and is_overview:
        write_overview([PlayedCell(*each) for each in zip(runs, pages, strict=True)], target)
        pages.insert(0, target)
    if is_opened:
        webbrowser.open(pages[0].resolve().as_uri())
    report_done("\n".join(map(str, pages)), {"reports": [str(page) for page in pages]}, output)


def _other(run: Path, runs: tuple[Path, ...]) -> Path | None:
    return next((other for other in runs if other != run), None) if len(runs) == _COMPARED else None
