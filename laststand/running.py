"""Playing scenarios from a program."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from laststand.chaos.play.run_directory import make_store
from laststand.chaos.suite.player import Listener, SuitePlayer, SuiteSettings
from laststand.chaos.suite.selection import select
from laststand.chaos.suite.suite import Suite, make_suite
from laststand.emulator.core.errors import ConfigError, causes_of
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.judges import JudgeName
from laststand.emulator.verification.verdict.report import VerdictReport
from laststand.emulator.verification.verify import verify_runs
from laststand.session import starter


def judge(directories: Sequence[Path], *, by: JudgeName = JudgeName.SPARK) -> Sequence[VerdictReport]:
    """Judges run directories in this process's session, or in this process alone."""
    if by is JudgeName.HERE:
        return verify_runs(directories, spark=None)
    with starter().tasks_at_work() as spark:
        return verify_runs(directories, spark=spark)


def player_of(suite: Suite, *, jobs: int, by: JudgeName = JudgeName.SPARK) -> SuitePlayer:
    """Returns the player of a suite; the Spark session, if Spark judges, starts meanwhile. Main thread only.

    Raises:
        MissingToolError: no pyspark, or no Java.
    """
    make_store(suite.store)
    if by is JudgeName.SPARK:
        starter()
    return SuitePlayer(
        suite.cells,
        settings=SuiteSettings(jobs=jobs),
        make_order=suite.order,
        judge=partial(judge, by=by),
        listener=Listener(),
    )


async def play_one(
    scenario: str | Path, *, era: str, driver: str, settings: Mapping[str, str], seed: int | None, store: Path
) -> VerdictReport:
    """Plays a scenario under an era, and returns the verdict; ``laststand.run`` says more.

    Raises:
        ConfigError: the name is not one scenario, the driver cannot play it, or there is no such era or setting.
        ScenarioError: the file cannot be played.
        EmulatorError: there is no verdict.
    """
    selected = select([str(scenario)])
    if len(selected) != 1:
        raise ConfigError(key="scenario", value=str(scenario), expected="one scenario, not several")
    suite = make_suite(
        selected,
        eras=(era,),
        settings=tuple(f"{key}={value}" for key, value in settings.items()),
        drivers=(DriverName(driver),),
        seed=seed,
        store=store,
    )
    player = player_of(suite, jobs=1)
    try:
        await player.play()
    except ExceptionGroup as group:
        raise causes_of(group)[0] from group
    if player.reports:
        (report,) = player.reports.values()
        return report
    (result,) = player.all_results()
    raise ConfigError(key="scenario", value=str(scenario), expected=f"what can be played: {'; '.join(result.reasons)}")
