"""The order in which reports show partitions."""

from laststand.emulator.report.gone import lost_of
from laststand.emulator.report.words import ACKS_ALL
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.verdict.report import VerdictReport


def worst_first(verdict: VerdictReport, story: RunStory) -> list[PartitionStory]:
    """Returns partitions: those that lost most acks=all records first, the others by the number of records written."""
    counts = {(each.topic, each.partition): each for each in verdict.partitions}

    def place(partition: PartitionStory) -> tuple[int, int, str, int]:
        acked, lost = lost_of(counts.get((partition.topic, partition.partition)), ACKS_ALL)
        return -lost, -acked, partition.topic, partition.partition

    return sorted(story.partitions, key=place)
