"""The broker's half of the replication protocol; see ``README.md`` in this folder for the map."""

from laststand.emulator.core.broker.broker import Broker
from laststand.emulator.core.broker.config import BrokerConfig

__all__ = ["Broker", "BrokerConfig"]
