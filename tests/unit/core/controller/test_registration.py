"""Registrations that prove that the process before stopped in order (KIP-966)."""

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.controller.registration import Shutdown, judge_shutdown
from laststand.emulator.core.metadata_version import BROKER_FEATURES, LATEST, level_of
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerEpoch, BrokerId, IncarnationId, NodeId

CLEAN, UNCLEAN = Shutdown.CLEAN, Shutdown.UNCLEAN


@pytest.mark.parametrize(
    ("metadata_level", "api_version", "told", "stored", "shutdown"),
    [
        (LATEST, 4, 7, 7, CLEAN),
        (LATEST, 3, 7, 7, CLEAN),
        (LATEST, 2, 7, 7, UNCLEAN),
        (LATEST, 4, 6, 7, UNCLEAN),
        (LATEST, 4, None, 7, UNCLEAN),
        (LATEST, 4, 7, None, UNCLEAN),
        (level_of("4.0-IV1"), 4, 7, 7, CLEAN),
        (level_of("4.0-IV0"), 4, 7, 7, UNCLEAN),
        (level_of("3.9"), 4, 7, 7, UNCLEAN),
    ],
)
def test_a_clean_shutdown_is_proved_by_the_epoch_from_its_metadata_version_on(
    metadata_level: int, api_version: int, told: int | None, stored: int | None, shutdown: Shutdown
) -> None:
    request = messages.BrokerRegistrationRequest(
        broker_id=BrokerId(NodeId(1)),
        cluster_id="c",
        incarnation_id=IncarnationId("i"),
        log_dirs=(),
        features=BROKER_FEATURES,
        previous_broker_epoch=None if told is None else BrokerEpoch(told),
        api_version=api_version,
    )
    epoch = None if stored is None else BrokerEpoch(stored)
    judged = judge_shutdown(
        request, stored_broker_epoch=epoch, metadata_level=metadata_level, switches=Switches(unclean_detection=True)
    )
    assert judged is shutdown
    without = judge_shutdown(
        request, stored_broker_epoch=epoch, metadata_level=metadata_level, switches=Switches(unclean_detection=False)
    )
    assert without is CLEAN
