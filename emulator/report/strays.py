"""Final logs of brokers that are no longer replicas: nothing reads them, and nothing has deleted them."""

from laststand.emulator.report.spans import changes_until
from laststand.emulator.verification.story.run import PartitionStory, RunStory, StateChange


def strays(partition: PartitionStory, story: RunStory) -> dict[int, StateChange]:
    """Returns the brokers that have such a log, each with the change that removed it from the replicas."""
    found: dict[int, StateChange] = {}
    changes = changes_until(partition, story.end_us)
    for node in sorted({each.node for each in partition.final}) if changes else ():
        if node in changes[-1].replicas:
            continue
        held = [place for place, change in enumerate(changes) if node in change.replicas]
        if held:
            found[node] = changes[held[-1] + 1]
    return found
