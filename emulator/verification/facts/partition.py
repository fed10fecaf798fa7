"""Facts of one partition: its evidence, and the batches that were acknowledged, lost or consumed."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.acked_batches import acked_batches
from laststand.emulator.verification.facts.batches import AckedBatch, ConsumedBatch, LostBatch
from laststand.emulator.verification.facts.deletions import wanted_log_start
from laststand.emulator.verification.facts.lost_batches import lost_batches
from laststand.emulator.verification.facts.partition_evidence import PartitionEvidence
from laststand.emulator.verification.facts.unplaced_batches import UnplacedBatches, unplaced_batches
from laststand.emulator.verification.tables.columns import Mask, Table
from laststand.emulator.verification.tables.timeline import CollectedEvent

ACKS_ALL: Final = -1
NO_ACKS: Final = 0
"""Producers with acks=0, whose records are never acknowledged."""


class PartitionFacts(PartitionEvidence):
    """Facts about one partition, as checks ask for them."""

    @cached_property
    def acked(self) -> Table[AckedBatch]:
        """Every acknowledged batch with an offset, except those of deleted topics."""
        return acked_batches(self)

    @cached_property
    def missing(self) -> tuple[LostBatch, ...]:
        """Acknowledged batches that are not where they must be, including those that D1 exempts."""
        return tuple(lost_batches(self, self.acked))

    @cached_property
    def lost(self) -> tuple[LostBatch, ...]:
        """Acknowledged batches that are not where they must be."""
        return tuple(each for each in self.missing if each.exempted_by is None)

    @cached_property
    def unplaced(self) -> UnplacedBatches:
        """Acknowledged batches without an offset, in a run without a plan whose only evidence is from clients."""
        return unplaced_batches(self)

    @cached_property
    def unexplained_deletions(self) -> int:
        """The number of acknowledged records below all final logs' starts, or without a log, that no step deleted."""
        acked = self.acked.only(self.acked["acks"] != NO_ACKS)
        topics, wanted = self.topics(acked), wanted_log_start(self.cluster, str(self))
        is_explained = np.full(len(acked), not self.is_all_read)
        for log in self.final_logs:
            is_there = acked["last_offset"] >= log.log_start_offset
            is_wanted = np.ones_like(is_there) if wanted is None else acked["last_offset"] < wanted
            is_explained |= (topics == self.topic_number(log.topic_id)) & (is_there | is_wanted)
        return int(acked["record_count"][~is_explained].sum())

    @cached_property
    def answers(self) -> Mapping[tuple[int, int], list[CollectedEvent[events.ProduceAnswered]]]:
        """Answers without error to sends of lost batches, by node and base offset."""
        answers: dict[tuple[int, int], list[CollectedEvent[events.ProduceAnswered]]] = {}
        answered = self.answered
        lost = np.array([each.batch.base_offset for each in self.lost], np.int64)
        for each in answered.rows(np.isin(answered["base_offset"], lost)):
            answers.setdefault((each.node, each.event.base_offset or 0), []).append(each)
        return answers

    def consumed(self, places: Mask) -> tuple[ConsumedBatch, ...]:
        """Returns these batches of ``received``, each once per consumer and leader epoch."""
        last_id = self.last_topic_id
        return tuple(
            dict.fromkeys(
                ConsumedBatch(
                    batch.topic_id or last_id,
                    batch.process,
                    batch.served_epoch,
                    batch.base_offset,
                    batch.last_offset,
                    batch.leader_epoch,
                    batch.crc,
                    batch.producer,
                    batch.first_record_id,
                    batch.record_count,
                )
                for batch in self.received.rows(places)
            )
        )
