"""Access control entries: added, described and removed (Kafka's ``AclControlManager``)."""

import msgspec

from laststand.emulator.core import admin_messages, records
from laststand.emulator.core.acls import NO_AUTHORIZER, AccessControlEntry, AclFilter, entry_problem, matching_filter
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import MetadataOffset


class AclOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer about entries, the entries that are removed, and what is written."""

    error: ErrorCode
    message: str = ""
    acls: tuple[AccessControlEntry, ...] = ()
    decisions: tuple[Decision, ...] = ()


_DISABLED = AclOutcome(error=ErrorCode.SECURITY_DISABLED, message=NO_AUTHORIZER)


def create_acl(view: ClusterView, entry: AccessControlEntry) -> AclOutcome:
    """Decides on a new entry; one that is there already writes nothing."""
    if not view.properties.authorizer_class_name:
        return _DISABLED
    problem = entry_problem(entry)
    if problem is not None:
        return AclOutcome(error=ErrorCode.INVALID_REQUEST, message=problem)
    if view.image.acls.found(matching_filter(entry)):
        return AclOutcome(error=ErrorCode.NONE)
    decision = Decision(record=records.AccessControlEntryRecord(entry=entry))
    return AclOutcome(error=ErrorCode.NONE, decisions=(decision,))


def delete_acls(view: ClusterView, asked: AclFilter) -> AclOutcome:
    """Decides on the removal of what a filter matches."""
    if not view.properties.authorizer_class_name:
        return _DISABLED
    found = view.image.acls.found(asked)
    return AclOutcome(
        error=ErrorCode.NONE,
        acls=tuple(entry for _, entry in found),
        decisions=tuple(
            Decision(record=records.RemoveAccessControlEntryRecord(acl_id=MetadataOffset(acl_id)))
            for acl_id, _ in found
        ),
    )


def describe_acls(view: ClusterView, asked: AclFilter) -> admin_messages.DescribeAclsResponse:
    """Returns the entries that a filter matches."""
    if not view.properties.authorizer_class_name:
        return admin_messages.DescribeAclsResponse(error=_DISABLED.error, error_message=_DISABLED.message)
    acls = tuple(entry for _, entry in view.image.acls.found(asked))
    return admin_messages.DescribeAclsResponse(error=ErrorCode.NONE, acls=acls)
