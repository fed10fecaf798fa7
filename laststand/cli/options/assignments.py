"""Options of the form ``key=value``, as in Kafka's tools, and the property changes that they request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.types import ConfigResource


def assignments(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Returns the values given to an option, by key.

    Raises:
        UserError: a value is not of the form ``key=value``.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {text}: expected key=value")
        found[key.strip()] = value
    return found


def changes_of(
    resource: "ConfigResource", values: Mapping[str, str], deleted: Sequence[str]
) -> "tuple[admin_messages.AlterableConfig, ...]":
    """Returns the changes of one resource.

    Raises:
        ConfigError: a topic has no such property, or may not have that value.
    """
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.properties import check_topic_properties
    from laststand.emulator.core.types import ConfigResource

    if resource is ConfigResource.TOPIC:
        check_topic_properties(values)
    return (
        *(
            admin_messages.AlterableConfig(name=name, operation=admin_messages.ConfigOperation.SET, value=value)
            for name, value in values.items()
        ),
        *(
            admin_messages.AlterableConfig(name=name, operation=admin_messages.ConfigOperation.DELETE)
            for name in deleted
        ),
    )
