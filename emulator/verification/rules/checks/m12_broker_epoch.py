"""M12 BrokerEpoch: each registration of a broker gets an epoch of its own, higher than all before."""

from collections import Counter
from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Finding, Premise, cluster_check


@cluster_check("M12", "BrokerEpoch", source="KIP-380; KIP-631, broker epoch", premises={Premise.TWO_REGISTRATIONS})
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    last: dict[int, int] = {}
    holders = Counter(registration.event.broker_epoch for registration in cluster.registrations)
    for registration in cluster.registrations:
        event = registration.event
        before = last.get(event.broker_id)
        if before is not None and event.broker_epoch <= before:
            problem = f", after epoch {before}"
        elif holders[event.broker_epoch] > 1:
            problem = ", which another registration has as well"
        else:
            problem = None
        if problem is not None:
            yield Finding(
                event.metadata_offset,
                f"broker {event.broker_id} was registered at metadata offset {event.metadata_offset} under epoch "
                f"{event.broker_epoch}{problem}",
            )
        last[event.broker_id] = event.broker_epoch
