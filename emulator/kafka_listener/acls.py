"""Access control lists: DescribeAcls by the broker's metadata, CreateAcls and DeleteAcls by the controller."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeVar

from laststand.emulator.core import admin_messages
from laststand.emulator.core.acls import (
    NO_AUTHORIZER,
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    Resource,
    ResourceType,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.kafka_listener.administration import TIMED_OUT, forward, result_of
from laststand.emulator.kafka_listener.connection import RefusedError
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served

_ElementT = TypeVar("_ElementT", bound=IntEnum)


def _element(kind: type[_ElementT], number: int) -> _ElementT:
    """Returns an element by its number.

    Raises:
        RefusedError: the element is UNKNOWN, or not one of Kafka's; Kafka then refuses the whole request.
    """
    try:
        return kind(number)
    except ValueError:
        raise RefusedError(f"an access control list with an unknown element: {kind.__name__} {number}") from None


def _filter(asked: Message) -> AclFilter:
    return AclFilter(
        resource_type=_element(ResourceType, asked["resourceTypeFilter"]),
        resource_name=asked["resourceNameFilter"],
        pattern_type=_element(PatternType, asked["patternTypeFilter"]),
        principal=asked["principalFilter"],
        host=asked["hostFilter"],
        operation=_element(AclOperation, asked["operation"]),
        permission=_element(AclPermission, asked["permissionType"]),
    )


def _binding(entry: AccessControlEntry) -> Message:
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation,
        "permissionType": entry.permission,
    }


async def _describe_acls(served: Served, request: ClientRequest) -> Message:
    asked = _filter(request.body)
    if served.permissions is None:
        return {"errorCode": ErrorCode.SECURITY_DISABLED, "errorMessage": NO_AUTHORIZER}
    return {
        "errorCode": ErrorCode.NONE,
        "resources": _by_resource(entry for _, entry in served.broker.image.acls.found(asked)),
    }


def _by_resource(entries: Iterable[AccessControlEntry]) -> list[Message]:
    resources: dict[tuple[Resource, PatternType], list[Message]] = {}
    for entry in entries:
        pattern = (Resource(entry.resource_type, entry.resource_name), entry.pattern_type)
        resources.setdefault(pattern, []).append(_binding(entry))
    return [
        {"resourceType": kind, "resourceName": name, "patternType": pattern_type, "acls": acls}
        for ((kind, name), pattern_type), acls in resources.items()
    ]


async def _create_acls(served: Served, request: ClientRequest) -> Message:
    entries = tuple(
        AccessControlEntry(
            resource_type=_element(ResourceType, each["resourceType"]),
            resource_name=each["resourceName"],
            pattern_type=_element(PatternType, each["resourcePatternType"]),
            principal=each["principal"],
            host=each["host"],
            operation=_element(AclOperation, each["operation"]),
            permission=_element(AclPermission, each["permissionType"]),
        )
        for each in request.body["creations"]
    )
    asked = admin_messages.CreateAclsRequest(acls=entries)
    response = await forward(served, request, asked, admin_messages.CreateAclsResponse)
    if response is None:
        return {"results": [TIMED_OUT] * len(entries)}
    return {"results": [result_of(each.error, each.error_message) for each in response.results]}


async def _delete_acls(served: Served, request: ClientRequest) -> Message:
    filters = tuple(map(_filter, request.body["filters"]))
    asked = admin_messages.DeleteAclsRequest(filters=filters)
    response = await forward(served, request, asked, admin_messages.DeleteAclsResponse)
    if response is None:
        return {"filterResults": [TIMED_OUT] * len(filters)}
    return {
        "filterResults": [
            {
                **result_of(each.error, each.error_message),
                "matchingAcls": [
                    {
                        **_binding(entry),
                        "errorCode": ErrorCode.NONE,
                        "resourceType": entry.resource_type,
                        "resourceName": entry.resource_name,
                        "patternType": entry.pattern_type,
                    }
                    for entry in each.acls
                ],
            }
            for each in response.results
        ]
    }


ACLS: Final[Mapping[int, Handler]] = {
    api_named("DescribeAcls").key: _describe_acls,
    api_named("CreateAcls").key: _create_acls,
    api_named("DeleteAcls").key: _delete_acls,
}
