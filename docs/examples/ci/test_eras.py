"""A test in Python: what one era loses, another one keeps."""

from pathlib import Path

import laststand

STORY = "kip-966/last-replica-standing"


def test_eligible_leader_replicas_keep_what_was_lost_without(tmp_path: Path) -> None:
    """The last member of the ISR loses power, and with it what it had not flushed."""
    before = laststand.run(STORY, era="kafka-3.9", driver="simulator", store=tmp_path / "store")
    after = laststand.run(STORY, era="kip-966", driver="simulator", store=tmp_path / "store")
    assert before.lost_records > 0
    assert after.lost_records == 0, after.misses
