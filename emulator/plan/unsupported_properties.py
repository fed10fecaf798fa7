"""Properties that drivers refuse: the simulated disk has no timed flush, and some nodes speak no TLS to each other."""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.properties import TLS_BETWEEN_NODES
from laststand.emulator.plan.actions import NO_TLS_IN_CONTAINERS
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.kafka_refusals import NO_TLS

NO_TIMED_FLUSH: Final = "the simulated disk has no timed flush"
"""The reason, for messages."""

NODE_FLUSH_TIME: Final = "log.flush.interval.ms"
TOPIC_FLUSH_TIME: Final = "flush.ms"

_NO_TLS: Final = {DriverName.DOCKER: NO_TLS_IN_CONTAINERS, DriverName.KAFKA: NO_TLS}


def tls_refusal(properties: Mapping[str, str], driver: DriverName) -> str | None:
    """Returns why the nodes of a driver cannot speak TLS as these properties say; ``None`` if they can or need not."""
    return _NO_TLS.get(driver) if TLS_BETWEEN_NODES.items() <= properties.items() else None
