"""All moves: what a schedule may do next, by intention. Each draws its choices and returns actions, or none.

A move inspects the running cluster, as an adversary would: the leader, the last member of the ISR, held messages. All
random choices are arguments of the actions, so a replay draws nothing.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.simulator.administrator_moves import ADMINISTRATOR_MOVES
from laststand.emulator.simulator.cluster_view import Move
from laststand.emulator.simulator.late_metadata_moves import LATE_METADATA_MOVES
from laststand.emulator.simulator.network_moves import NETWORK_MOVES
from laststand.emulator.simulator.process_moves import PROCESS_MOVES
from laststand.emulator.simulator.progress_moves import PROGRESS_MOVES
from laststand.emulator.simulator.races import RACES
from laststand.emulator.simulator.request_moves import REQUEST_MOVES
from laststand.emulator.simulator.unclean_races import UNCLEAN_RACES
from laststand.emulator.simulator.zookeeper_moves import ZOOKEEPER_MOVES

MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        **PROGRESS_MOVES,
        **NETWORK_MOVES,
        **PROCESS_MOVES,
        **REQUEST_MOVES,
        **LATE_METADATA_MOVES,
        **ADMINISTRATOR_MOVES,
        **RACES,
        **UNCLEAN_RACES,
        **ZOOKEEPER_MOVES,
    }
)
"""By the name that profiles use."""
