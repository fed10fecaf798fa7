"""The first records of a controller that becomes active (Kafka's ``ActivationRecordsGenerator``).

On an empty log they are those of a new cluster. A metadata transaction that its predecessor left open is aborted first,
so that a beginning which was interrupted is made again.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from laststand.emulator.core import metadata_version, records
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.features import bootstrap
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches

_NAME: Final = "Bootstrap records"
_REASON: Final = "Controller failover"


def activation(
    image: MetadataImage, properties: NodeProperties, switches: Switches, *, has_transactions: bool
) -> Iterator[Sequence[Decision]]:
    """Yields decisions, of which each has to be replayed before the next is asked for.

    Args:
        image: of the whole log.
        properties: of the controller's node.
        switches: the rules; they decide which features exist.
        has_transactions: whether first records are written in a metadata transaction, where the version has them.

    Raises:
        ConfigError: ``metadata.version`` of a new cluster does not exist, or is too old for the switch ``elr``.
        InvariantError: a transaction is open, although the log's metadata version has no transactions.
    """
    if image.transaction_start is not None:
        level = image.feature_level(METADATA_VERSION) or metadata_version.level_of(properties.metadata_version)
        if level < metadata_version.TRANSACTIONS:
            raise InvariantError(
                f"a metadata transaction began at {image.transaction_start}, "
                f"and {METADATA_VERSION} {metadata_version.LEVELS[level]} has none"
            )
        yield [Decision(record=records.AbortTransactionRecord(reason=_REASON))]
    if METADATA_VERSION in image.features:
        return
    first = bootstrap(properties, switches)
    if has_transactions and metadata_version.level_of(properties.metadata_version) >= metadata_version.TRANSACTIONS:
        begin, end = records.BeginTransactionRecord(name=_NAME), records.EndTransactionRecord()
        first = (Decision(record=begin), *first, Decision(record=end))
    yield first
