"""Values in the form of findings' sentences."""

from collections.abc import Iterable

from laststand.emulator.core.types import Acks


def listed(brokers: Iterable[int]) -> str:
    """Returns a list of brokers: ``[1, 2]``."""
    return str(list(brokers))


def span(first: int, last: int) -> str:
    """Returns inclusive offsets: ``offset 7`` or ``offsets 0-9``."""
    return f"offset {first}" if first == last else f"offsets {first}-{last}"


def acks_setting(acks: int) -> str:
    """Returns a producer's setting, written as ``acks=all`` or ``acks=1``."""
    return f"acks={'all' if acks == Acks.ALL else acks}"


def broker(node: int | None) -> str:
    """Returns the words for a broker, or for no broker."""
    return "no broker" if node is None else f"broker {node}"


def words(name: str) -> str:
    """Returns a reason as words: ``broker_fenced`` becomes ``broker fenced``."""
    return name.replace("_", " ")
