"""Periodic tasks of a broker, and their times."""

import msgspec

from laststand.emulator.core import effects
from laststand.emulator.core.broker.replicas.isr import proposed_isr
from laststand.emulator.core.broker.replicas.maintenance import Maintenance
from laststand.emulator.core.properties import NodeProperties
from tests.unit.core.broker.hosting import FIRST, LAG_MS, NAME, OWN, SECOND, Hosting

PROPERTIES = NodeProperties()


def started(hosting: Hosting) -> Maintenance:
    maintenance = Maintenance(hosting.config, hosting.hosted)
    assert maintenance.timers.earliest_ms is None
    maintenance.start(hosting.turn())
    return maintenance


def test_members_that_lag_are_dropped_at_every_half_of_the_lag_time() -> None:
    hosting = Hosting(records=1)
    hosting.lead(OWN, FIRST, SECOND)
    began_ms = hosting.now_ms
    maintenance = started(hosting)
    hosting.now_ms = began_ms + LAG_MS
    hosting.fetch(FIRST, 1)
    maintenance.handle_timer(hosting.turn())
    assert proposed_isr(hosting.partition.isr_state) == (OWN, FIRST, SECOND)
    hosting.now_ms += LAG_MS // 2
    maintenance.handle_timer(hosting.turn())
    assert proposed_isr(hosting.partition.isr_state) == (OWN, FIRST)


def test_high_watermarks_are_written_at_their_interval_and_only_when_one_moved() -> None:
    hosting = Hosting()
    hosting.lead(OWN)
    maintenance = started(hosting)
    interval_ms = PROPERTIES.replica_high_watermark_checkpoint_interval_ms
    written = []
    for appended in (1, 0, 1):
        if appended:
            hosting.append()
        hosting.now_ms += interval_ms
        turn = hosting.turn()
        maintenance.handle_timer(turn)
        written.append([effect for effect in turn.effects() if isinstance(effect, effects.WriteHighWatermarks)])
    high_watermarks = [effect.high_watermarks for effects in written for effect in effects]
    assert high_watermarks == [((NAME, 1),), ((NAME, 2),)]
    assert written[1] == []


def test_checkpoints_of_logs_are_written_at_their_interval() -> None:
    hosting = Hosting()
    maintenance = started(hosting)
    hosting.now_ms += PROPERTIES.log_flush_offset_checkpoint_interval_ms - 1
    early = hosting.turn()
    maintenance.handle_timer(early)
    hosting.now_ms += 1
    due = hosting.turn()
    maintenance.handle_timer(due)
    assert effects.WriteLogCheckpoints() not in early.effects()
    assert effects.WriteLogCheckpoints() in due.effects()


def test_a_lag_time_of_almost_nothing_is_still_looked_at_only_once_a_millisecond() -> None:
    hosting = Hosting()
    hosting.config = msgspec.structs.replace(hosting.config, properties=NodeProperties(replica_lag_time_max_ms=1))
    assert started(hosting).timers.earliest_ms == hosting.now_ms + 1
