"""Records denied operations: each the first time since the access control lists have changed."""

from typing import Final

from laststand.emulator.core.acls import AclOperation, Resource
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.events import AuthorizationDenied
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId

_REPORTED_MAX: Final = 1000


class RecordingAuthorizer:
    """An authorizer that collects its denials until they are recorded.

    Args:
        authorizer: the authorizer that decides.

    Attributes:
        authorizer: the given one, for checks whose denials are not recorded.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self._reported: set[tuple[str, Requester, AclOperation, Resource]] = set()
        self._reported_at = authorizer.changes
        self._denials: list[AuthorizationDenied] = []

    def is_allowed(
        self, api: str, requester: Requester, operation: AclOperation, resource: Resource, *, cause_id: CauseId
    ) -> bool:
        """Returns whether a principal may do an operation, and records the denial if not."""
        if self.authorizer.is_allowed(requester, operation, resource):
            return True
        if self._reported_at != self.authorizer.changes or len(self._reported) >= _REPORTED_MAX:
            self._reported.clear()
            self._reported_at = self.authorizer.changes
        denial = (api, requester, operation, resource)
        if denial not in self._reported:
            self._reported.add(denial)
            self._denials.append(
                AuthorizationDenied(
                    cause_id=cause_id,
                    api=api,
                    principal=requester.principal,
                    host=requester.host,
                    operation=operation.name,
                    resource=str(resource),
                )
            )
        return False

    @property
    def has_denials(self) -> bool:
        """Denials wait to be recorded."""
        return bool(self._denials)

    def pop_denials(self) -> list[AuthorizationDenied]:
        """Returns what was denied since the last call."""
        denials, self._denials = self._denials, []
        return denials
