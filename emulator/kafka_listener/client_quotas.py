"""Quotas of clients, as administrators ask for them: described by the broker's metadata, changed by the controller."""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, QuotaEntityPart, QuotaFilter
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.kafka_listener.administration import TIMED_OUT, forward, result_of
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
"""Types of matches: of a name, of the default, of any name of a type."""


async def _describe_quotas(served: Served, request: ClientRequest) -> Message:
    body = request.body
    problem = _filter_problem(body["components"])
    if problem is not None:
        error, message = problem
        return {"errorCode": error, "errorMessage": message, "entries": None}
    asked = QuotaFilter(
        exact=frozenset(
            QuotaEntityPart(component["entityType"], component["match"])
            for component in body["components"]
            if component["matchType"] != _SPECIFIED
        ),
        types=frozenset(
            component["entityType"] for component in body["components"] if component["matchType"] == _SPECIFIED
        ),
        is_strict=body["strict"],
    )
    return {
        "errorMessage": "",
        "entries": [
            {
                "entity": [{"entityType": part.entity_type, "entityName": part.entity_name} for part in entity],
                "values": [{"key": key, "value": value} for key, value in quotas.items()],
            }
            for entity, quotas in served.broker.image.client_quotas.found(asked)
        ],
    }


def _filter_problem(components: list[Message]) -> tuple[ErrorCode, str] | None:
    types = [component["entityType"] for component in components]
    for component in components:
        kind, match_type, match = component["entityType"], component["matchType"], component["match"]
        if not kind:
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if types.count(kind) > 1:
            return ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
        if kind not in ENTITY_TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        if match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
            return ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}"
        if (match_type == _EXACT) is (match is None):
            return ErrorCode.INVALID_REQUEST, f"Request specified match type {match_type} with match string {match}."
    if IP in types and (USER in types or CLIENT_ID in types):
        message = "IP filter component should not be used with user or clientId filter component."
        return ErrorCode.INVALID_REQUEST, f"Invalid entity filter component combination. {message}"
    return None


async def _alter_quotas(served: Served, request: ClientRequest) -> Message:
    entries = tuple(
        admin_messages.QuotaAlteration(
            entity=tuple(QuotaEntityPart(kind, name) for kind, name in sorted(_names(entry).items())),
            ops=tuple(
                admin_messages.QuotaOperation(key=op["key"], value=None if op["remove"] else op["value"])
                for op in entry["ops"]
            ),
        )
        for entry in request.body["entries"]
    )
    asked = admin_messages.AlterClientQuotasRequest(entries=entries, validate_only=request.body["validateOnly"])
    response = await forward(served, request, asked, admin_messages.AlterClientQuotasResponse)
    results = (
        [TIMED_OUT] * len(entries)
        if response is None
        else [result_of(each.error, each.error_message) for each in response.results]
    )
    return {
        "entries": [
            {**result, "entity": entry["entity"]}
            for entry, result in zip(request.body["entries"], results, strict=True)
        ]
    }


def _names(entry: Message) -> dict[str, str | None]:
    """Returns the names of an entity by its types; if a type occurs twice, the last one counts."""
    return {part["entityType"]: part["entityName"] for part in entry["entity"]}


CLIENT_QUOTAS: Final[Mapping[int, Handler]] = {
    api_named("DescribeClientQuotas").key: _describe_quotas,
    api_named("AlterClientQuotas").key: _alter_quotas,
}
