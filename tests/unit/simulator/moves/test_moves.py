"""Every move has one name, and profiles weigh exactly the moves that there are."""

from laststand.emulator.simulator.moves.administrators import ADMINISTRATOR_MOVES
from laststand.emulator.simulator.moves.eras import ERA_MOVES
from laststand.emulator.simulator.moves.late_metadata import LATE_METADATA_MOVES
from laststand.emulator.simulator.moves.members import MEMBER_MOVES
from laststand.emulator.simulator.moves.moves import MOVES
from laststand.emulator.simulator.moves.network import NETWORK_MOVES
from laststand.emulator.simulator.moves.processes import PROCESS_MOVES
from laststand.emulator.simulator.moves.progress import PROGRESS_MOVES
from laststand.emulator.simulator.moves.quorum import QUORUM_MOVES
from laststand.emulator.simulator.moves.races import RACES
from laststand.emulator.simulator.moves.requests import REQUEST_MOVES
from laststand.emulator.simulator.moves.transactions import TRANSACTION_MOVES
from laststand.emulator.simulator.moves.unclean_races import UNCLEAN_RACES
from laststand.emulator.simulator.moves.zookeeper import ZOOKEEPER_MOVES
from laststand.emulator.simulator.profiles.profiles import ALL_PROFILES


def test_no_name_is_in_two_tables() -> None:
    tables = (
        PROGRESS_MOVES,
        NETWORK_MOVES,
        PROCESS_MOVES,
        ERA_MOVES,
        REQUEST_MOVES,
        LATE_METADATA_MOVES,
        ADMINISTRATOR_MOVES,
        RACES,
        UNCLEAN_RACES,
        QUORUM_MOVES,
        MEMBER_MOVES,
        TRANSACTION_MOVES,
        ZOOKEEPER_MOVES,
    )
    assert sum(len(table) for table in tables) == len(MOVES)


def test_profiles_weigh_exactly_the_moves_that_there_are() -> None:
    assert {name for profile in ALL_PROFILES.values() for name in profile.weights} == set(MOVES)
