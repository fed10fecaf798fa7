"""Properties that are refused, by drivers or by clusters.

The simulated disk has no timed flush, Kafka has no unclean recovery, some nodes use no TLS between each other, and
several controllers need permissions before they can elect one.
"""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import CLUSTER, AclOperation
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.properties import TLS_BETWEEN_NODES, node_properties
from laststand.emulator.core.requester import Requester, node_principal
from laststand.emulator.plan.actions import NO_TLS_IN_CONTAINERS
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.kafka_refusals import NO_TLS
from laststand.emulator.plan.nodes import controller_ids

NO_TIMED_FLUSH: Final = "the simulated disk has no timed flush"
"""The reason, for messages."""

NODE_FLUSH_TIME: Final = "log.flush.interval.ms"
TOPIC_FLUSH_TIME: Final = "flush.ms"

NO_UNCLEAN_RECOVERY: Final = "Kafka has no unclean recovery"
"""The reason, for messages."""

RECOVERY_MANAGER: Final = "unclean.recovery.manager.enabled"
RECOVERY_STRATEGY: Final = "unclean.recovery.strategy"

_NO_TLS: Final = {DriverName.DOCKER: NO_TLS_IN_CONTAINERS, DriverName.KAFKA: NO_TLS}


def tls_refusal(properties: Mapping[str, str], driver: DriverName) -> str | None:
    """Returns why the nodes of a driver cannot use TLS as these properties ask; ``None`` if they can or need not."""
    return _NO_TLS.get(driver) if TLS_BETWEEN_NODES.items() <= properties.items() else None


def voters_refusal(properties: Mapping[str, str], controllers: int) -> str | None:
    """Returns why several controllers can never elect a leader: until one leads, no entry permits their requests."""
    if controllers == 1 or not properties.get("authorizer.class.name"):
        return None
    authorizer = Authorizer(node_properties(properties), AclStore())
    principals = map(node_principal, controller_ids(controllers))
    denied = [
        each for each in principals if not authorizer.is_allowed(Requester(each), AclOperation.CLUSTER_ACTION, CLUSTER)
    ]
    return f"super.users lacks {', '.join(denied)}: they could not vote for each other" if denied else None
