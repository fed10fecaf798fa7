"""The tables of permissions in docs/security.md are those that the code goes by."""

from laststand.emulator.core.authorizer.request_guard import STREAM_API
from laststand.emulator.core.authorizer.requirements import FORWARDING, METADATA_STREAM, REQUIREMENTS, Requirement
from laststand.emulator.core.quorum_controller.quorum_guard import OPERATIONS
from laststand.emulator.kafka_listener.permissions import RULES
from tests.unit.docs.places import ROOT

DOCUMENT = ROOT / "docs/security.md"


def _needs(requirement: Requirement) -> str:
    """Returns a requirement in words."""
    words = f"{requirement.operation.name} of {requirement.subject.value}"
    if requirement.on_cluster is not None:
        words += f", or {requirement.on_cluster.name} of the cluster"
    if requirement.on_any_topic is not None:
        words += f", or {requirement.on_any_topic.name} of any topic"
    if requirement.of_followers is not None:
        words += f"; of followers {requirement.of_followers.name} of the cluster"
    return words


def expected() -> list[str]:
    """Returns the rows of both tables."""
    between = [
        f"| {kind.__name__.removesuffix('Request')} | {_needs(requirement)} |"
        for kind, requirement in REQUIREMENTS.items()
    ]
    between += [
        f"| {kind.__name__.removesuffix('Request')} | {operation.name} of the cluster |"
        for kind, operation in OPERATIONS.items()
    ]
    between += [
        f"| {STREAM_API}, the metadata log | {_needs(METADATA_STREAM)} |",
        f"| a request that is passed on for a client | {_needs(FORWARDING)} |",
    ]
    of_clients = [
        f"| {name} | {rule.needs} | {rule.hides or ('—' if rule.needs == 'nothing' else 'an error')} |"
        for name, rule in RULES.items()
    ]
    return [*between, *of_clients]


def test_the_tables_are_those_of_the_code() -> None:
    section = DOCUMENT.read_text().partition("## Permissions\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and " Needs |" not in line]
    assert rows == expected()
