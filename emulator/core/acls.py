"""Access control lists: resources, operations, entries, and filters over entries. Numbers are Kafka's."""

from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

WILDCARD: Final = "*"
"""The literal resource name, and the host, that stands for every one."""

WILDCARD_PRINCIPAL: Final = "User:*"
NO_AUTHORIZER: Final = "No Authorizer is configured."
"""Kafka's message beside SECURITY_DISABLED."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class ResourceType(IntEnum):
    """Types of resources; ANY occurs in filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The comparison with an entry's resource name; ANY and MATCH occur in filters only.

    MATCH finds the entries that apply to the filter's name: literal entries of that name, wildcards and prefixes.
    """

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operations on a resource; ANY occurs in filters only."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Verdict of an entry on the operation; ANY occurs in filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


OPERATIONS: Final = {
    ResourceType.TOPIC: frozenset(
        {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {
            AclOperation.READ,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    ResourceType.CLUSTER: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset(
        {AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT}
    ),
    ResourceType.DELEGATION_TOKEN: frozenset({AclOperation.DESCRIBE}),
    ResourceType.USER: frozenset({AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS}),
}
"""The operations of each type of resource (Kafka's ``AclEntry.supportedOperations``)."""


class Resource(NamedTuple):
    """A resource that a request is about; prints as ``TOPIC:orders``."""

    resource_type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.resource_type.name}:{self.name}"


CLUSTER: Final = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


class AccessControlEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One rule: allows or denies a principal an operation on the resources of a pattern, from a host.

    Attributes:
        principal: such as ``User:alice``; ``User:*`` for everybody.
        host: an IP address; ``*`` for every one.
    """

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType = PatternType.LITERAL
    principal: str
    host: str = WILDCARD
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW


class AclFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter over entries; ``None`` and ANY match everything (Kafka's ``AclBindingFilter``)."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Returns whether the filter matches an entry."""
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self._matches_name(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
        )

    def _matches_name(self, entry: AccessControlEntry) -> bool:
        if self.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED) and self.pattern_type != entry.pattern_type:
            return False
        if self.resource_name is None or self.resource_name == entry.resource_name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if entry.pattern_type is PatternType.PREFIXED:
            return self.resource_name.startswith(entry.resource_name)
        return entry.resource_name == WILDCARD


def matching_filter(entry: AccessControlEntry) -> AclFilter:
    """Returns the filter that matches this entry and no other."""
    return AclFilter(**msgspec.structs.asdict(entry))


def entry_problem(entry: AccessControlEntry) -> str | None:
    """Returns why an entry is invalid (Kafka's ``AclControlManager.validateNewAcl``); ``None`` if it is valid."""
    if entry.resource_type is ResourceType.ANY:
        return "Invalid resourceType ANY"
    if entry.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {entry.pattern_type.name}"
    if entry.permission is AclPermission.ANY:
        return "Invalid permissionType ANY"
    if entry.operation is AclOperation.ANY:
        return "Invalid operation ANY"
    if entry.resource_type is ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not entry.resource_name:
        return "Resource name should not be empty"
    kind, separator, name = entry.principal.partition(":")
    if not (separator and kind and name):
        return (
            f"Could not parse principal from `{entry.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None
