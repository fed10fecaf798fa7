"""CreateAcls and DeleteAcls as calls in Kafka's protocol, whose numbers the core's enums have."""

from kio.schema.create_acls.v3 import request as create_acls
from kio.schema.create_acls.v3 import response as acls_created
from kio.schema.delete_acls.v3 import request as delete_acls
from kio.schema.delete_acls.v3 import response as acls_deleted
from kio.static.primitive import i8

from laststand.emulator.core import admin_messages
from laststand.emulator.core.acls import (
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from laststand.emulator.kafka.calls import Call, call_of, error_of


def create_acls_call(request: admin_messages.CreateAclsRequest) -> Call:
    """Returns the call that adds entries."""
    return call_of(
        create_acls.CreateAclsRequest(creations=tuple(map(_creation, request.acls))),
        acls_created.CreateAclsResponse,
        _created,
    )


def _creation(entry: AccessControlEntry) -> create_acls.AclCreation:
    return create_acls.AclCreation(
        resource_type=i8(entry.resource_type),
        resource_name=entry.resource_name,
        resource_pattern_type=i8(entry.pattern_type),
        principal=entry.principal,
        host=entry.host,
        operation=i8(entry.operation),
        permission_type=i8(entry.permission),
    )


def _created(response: acls_created.CreateAclsResponse) -> admin_messages.CreateAclsResponse:
    return admin_messages.CreateAclsResponse(
        results=tuple(
            admin_messages.AclResult(error=error_of(each.error_code), error_message=each.error_message or "")
            for each in response.results
        )
    )


def delete_acls_call(request: admin_messages.DeleteAclsRequest) -> Call:
    """Returns the call that removes what filters match."""
    return call_of(
        delete_acls.DeleteAclsRequest(filters=tuple(map(_filter, request.filters))),
        acls_deleted.DeleteAclsResponse,
        _deleted,
    )


def _filter(asked: AclFilter) -> delete_acls.DeleteAclsFilter:
    return delete_acls.DeleteAclsFilter(
        resource_type_filter=i8(asked.resource_type),
        resource_name_filter=asked.resource_name,
        pattern_type_filter=i8(asked.pattern_type),
        principal_filter=asked.principal,
        host_filter=asked.host,
        operation=i8(asked.operation),
        permission_type=i8(asked.permission),
    )


def _deleted(response: acls_deleted.DeleteAclsResponse) -> admin_messages.DeleteAclsResponse:
    return admin_messages.DeleteAclsResponse(
        results=tuple(
            admin_messages.DeletedAcls(
                error=error_of(result.error_code),
                error_message=result.error_message or "",
                acls=tuple(map(_entry, result.matching_acls)),
            )
            for result in response.filter_results
        )
    )


def _entry(deleted: acls_deleted.DeleteAclsMatchingAcl) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=ResourceType(deleted.resource_type),
        resource_name=deleted.resource_name,
        pattern_type=PatternType(deleted.pattern_type),
        principal=deleted.principal,
        host=deleted.host,
        operation=AclOperation(deleted.operation),
        permission=AclPermission(deleted.permission_type),
    )
