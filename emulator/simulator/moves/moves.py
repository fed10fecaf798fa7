"""All moves: what a schedule may do next, by intention. Each draws its choices and returns actions, or none.

A move inspects the running cluster, as an adversary would: the leader, the last member of the ISR, held messages. All
random choices are arguments of the actions, so a replay draws nothing.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.simulator.moves.administrators import ADMINISTRATOR_MOVES
from laststand.emulator.simulator.moves.cluster_view import Move
from laststand.emulator.simulator.moves.eras import ERA_MOVES
from laststand.emulator.simulator.moves.late_metadata import LATE_METADATA_MOVES
from laststand.emulator.simulator.moves.members import MEMBER_MOVES
from laststand.emulator.simulator.moves.network import NETWORK_MOVES
from laststand.emulator.simulator.moves.processes import PROCESS_MOVES
from laststand.emulator.simulator.moves.progress import PROGRESS_MOVES
from laststand.emulator.simulator.moves.quorum import QUORUM_MOVES
from laststand.emulator.simulator.moves.races import RACES
from laststand.emulator.simulator.moves.requests import REQUEST_MOVES
from laststand.emulator.simulator.moves.transactions import TRANSACTION_MOVES
from laststand.emulator.simulator.moves.unclean_races import UNCLEAN_RACES
from laststand.emulator.simulator.moves.zookeeper import ZOOKEEPER_MOVES

MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        **PROGRESS_MOVES,
        **NETWORK_MOVES,
        **PROCESS_MOVES,
        **ERA_MOVES,
        **REQUEST_MOVES,
        **LATE_METADATA_MOVES,
        **ADMINISTRATOR_MOVES,
        **RACES,
        **UNCLEAN_RACES,
        **QUORUM_MOVES,
        **TRANSACTION_MOVES,
        **MEMBER_MOVES,
        **ZOOKEEPER_MOVES,
    }
)
"""All moves, by the name that profiles use."""
