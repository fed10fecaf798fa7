"""``--master`` and its companions: where Spark works, and its settings."""

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click
import msgspec

from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.class_archive import ArchiveUse
    from laststand.emulator.verification.spark.session import SparkSessionStarter

_Result = TypeVar("_Result")


class SparkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choice of Spark; ``master`` is ``None`` unless an option names one."""

    master: str | None
    conf: dict[str, str]
    driver_address: str | None
    work_directory: Path | None

    @property
    def is_given(self) -> bool:
        """True if the user gave at least one option of Spark."""
        return bool(self.conf) or (self.master, self.driver_address, self.work_directory) != (None, None, None)

    def starter(
        self,
        *,
        log_directory: Path,
        archive_use: "ArchiveUse",
        imported: str,
    ) -> "SparkSessionStarter":
        """Returns the starter of the session.

        Args:
            log_directory: for ``spark.log``, if the user named no work directory.
            archive_use: what to do if there is no class archive.
            imported: the module that a cluster's executors must be able to import.

        Raises:
            UserError: the work directory cannot be written.
        """
        from laststand.emulator.verification.spark.session import DEFAULT_MASTER, SparkSessionStarter

        if self.work_directory is not None:
            _make(self.work_directory)
        return SparkSessionStarter(
            log_path=(self.work_directory or log_directory).resolve() / "spark.log",
            master=self.master or DEFAULT_MASTER,
            archive_use=archive_use,
            conf=self.conf,
            driver_address=self.driver_address,
            work_directory=None if self.work_directory is None else self.work_directory.resolve(),
            imported=imported,
        )


_OPTIONS: Final = (
    click.option("--master", metavar="URL", help="Spark's master: spark://HOST:PORT, yarn, k8s://URL or local[N]."),
    click.option(
        "--conf", "spark_settings", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
    ),
    click.option("--driver-address", metavar="HOST", help="Address at which the executors reach this machine."),
    click.option(
        "--work-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory for spark.log and Spark's temporary files.",
    ),
)


def spark_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Gives a command the options, and their values as its argument ``spark_choice``."""

    @functools.wraps(command)
    def with_choice(
        *arguments: object,
        master: str | None,
        spark_settings: tuple[str, ...],
        driver_address: str | None,
        work_dir: Path | None,
        **others: object,
    ) -> _Result:
        choice = SparkChoice(
            master=master, conf=parse_conf(spark_settings), driver_address=driver_address, work_directory=work_dir
        )
        return command(*arguments, spark_choice=choice, **others)

    decorated: Callable[..., _Result] = with_choice
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def parse_conf(settings: Sequence[str]) -> dict[str, str]:
    """Returns Spark's settings as options give them.

    Raises:
        UserError: a value is not of the form KEY=VALUE.
    """
    conf = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key.startswith("spark.") or not equals:
            raise UserError(f"--conf {setting}: expected spark.KEY=VALUE")
        conf[key] = value
    return conf


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UserError(f"--work-dir {directory}: {error.strerror}") from None
