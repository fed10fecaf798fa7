"""Rules that find strays among the logs at start (KIP-550; in KRaft the image is the list of all replicas).

Strays are found once, by an image that has reached the end offset named when the metadata stream opened. With an
incomplete image, logs of live replicas would count as strays.
"""

from laststand.emulator.core import inputs
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, StrayReason


def stray_reason(log: inputs.LoadedLog, image: MetadataImage, broker_id: BrokerId) -> StrayReason | None:
    """Returns why a log is a stray, or ``None`` if it is assigned to the broker."""
    if log.topic_id is None:
        return StrayReason.NO_TOPIC_ID
    state = image.partitions.get(log.partition)
    if state is None or state.topic_id != log.topic_id:
        return StrayReason.UNKNOWN_TOPIC
    return None if broker_id in state.replicas else StrayReason.NOT_A_REPLICA
