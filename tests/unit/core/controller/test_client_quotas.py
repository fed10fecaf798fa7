"""AlterClientQuotas at a controller: what is written, and what is refused."""

import math

import pytest

from laststand.emulator.core import admin_messages as admin
from laststand.emulator.core import events
from laststand.emulator.core.client_quotas import QuotaEntity, QuotaEntityPart, quota_entity
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from tests.unit.core.controller.controller_driver import ControllerDriver

APP = quota_entity(client_id="app")


def driver() -> ControllerDriver:
    made = ControllerDriver(Switches(), NodeProperties(auto_leader_rebalance_enable=False))
    made.boot(0)
    return made


def entry(entity: QuotaEntity = APP, **values: float | None) -> admin.QuotaAlteration:
    ops = tuple(admin.QuotaOperation(key=key, value=value) for key, value in values.items())
    return admin.QuotaAlteration(entity=entity, ops=ops)


def alter(made: ControllerDriver, *entries: admin.QuotaAlteration, validate_only: bool = False) -> list[str]:
    request = admin.AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    results = made.ask(request, admin.AlterClientQuotasResponse).results
    assert all((result.error is ErrorCode.INVALID_REQUEST) is bool(result.error_message) for result in results)
    return [result.error_message for result in results]


def test_quotas_are_set_changed_and_removed() -> None:
    made = driver()
    assert alter(made, entry(producer_byte_rate=8000.0, request_percentage=12.5)) == [""]
    assert made.image.client_quotas.of(APP) == {"producer_byte_rate": 8000.0, "request_percentage": 12.5}
    alter(made, entry(producer_byte_rate=None, request_percentage=20.0))
    assert made.image.client_quotas.of(APP) == {"request_percentage": 20.0}


def test_what_is_so_already_is_not_written_again() -> None:
    made = driver()
    alter(made, entry(producer_byte_rate=8000.0))
    end = made.image.next_offset
    alter(made, entry(producer_byte_rate=8000.0, consumer_byte_rate=None))
    assert made.image.next_offset == end


def test_validate_only_writes_nothing() -> None:
    made = driver()
    assert alter(made, entry(producer_byte_rate=8000.0), validate_only=True) == [""]
    assert not made.image.client_quotas


def test_the_record_leaves_an_event() -> None:
    made = driver()
    alter(made, entry(producer_byte_rate=8000.0))
    written = [each.record for each in made.events if isinstance(each, events.OtherRecordCommitted)]
    assert written == ["ClientQuotaRecord"]


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (entry(no_such=1.0), "Invalid configuration key no_such"),
        (entry(connection_creation_rate=1.0), "Invalid configuration key connection_creation_rate"),
        (entry(quota_entity(ip="10.0.0.1"), producer_byte_rate=1.0), "Invalid configuration key producer_byte_rate"),
        (entry(producer_byte_rate=1.5), "Configuration producer_byte_rate must be a Long value"),
        (entry(producer_byte_rate=math.nan), "Configuration producer_byte_rate must be a finite number"),
        (entry(producer_byte_rate=math.inf), "Configuration producer_byte_rate must be a finite number"),
        (entry(request_percentage=-math.inf), "Configuration request_percentage must be a finite number"),
        (entry(()), "Invalid empty client quota entity"),
        (entry(quota_entity(ip="10.0.0.1", user="alice")), "Invalid empty client quota entity"),
        (entry((QuotaEntityPart("group", "g"),)), "Unhandled client quota entity type: group"),
        (entry(quota_entity(user="")), "Empty user not supported"),
        (entry(quota_entity(ip="no address")), "no address is not a valid IP or resolvable host."),
        (
            admin.QuotaAlteration(entity=APP, ops=2 * (admin.QuotaOperation(key="k", value=1.0),)),
            "Duplicate quota key k not updating quota for this entity",
        ),
    ],
)
def test_what_kafka_refuses_and_what_is_no_finite_number_is_refused(asked: admin.QuotaAlteration, problem: str) -> None:
    made = driver()
    assert alter(made, asked, entry(quota_entity(user="bob"), producer_byte_rate=1.0)) == [problem, ""]
    assert not made.image.client_quotas.of(asked.entity)


def test_an_entity_that_is_named_twice_is_refused() -> None:
    made = driver()
    assert all(alter(made, entry(producer_byte_rate=1.0), entry(consumer_byte_rate=1.0)))
    assert not made.image.client_quotas
