"""Every move has one name, and profiles weigh exactly the moves that there are."""

from emulator.simulator.administrator_moves import ADMINISTRATOR_MOVES
from emulator.simulator.late_metadata_moves import LATE_METADATA_MOVES
from emulator.simulator.moves import MOVES
from emulator.simulator.network_moves import NETWORK_MOVES
from emulator.simulator.process_moves import PROCESS_MOVES
from emulator.simulator.profiles import ALL_PROFILES
from emulator.simulator.progress_moves import PROGRESS_MOVES
from emulator.simulator.races import RACES
from emulator.simulator.request_moves import REQUEST_MOVES
from emulator.simulator.unclean_races import UNCLEAN_RACES
from emulator.simulator.zookeeper_moves import ZOOKEEPER_MOVES


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
