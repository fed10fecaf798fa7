"""Decides whether a principal may perform an operation on a resource (Kafka's ``StandardAuthorizer``).

Super users may do everything. Else, of the entries that apply to the resource, the principal, the host and the
operation, one that denies beats one that allows. If none applies, nothing is allowed, unless the resource has no
entries at all and ``allow.everyone.if.no.acl.found`` is set.
"""

from collections.abc import Iterable
from typing import Final

from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclOperation,
    AclPermission,
    PatternType,
    Resource,
    ResourceType,
)
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import Requester

_IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS}),
}
"""The operations of entries that allow an operation, where it is not that one alone."""

_ANY_NAME: Final = "hardcode"
"""A name that stands for a resource which no entry names (Kafka's ``Authorizer.authorizeByResourceType``)."""

_REMEMBERED_MAX: Final = 10_000


class Authorizer:
    """Decides by a node's properties and the ACL entries in its metadata.

    Args:
        properties: of the node.
        acls: of its metadata image.
    """

    def __init__(self, properties: NodeProperties, acls: AclStore) -> None:
        self._super_users = frozenset(filter(None, map(str.strip, properties.super_users.split(";"))))
        self._is_open = properties.allow_everyone_if_no_acl_found
        self._acls = acls
        self._decided: dict[tuple[Requester, AclOperation, Resource], bool] = {}
        self._decided_at = acls.changes

    @property
    def changes(self) -> int:
        """The number of changes of the entries so far."""
        return self._acls.changes

    def is_allowed(self, requester: Requester, operation: AclOperation, resource: Resource) -> bool:
        """Returns whether a principal may perform an operation on a resource."""
        if self._decided_at != self._acls.changes or len(self._decided) > _REMEMBERED_MAX:
            self._decided.clear()
            self._decided_at = self._acls.changes
        question = (requester, operation, resource)
        decision = self._decided.get(question)
        if decision is None:
            decision = self._decided[question] = self._decide(requester, operation, resource)
        return decision

    def _decide(self, requester: Requester, operation: AclOperation, resource: Resource) -> bool:
        if requester.principal in self._super_users:
            return True
        is_known = is_allowed = False
        for entry in self._acls.of(resource):
            is_known = True
            if not _is_about(entry, requester):
                continue
            if entry.permission is AclPermission.DENY:
                if entry.operation in (operation, AclOperation.ALL):
                    return False
            elif _allows(entry, operation):
                is_allowed = True
        return is_allowed or (self._is_open and not is_known)

    def is_allowed_on_any(self, requester: Requester, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Returns whether a principal may perform an operation on any resource of a type.

        Kafka's ``Authorizer.authorizeByResourceType``: only entries of this operation, or of all operations, count.
        """
        if self.is_allowed(requester, operation, Resource(resource_type, _ANY_NAME)):
            return True
        entries = [
            entry
            for entry in self._acls.of_type(resource_type)
            if _is_about(entry, requester) and entry.operation in (operation, AclOperation.ALL)
        ]
        denied = [entry for entry in entries if entry.permission is AclPermission.DENY]
        return any(
            entry.permission is AclPermission.ALLOW and not any(_covers(other, entry) for other in denied)
            for entry in entries
        )

    def unseen(self, requester: Requester, topics: Iterable[str]) -> frozenset[str]:
        """Returns the topics that a principal may not describe."""
        return frozenset(
            name
            for name in topics
            if not self.is_allowed(requester, AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, name))
        )


def authorizer_of(properties: NodeProperties, acls: AclStore) -> Authorizer | None:
    """Returns the authorizer that ``authorizer.class.name`` asks for; ``None`` where no permission is needed."""
    return Authorizer(properties, acls) if properties.authorizer_class_name else None


def _is_about(entry: AccessControlEntry, requester: Requester) -> bool:
    return entry.principal in (requester.principal, WILDCARD_PRINCIPAL) and entry.host in (requester.host, WILDCARD)


def _allows(entry: AccessControlEntry, operation: AclOperation) -> bool:
    if entry.operation is AclOperation.ALL:
        return True
    implying = _IMPLIED_BY.get(operation)
    return entry.operation is operation if implying is None else entry.operation in implying


def _covers(denied: AccessControlEntry, allowed: AccessControlEntry) -> bool:
    """Returns whether an entry denies every resource that another one allows."""
    if denied.pattern_type is PatternType.PREFIXED:
        return allowed.resource_name.startswith(denied.resource_name)
    is_same = denied.resource_name == allowed.resource_name and allowed.pattern_type is PatternType.LITERAL
    return denied.resource_name == WILDCARD or is_same
