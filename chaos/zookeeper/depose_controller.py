"""The end of a controller's term while its session continues: ``/controller`` is deleted."""

from typing import Final

from laststand.chaos.play.barriers import Observation
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.zookeeper.harness_client import harness_client
from laststand.chaos.zookeeper.metadata import ZooKeeperMetadata
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.plan import actions

_SEEN_WITHIN_S: Final = 10.0


@executes(actions.DeposeController)
async def depose_controller(target: ProcessTarget, _: actions.DeposeController) -> actions.Outcome:
    """Deletes ``/controller``, and waits until the server's log has the deletion, or the node of another controller.

    Raises:
        NoZooKeeperError: the server does not answer.
        StepError: the node stayed.
    """
    metadata = target.metadata
    if not isinstance(metadata, ZooKeeperMetadata):
        return actions.no_op("there is no ZooKeeper")
    await metadata.committed_end()
    before = metadata.controller_node()
    address = target.cluster.direct_addresses()[target.cluster.layout.controller_id]
    async with harness_client(address, timeout_ms=target.session_timeout_ms) as client:
        answer = await client.run(_deletion())
    if before is None or operations.failure(answer) is not None:
        return actions.no_op("nobody is controller")

    def gone() -> Observation:
        return Observation(reached=metadata.controller_node() != before, text=f"{paths.CONTROLLER} is there still")

    await target.wait(gone, timeout_s=_SEEN_WITHIN_S)
    return actions.effective(f"{paths.CONTROLLER} of zxid {before} is gone")


def _deletion() -> operations.Program[operations.StepAnswer]:
    (answer,) = yield (operations.Delete(path=paths.CONTROLLER, version=None),)
    return answer
