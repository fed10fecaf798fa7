"""The end of a broker's ZooKeeper session while its process lives: another client closes it."""

from typing import Final

from laststand.chaos.play.barriers import Observation
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.zookeeper.metadata import ZooKeeperMetadata
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.zookeeper.takeover import end_session

_SEEN_WITHIN_S: Final = 10.0


@executes(actions.ExpireSession)
async def expire_session(target: ProcessTarget, action: actions.ExpireSession[NodeId]) -> actions.Outcome:
    """Ends sessions, and waits until the server's log shows that the brokers' nodes were deleted with them.

    Raises:
        TakeoverError: the server did not let a session be ended.
        StepError: a broker's node stayed.
    """
    metadata = target.metadata
    if not isinstance(metadata, ZooKeeperMetadata):
        return actions.no_op("there is no ZooKeeper")
    await metadata.committed_end()
    registered = {}
    for node_id in map(BrokerId, action.nodes):
        registration, session_id = target.image.brokers.get(node_id), metadata.session_of(node_id)
        if registration is None or session_id is None:
            return actions.no_op(f"broker {node_id} has no session")
        registered[node_id] = (registration.broker_epoch, session_id)
    address = target.cluster.direct_addresses()[target.cluster.layout.controller_id]
    for _, session_id in registered.values():
        await end_session(address, session_id)

    def gone() -> Observation:
        brokers = target.image.brokers
        left = [
            node_id
            for node_id, (broker_epoch, _) in registered.items()
            if node_id in brokers and brokers[node_id].broker_epoch == broker_epoch
        ]
        return Observation(reached=not left, text=f"the nodes of brokers {left} are there still")

    await target.wait(gone, timeout_s=_SEEN_WITHIN_S)
    return actions.effective(
        "; ".join(f"session {session:x} of broker {node} is over" for node, (_, session) in registered.items())
    )
