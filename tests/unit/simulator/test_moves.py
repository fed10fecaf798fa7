"""Every move has one name, and profiles weigh exactly the moves that there are."""

from laststand.emulator.simulator.administrator_moves import ADMINISTRATOR_MOVES
from laststand.emulator.simulator.late_metadata_moves import LATE_METADATA_MOVES
from laststand.emulator.simulator.moves import MOVES
from laststand.emulator.simulator.network_moves import NETWORK_MOVES
from laststand.emulator.simulator.process_moves import PROCESS_MOVES
from laststand.emulator.simulator.profiles import ALL_PROFILES
from laststand.emulator.simulator.progress_moves import PROGRESS_MOVES
from laststand.emulator.simulator.races import RACES
from laststand.emulator.simulator.request_moves import REQUEST_MOVES
from laststand.emulator.simulator.unclean_races import UNCLEAN_RACES
from laststand.emulator.simulator.zookeeper_moves import ZOOKEEPER_MOVES


def test_no_name_is_in_two_tables() -> None:
    tables = (
        PROGRESS_MOVES,
        NETWORK_MOVES,
        PROCESS_MOVES,
        REQUEST_MOVES,
        LATE_METADATA_MOVES,
        ADMINISTRATOR_MOVES,
        RACES,
        UNCLEAN_RACES,
        ZOOKEEPER_MOVES,
    )
    assert sum(len(table) for table in tables) == len(MOVES)


def test_profiles_weigh_exactly_the_moves_that_there_are() -> None:
    assert {name for profile in ALL_PROFILES.values() for name in profile.weights} == set(MOVES)
