"""Log lines of a node, in the shape of Kafka's log4j: ``[time] LEVEL [Broker 1] message (logger)``."""

import logging
import sys

from laststand.emulator.core.types import NodeRole
from laststand.emulator.node.config import NodeConfig


def configure_logging(role: NodeRole, config: NodeConfig) -> None:
    """Sends every logger's lines from INFO on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    node = f"{role.value.capitalize()} {config.node_id}"
    handler.setFormatter(
        logging.Formatter(
            f"[%(asctime)s] %(levelname)s [{node}] %(message)s run={config.run} incarnation={config.incarnation}"
            " (%(name)s)"
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])
