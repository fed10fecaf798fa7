"""The operations that a client may do to a resource, as answers have them: bits by the codes of ``AclOperation``."""

from typing import Final

from laststand.emulator.core.acls import CLUSTER, OPERATIONS, AclOperation, Resource
from laststand.emulator.kafka_listener.requests import ClientRequest, Served

_NOT_ASKED: Final = -2147483648


def authorized_operations(served: Served, request: ClientRequest, resource: Resource, *, is_asked: bool) -> int:
    """Returns the permitted operations for a client that asked for them, else Kafka's number for "not asked".

    Operations on the cluster are shown to clients that may describe it.
    """
    if not is_asked:
        return _NOT_ASKED
    if resource == CLUSTER and not served.might(request, AclOperation.DESCRIBE, CLUSTER):
        return 0
    operations = OPERATIONS[resource.resource_type]
    return sum(1 << operation for operation in operations if served.might(request, operation, resource))
