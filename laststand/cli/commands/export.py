"""``laststand export``: runs as files for other programs: their tables, or a file for each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from laststand.cli.options.spark import SparkChoice, spark_options
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError
from laststand.cli.spark.run_tables import no_cache_option, skip_broken_option, tables_of

_FORMATS: Final[Mapping[str, Mapping[str, str]]] = {
    "parquet": {"compression": "zstd"},
    "json": {"compression": "gzip"},
    "csv": {"header": "true", "escape": '"'},
}
"""Formats of tables, and Spark's options for them; CSV is that of RFC 4180, in which a quote is doubled."""

_TRACES: Final = {"jepsen": ".edn", "perfetto": ".json", "shiviz": ".log"}
"""Formats with one file per run, and the endings of the files' names."""

_TLA: Final = "tla"


@click.command(short_help="Write runs for other programs.")
@click.argument("words", metavar="RUN... DIR", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to", "file_format", type=click.Choice((*_FORMATS, *_TRACES, _TLA)), default="parquet", show_default=True
)
@click.option("--by-run", "is_by_run", is_flag=True, help="Give each run a folder of its own within each table.")
@skip_broken_option
@no_cache_option
@spark_options
@json_option
def export(
    words: tuple[Path, ...],
    *,
    file_format: str,
    is_by_run: bool,
    skip_broken: bool,
    no_cache: bool,
    spark_choice: SparkChoice,
    output: Output,
) -> None:
    """Write the tables of all RUN directories into the new directory DIR, a folder each.

    A directory that holds runs stands for all of them. docs/tables.md describes the tables; a table without rows is
    written, too. In CSV a list or an object is JSON text. With --by-run a table is divided into folders by its column
    run (run=...), which programs recognize that read partitioned tables; a run without rows has no folder.

    With --to tla all runs become one module of traces, which TLC checks against the specification in docs/tla; runs
    that the specification does not cover are refused, with the reason.

    --to jepsen writes each run's client history in Jepsen's format, EDN; --to shiviz writes its rare events with vector
    clocks; --to perfetto writes a trace of nodes' roles and of actions, for verified runs only.
    """
    from laststand.cli.spark.frames import flat
    from laststand.emulator.analysis.catalogue import TABLE_NAMES

    paths, directory = _divide(words)
    if directory.exists():
        raise UserError(f"{directory}: exists; expected a new directory")
    if file_format == _TLA or file_format in _TRACES:
        if is_by_run:
            written = "one module" if file_format == _TLA else "a file for each run"
            raise UserError(f"--by-run divides tables; --to {file_format} writes {written}")
        files = _write_tla(paths, directory) if file_format == _TLA else _write_traces(paths, directory, file_format)
        report_done("\n".join(files), {"directory": str(directory), "format": file_format, "files": files}, output)
        return
    with tables_of(paths, skip_broken=skip_broken, no_cache=no_cache, spark_choice=spark_choice) as runs:
        directory.mkdir(parents=True)
        for name in TABLE_NAMES:
            table = runs.table(name)
            writer = (flat(table) if file_format == "csv" else table).write.options(**_FORMATS[file_format])
            if is_by_run:
                writer = writer.partitionBy("run")
            writer.format(file_format).save(str((directory / name).resolve()))
    document = {"directory": str(directory), "format": file_format, "tables": TABLE_NAMES}
    report_done(f"{len(TABLE_NAMES)} tables in {directory}", document, output)


def _write_tla(paths: Sequence[Path], directory: Path) -> list[str]:
    from laststand.emulator.report.export import write_tla
    from laststand.emulator.verification.reading.run_directory import find_runs

    write_tla([run for path in paths for run in find_runs(path)], directory)
    return sorted(map(str, directory.iterdir()))


def _write_traces(paths: Sequence[Path], directory: Path, file_format: str) -> list[str]:
    from laststand.emulator.report.export import TraceFormat, write_trace
    from laststand.emulator.verification.reading.run_directory import find_runs, open_run_directory

    found = [run for path in paths for run in find_runs(path)]
    for path in found:
        open_run_directory(path)
    directory.mkdir(parents=True)
    files = []
    for number, path in enumerate(found):
        name = f"{number}-{path.resolve().parent.name}-{path.resolve().name}{_TRACES[file_format]}"
        write_trace(path, directory / name, TraceFormat(file_format))
        files.append(str(directory / name))
    return files


def _divide(words: Sequence[Path]) -> tuple[Sequence[Path], Path]:
    if len(words) < 2:
        raise UserError("the runs or the directory are missing: laststand export RUN... DIR")
    return words[:-1], words[-1]
