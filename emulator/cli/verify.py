"""``laststand verify``: verifies run directories."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from emulator.cli.exit_codes import ExitCode
from emulator.cli.output import Output, json_option
from emulator.cli.user_error import UserError

_PROGRESS_S: Final = 5.0


@click.command(short_help="Verify run directories.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--master", metavar="URL", help="Spark's master.  [default: local, two threads]")
@click.option("--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
@click.option("--driver-address", metavar="HOST", help="Where a cluster's executors reach this machine.")
@click.option(
    "--work-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for spark.log and Spark's temporary files.",
)
@json_option
def verify(
    runs: tuple[Path, ...],
    master: str | None,
    settings: tuple[str, ...],
    driver_address: str | None,
    work_dir: Path | None,
    output: Output,
) -> int:
    """Verify RUN directories, all in one Spark job, and write verdict.json and junit.xml into each.

    Of several RUNs, one that is no run directory is named, and the others are verified. With --master spark://...,
    yarn or k8s://... a Spark cluster does the work (docs/scale.md).

    Exit code: 1 if any is a violation, else 2 if any is unknown or no run, else 0.
    """
    from emulator.cli.play import told_if_unjudged
    from emulator.cli.requirements import require_spark
    from emulator.cli.results import print_verdicts, verdicts_exit_code
    from emulator.verification.class_archive import ArchiveUse
    from emulator.verification.job_progress import told_progress
    from emulator.verification.session import DEFAULT_MASTER, SparkSessionStarter
    from emulator.verification.verdict import write_verdict
    from emulator.verification.verify import verify_runs

    conf = parse_conf(settings)
    found = _existing(runs)
    if work_dir is not None:
        _make(work_dir)
    require_spark()
    starter = SparkSessionStarter(
        log_path=(found[0] if work_dir is None else work_dir).resolve() / "spark.log",
        master=DEFAULT_MASTER if master is None else master,
        archive_use=ArchiveUse.WRITE,
        conf=conf,
        driver_address=driver_address,
        work_directory=None if work_dir is None else work_dir.resolve(),
    )
    starter.start()
    try:
        with told_if_unjudged(found):
            with starter.at_work() as spark, told_progress(spark, _progress()):
                reports = verify_runs(found, spark=spark)
            for path, report in zip(found, reports, strict=True):
                write_verdict(report, path.resolve())
            print_verdicts(reports, output=output)
    finally:
        starter.stop()
    exit_code = verdicts_exit_code(reports)
    return ExitCode.UNKNOWN if exit_code is ExitCode.VALID and len(found) < len(runs) else exit_code


def parse_conf(settings: Sequence[str]) -> dict[str, str]:
    """Returns Spark's settings as options give them.

    Raises:
        UserError: one is no KEY=VALUE.
    """
    conf = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key.startswith("spark.") or not equals:
            raise UserError(f"--conf {setting}: expected spark.KEY=VALUE")
        conf[key] = value
    return conf


def _existing(runs: Sequence[Path]) -> list[Path]:
    """Returns the run directories among ``runs``; names the others, unless there is nothing else to do.

    Raises:
        ConfigError: none is a run directory.
    """
    from emulator.core.errors import ConfigError
    from emulator.verification.run_directory import open_run_directory

    found, problems = [], []
    for path in runs:
        try:
            open_run_directory(path)
        except ConfigError as error:
            problems.append(error)
        else:
            found.append(path)
    if not found:
        raise problems[0]
    for problem in problems:
        click.echo(f"not judged: {problem}", err=True)
    return found


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UserError(f"--work-dir {directory}: {error.strerror}") from None


def _progress() -> Callable[[int, int], None]:
    """Returns a callback that prints how far a verification has come, every few seconds."""
    started = printed = time.monotonic()

    def show(done: int, tasks: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed >= _PROGRESS_S:
            printed = now
            click.echo(f"[{now - started:6.1f} s] verify: {done} of {tasks} tasks done", err=True)

    return show
