"""``laststand eras``: lists the eras."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

from laststand.cli.output.output import Output, json_option

ERA_SUMMARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kafka-0.10": "followers truncate to their high watermark; no leader epochs (before KIP-101)",
        "kafka-0.11": "followers truncate by leader epochs (KIP-101)",
        "kafka-3.9": "KRaft without eligible leader replicas; AlterPartition checks broker epochs (KIP-903)",
        "kafka-4.2": "eligible leader replicas, as far as Kafka 4.2 has them",
        "kip-966-text": "KIP-966 as it is written, and nothing of Laststand's own",
        "kip-966": "KIP-966, and eleven repairs of Laststand's own that no KIP has (the default)",
        "kafka-2.5-zk": "ZooKeeper; leaders write the ISR themselves",
        "kafka-2.6-zk": "ZooKeeper; StopReplica carries leader epochs (KIP-570)",
        "kafka-3.1-zk": "ZooKeeper; leaders ask the controller to change the ISR (KIP-497)",
        "kafka-3.2-zk": "ZooKeeper; LeaderRecoveryState is stored (KIP-704)",
        "kafka-3.9-zk": "ZooKeeper, the last release that has it",
        "kip-550-zk": "ZooKeeper; KIP-497, KIP-704 and KIP-550 as they were written",
    }
)
"""The summary of each era."""


@click.command(short_help="List the eras.")
@json_option
def eras(output: Output) -> None:
    """Print every era: a preset of switches that names a real protocol (docs/eras.md, docs/eras-zookeeper.md)."""
    from laststand.cli.output.tables import print_json, print_listing
    from laststand.emulator.core.eras import ALL_ERAS, era_rules, rule_texts

    if output is Output.JSON:
        print_json(
            [{"era": era, "summary": ERA_SUMMARIES[era], "switches": rule_texts(era_rules(era))} for era in ALL_ERAS]
        )
        return
    print_listing(("ERA", "WHAT IT IS"), [(era, ERA_SUMMARIES[era]) for era in ALL_ERAS])
