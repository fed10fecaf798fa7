"""The access control entries of a metadata image, found by the resource that they apply to."""

from collections.abc import Iterator

from laststand.emulator.core.acls import (
    WILDCARD,
    AccessControlEntry,
    AclFilter,
    PatternType,
    Resource,
    ResourceType,
)


class AclStore:
    """Entries by their ids.

    Attributes:
        changes: number of changes so far, by which users of the store know whether their cached results still hold.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._entries: dict[int, AccessControlEntry] = {}
        self._literal: dict[Resource, dict[int, AccessControlEntry]] = {}
        self._prefixed: dict[Resource, dict[int, AccessControlEntry]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, acl_id: int) -> bool:
        return acl_id in self._entries

    def add(self, acl_id: int, entry: AccessControlEntry) -> None:
        """Adds an entry."""
        self.changes += 1
        self._entries[acl_id] = entry
        self._table(entry).setdefault(Resource(entry.resource_type, entry.resource_name), {})[acl_id] = entry

    def remove(self, acl_id: int) -> None:
        """Removes an entry that is there."""
        self.changes += 1
        entry = self._entries.pop(acl_id)
        table, place = self._table(entry), Resource(entry.resource_type, entry.resource_name)
        del table[place][acl_id]
        if not table[place]:
            del table[place]

    def entries(self) -> dict[int, AccessControlEntry]:
        """Returns a copy of all entries by their ids."""
        return dict(self._entries)

    def restore(self, entries: dict[int, AccessControlEntry]) -> None:
        """Resets the store to entries that ``entries`` once returned."""
        for acl_id in self._entries.keys() - entries.keys():
            self.remove(acl_id)
        for acl_id in entries.keys() - self._entries.keys():
            self.add(acl_id, entries[acl_id])

    def _table(self, entry: AccessControlEntry) -> dict[Resource, dict[int, AccessControlEntry]]:
        return self._prefixed if entry.pattern_type is PatternType.PREFIXED else self._literal

    def found(self, asked: AclFilter) -> list[tuple[int, AccessControlEntry]]:
        """Returns the ids and entries that a filter matches, in the order in which they were added."""
        return [(acl_id, entry) for acl_id, entry in self._entries.items() if asked.matches(entry)]

    def of(self, resource: Resource) -> Iterator[AccessControlEntry]:
        """Yields the entries that apply to a resource."""
        kind, name = resource
        yield from self._literal.get(resource, {}).values()
        if name != WILDCARD:
            yield from self._literal.get(Resource(kind, WILDCARD), {}).values()
        if self._prefixed:
            for end in range(1, len(name) + 1):
                yield from self._prefixed.get(Resource(kind, name[:end]), {}).values()

    def of_type(self, resource_type: ResourceType) -> Iterator[AccessControlEntry]:
        """Yields the entries about any resource of a type."""
        return (entry for entry in self._entries.values() if entry.resource_type is resource_type)
