"""Becoming the controller: one transaction that makes ``/controller`` and raises ``/controller_epoch``.

``/controller`` is ephemeral, so a term ends with its session at the latest. Two brokers that try at once see each
other's epoch; an answer that was lost is distinguished from another's victory by name *and* epoch. Kafka's
``KafkaZkClient.registerControllerAndIncrementControllerEpoch`` and ``KafkaController.elect``.
"""

from typing import Final

import msgspec

from laststand.emulator.core.types import BrokerId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.errors import ControllerMovedError
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)

_EPOCH_BEFORE_ANY: Final = ControllerEpoch(0)


class ControllerTerm(msgspec.Struct, frozen=True, kw_only=True):
    """A term: its epoch, and the version of ``/controller_epoch`` that all its writes are checked against."""

    controller_epoch: ControllerEpoch
    epoch_version: NodeVersion


def read_controller() -> operations.Program[BrokerId | None]:
    """Returns the broker in ``/controller``, and watches the node even if it does not exist (``None``)."""
    _, answer = yield (
        operations.Exists(path=paths.CONTROLLER, is_watched=True),
        operations.GetData(path=paths.CONTROLLER),
    )
    return decode_controller(answer.data) if isinstance(answer, operations.DataRead) else None


def register_controller(broker_id: BrokerId, *, now_ms: int) -> operations.Program[ControllerTerm]:
    """Becomes the controller.

    Raises:
        ControllerMovedError: another broker is, or was in between.
    """
    epoch, epoch_stat = yield from _read_or_make_epoch()
    next_epoch = ControllerEpoch(epoch + 1)
    (answer,) = yield (
        operations.Transaction(
            (
                operations.Create(
                    path=paths.CONTROLLER,
                    data=encode_controller(broker_id, now_ms=now_ms),
                    kind=operations.NodeKind.EPHEMERAL,
                ),
                operations.SetData(
                    path=paths.CONTROLLER_EPOCH,
                    data=encode_controller_epoch(next_epoch),
                    version=epoch_stat.version,
                ),
            )
        ),
    )
    if isinstance(answer, operations.TransactionAnswer):
        match answer.answers:
            case (_, operations.DataSet(stat=stat)):
                return ControllerTerm(controller_epoch=next_epoch, epoch_version=stat.version)
    return (yield from _recognise(broker_id, next_epoch))


def _read_or_make_epoch() -> operations.Program[tuple[ControllerEpoch, operations.NodeStat]]:
    while True:
        (answer,) = yield (operations.GetData(path=paths.CONTROLLER_EPOCH),)
        if isinstance(answer, operations.DataRead):
            return decode_controller_epoch(answer.data), answer.stat
        # Another broker may create it in between: the node is read again.
        yield (operations.Create(path=paths.CONTROLLER_EPOCH, data=encode_controller_epoch(_EPOCH_BEFORE_ANY)),)


def _recognise(broker_id: BrokerId, expected_epoch: ControllerEpoch) -> operations.Program[ControllerTerm]:
    """Returns the term if the transaction that was refused had been executed before, its answer lost."""
    controller, epoch = yield (
        operations.GetData(path=paths.CONTROLLER),
        operations.GetData(path=paths.CONTROLLER_EPOCH),
    )
    if not isinstance(controller, operations.DataRead) or not isinstance(epoch, operations.DataRead):
        raise ControllerMovedError
    is_own = decode_controller(controller.data) == broker_id
    if not is_own or decode_controller_epoch(epoch.data) != expected_epoch:
        raise ControllerMovedError
    return ControllerTerm(controller_epoch=expected_epoch, epoch_version=epoch.stat.version)
