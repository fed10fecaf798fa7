"""The partition that a group or a transactional id belongs to, whose leader is its coordinator."""

from laststand.emulator.core.types import TopicPartition


def partition_of(key: str, topic: str, partition_count: int) -> TopicPartition:
    """Returns the partition of a key, by Java's string hash (Kafka's ``Utils.abs``)."""
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    magnitude = 0 if signed == -(1 << 31) else abs(signed)
    return TopicPartition(topic, magnitude % partition_count)
