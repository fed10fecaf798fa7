"""``laststand verify``: verifies run directories."""

from pathlib import Path

import click

from emulator.cli.output import Output, json_option


@click.command(short_help="Verify run directories.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--master", metavar="URL", help="Spark's master.  [default: local, two threads]")
@json_option
def verify(runs: tuple[Path, ...], master: str | None, output: Output) -> int:
    """Verify RUN directories, all in one Spark job, and write verdict.json and junit.xml into each.

    Exit code: 1 if any is a violation, else 2 if any is unknown, else 0.
    """
    from emulator.cli.play import told_if_unjudged
    from emulator.cli.requirements import require_spark
    from emulator.cli.results import print_verdicts, verdicts_exit_code
    from emulator.verification.class_archive import ArchiveUse
    from emulator.verification.run_directory import open_run_directory
    from emulator.verification.session import DEFAULT_MASTER, SparkSessionStarter
    from emulator.verification.verdict import write_verdict
    from emulator.verification.verify import verify_runs

    for path in runs:
        open_run_directory(path)
    require_spark()
    starter = SparkSessionStarter(
        log_path=runs[0].resolve() / "spark.log",
        master=DEFAULT_MASTER if master is None else master,
        archive_use=ArchiveUse.WRITE,
    )
    with told_if_unjudged(runs):
        starter.start()
        try:
            with starter.at_work() as spark:
                reports = verify_runs(runs, spark=spark)
            for path, report in zip(runs, reports, strict=True):
                write_verdict(report, path.resolve())
            print_verdicts(reports, output=output)
        finally:
            starter.stop()
    return verdicts_exit_code(reports)
