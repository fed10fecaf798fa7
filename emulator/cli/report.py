"""``laststand report``: what became of a run, as a page to look at."""

import webbrowser
from pathlib import Path

import click

from emulator.cli.output import Output, json_option, report_done
from emulator.cli.user_error import UserError


@click.command(short_help="Draw run directories as pages.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page of one RUN there.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the first page in a browser.")
@json_option
def report(runs: tuple[Path, ...], *, target: Path | None, is_opened: bool, output: Output) -> None:
    """Write report.html into each RUN that was verified: a file that needs no network.

    Two RUNs are compared with each other, decision by decision. With -o the page of the first goes to FILE.
    """
    from emulator.report.page import REPORT_FILE, write_report

    if target is not None and len(runs) > 2:
        raise UserError("-o takes the page of one RUN, or of one compared with another")
    pages = []
    for run in runs if target is None else runs[:1]:
        page = target or run / REPORT_FILE
        write_report(run, page, against=_other(run, runs))
        pages.append(page)
    if is_opened:
        webbrowser.open(pages[0].resolve().as_uri())
    report_done("\n".join(map(str, pages)), {"reports": [str(page) for page in pages]}, output)


def _other(run: Path, runs: tuple[Path, ...]) -> Path | None:
    return next((other for other in runs if other != run), None) if len(runs) == 2 else None
