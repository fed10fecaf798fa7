"""Options of the form ``key=value``, as Kafka's tools have them."""

from collections.abc import Iterable

from laststand.cli.program.user_error import UserError


def assignments(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Returns what was given to an option, by key.

    Raises:
        UserError: one is no ``key=value``.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {text}: expected key=value")
        found[key.strip()] = value
    return found
