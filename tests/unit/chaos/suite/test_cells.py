"""Cells of a suite: their eras and drivers, their repetitions, and those that are skipped."""

from itertools import islice

from laststand.chaos.suite.cells import ALL, Cell, Shard, cells_of
from laststand.chaos.suite.selection import Selected, select
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.overrides import parse_overrides

ACKS = "kip-966/acks-comparison"


def cells(
    *selected: Selected,
    eras: tuple[str, ...] = (),
    repetitions: int | None = 1,
    drivers: tuple[DriverName, ...] = (DriverName.SIMULATOR,),
    kafka_era: str | None = None,
    settings: tuple[str, ...] = (),
    shard: Shard = ALL,
) -> list[Cell]:
    found = cells_of(
        selected,
        eras=eras,
        repetitions=repetitions,
        seed=7,
        drivers=drivers,
        kafka_era=kafka_era,
        overrides=parse_overrides(settings),
        shard=shard,
    )
    return list(islice(found, 100))


def test_eras_are_those_of_the_command_line_then_of_the_suite_then_of_the_expectations() -> None:
    (plain,) = select([ACKS])
    of_suite = Selected(scenario=plain.scenario, eras=("kafka-4.2",))
    assert [cell.era for cell in cells(of_suite, eras=("kafka-3.9", "kip-966", "kafka-3.9"))] == [
        "kafka-3.9",
        "kip-966",
    ]
    assert [cell.era for cell in cells(of_suite)] == ["kafka-4.2"]
    assert [cell.era for cell in cells(plain)] == [era for era, _ in plain.scenario.expect]


def test_all_is_played_once_before_anything_is_repeated_and_seeds_differ() -> None:
    found = cells(*select(["kip-497"]), eras=("kip-966",), repetitions=2)
    assert [(cell.scenario.name, cell.repetition, cell.seed) for cell in found] == [
        ("kip-497/answer-lost", 1, 7),
        ("kip-497/leader-cut-off", 1, 7),
        ("kip-497/answer-lost", 2, 8),
        ("kip-497/leader-cut-off", 2, 8),
    ]


def test_repetitions_may_have_no_end() -> None:
    assert len(cells(*select(["kip-497"]), eras=("kip-966",), repetitions=None)) == 100


def test_what_a_driver_cannot_play_is_skipped_with_the_reason() -> None:
    (only,) = cells(*select([ACKS]), eras=("kip-966",), settings=("log.flush.interval.ms=5",))
    assert only.skipped is not None
    assert only.skipped.startswith("--driver simulator cannot play log.flush.interval.ms")
    (played,) = cells(
        *select([ACKS]),
        eras=("kip-966",),
        settings=("log.flush.interval.ms=5",),
        drivers=(DriverName.PROCESS,),
    )
    assert played.skipped is None


def test_several_drivers_play_an_era_beside_each_other_and_kafka_only_its_own() -> None:
    drivers = (DriverName.PROCESS, DriverName.KAFKA)
    found = cells(*select([ACKS]), eras=("kafka-4.2", "kip-966"), drivers=drivers, kafka_era="kafka-4.2")
    assert [cell.name.removeprefix(f"{ACKS} ") for cell in found] == [
        "kafka-4.2 on process #1",
        "kafka-4.2 on kafka #1",
        "kip-966 on process #1",
    ]
    (only,) = cells(*select([ACKS]), eras=("kafka-4.2",), drivers=(DriverName.KAFKA,), kafka_era="kafka-4.2")
    assert (only.name, only.driver) == (f"{ACKS} kafka-4.2 #1", None), "a suite with one driver need not name it"


def test_kafkas_era_is_played_where_nobody_names_eras() -> None:
    (plain,) = select([ACKS])
    of_suite = Selected(scenario=plain.scenario, eras=("kip-966",))
    drivers = (DriverName.SIMULATOR, DriverName.KAFKA)
    assert [(cell.era, cell.driver) for cell in cells(of_suite, drivers=drivers, kafka_era="kafka-3.9")] == [
        ("kip-966", DriverName.SIMULATOR),
        ("kafka-3.9", DriverName.KAFKA),
    ]


def test_an_era_that_a_scenario_expects_nothing_of_is_skipped() -> None:
    found = cells(*select([ACKS]), eras=("kafka-0.10", "kip-966"))
    assert [cell.skipped for cell in found] == ["the scenario expects nothing of era kafka-0.10", None]


def test_each_cell_is_in_one_part_and_always_in_the_same() -> None:
    selected = select(["kip-966", "kip-497"])
    parts = [{cell.name for cell in cells(*selected, shard=Shard(number=part, count=3))} for part in (1, 2, 3)]
    everything = {cell.name for cell in cells(*selected)}
    assert parts[0] | parts[1] | parts[2] == everything
    assert sum(len(part) for part in parts) == len(everything)
    assert all(parts)
    fewer = {cell.name for cell in cells(*select(["kip-497"]), shard=Shard(number=1, count=3))}
    assert fewer == {name for name in parts[0] if name.startswith("kip-497/")}
