"""Z5 NotificationsDeleted: once all is quiet, the controller has deleted every notification of an ISR change."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import ZnodeWrite
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "Z5",
    "NotificationsDeleted",
    source="KIP-497, Motivation; Kafka's KafkaController.processIsrChangeNotification",
    needs={Evidence.EVENTS},
    premises={Premise.NOTIFIED, Premise.SETTLED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    settled_at = max((each.event.metadata_offset for each in cluster.events.of(events.ClusterSettled)), default=0)
    left: dict[str, int] = {}
    for notification in cluster.isr_change_notifications:
        match notification.write:
            case ZnodeWrite.CREATED if notification.metadata_offset < settled_at:
                left[notification.path] = notification.metadata_offset
            case ZnodeWrite.DELETED:
                left.pop(notification.path, None)
            case _:
                pass
    for path, at in left.items():
        yield Finding(at, f"{path}, written by {at}, was never deleted, though the cluster had settled")
