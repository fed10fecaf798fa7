"""Values that stand in a vector and in no message: a leader recovery state by a number that nobody knows.

Kafka's controllers notice when they use it, and answer UNKNOWN_SERVER_ERROR for the whole request; here the request is
refused where it is decoded. Either way no partition is looked at.
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, LeaderRecoveryState
from laststand.emulator.rpc.apis import CONTROLLER_API_OF
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.rpc.generated import controller_pb2

_API: Final = CONTROLLER_API_OF[messages.AlterPartitionRequest]


def recovery_state(value: str | int) -> LeaderRecoveryState:
    """Returns a recovery state by Kafka's name or number; for an unknown number, RECOVERED."""
    if isinstance(value, str):
        return LeaderRecoveryState[value]
    return LeaderRecoveryState(value) if value in set(LeaderRecoveryState) else LeaderRecoveryState.RECOVERED


def refusal_of_bytes(
    request: messages.AlterPartitionRequest, value: str | int
) -> messages.AlterPartitionResponse | None:
    """Returns how a request with this recovery state is refused before a controller has it; ``None`` if it is read."""
    if isinstance(value, str):
        return None
    message = controller_pb2.AlterPartitionRequest()
    message.ParseFromString(_API.encode_request(request, cause_id=CauseId("vector")))
    message.partitions[0].leader_recovery_state = value
    try:
        _API.decode_request(message.SerializeToString())
    except CodecError:
        return messages.AlterPartitionResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    return None
