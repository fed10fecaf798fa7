"""``laststand analyze``: the bundled analyses."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import click

from laststand.cli.options.run_argument import RUN
from laststand.cli.options.spark import SparkChoice, spark_options
from laststand.cli.output.output import Output, csv_option, json_option
from laststand.cli.spark.run_tables import no_cache_option, skip_broken_option, tables_of

SUMMARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "isr-sizes": "ISR and ELR sizes over time",
        "elections": "elections by reason and outcome",
        "failovers": "from each fault to the new leader and the first ack",
        "failover-times": "the same over many runs: median and 95th percentile",
        "replica-lag": "how far behind each replica was at each election",
        "records-at-risk": "acknowledged records in one log only, or on no disk",
        "acks-outcomes": "unacknowledged and lost records by acks",
        "elr-cost": "what the ELR kept, how long partitions waited for it",
    }
)
"""The summary of each analysis, by name."""

_HELP: Final = f"""Print an analysis of all RUN directories together; docs/analyses.md explains them. A directory that
holds runs stands for all of them.

\b
{chr(10).join(f"{name:<16} {summary}" for name, summary in SUMMARIES.items())}
"""


@click.command(short_help="Analyze run directories.", help=_HELP)
@click.argument("name", metavar="NAME", type=click.Choice(tuple(SUMMARIES)))
@click.argument("paths", metavar="RUN...", nargs=-1, required=True, type=RUN)
@skip_broken_option
@no_cache_option
@spark_options
@csv_option
@json_option
def analyze(
    name: str,
    paths: tuple[Path, ...],
    *,
    skip_broken: bool,
    no_cache: bool,
    spark_choice: SparkChoice,
    output: Output,
) -> None:
    """Prints the analysis of that name."""
    from laststand.cli.spark.frames import print_analysis
    from laststand.emulator.analysis.analyses import ANALYSES

    with tables_of(paths, skip_broken=skip_broken, no_cache=no_cache, spark_choice=spark_choice) as runs:
        print_analysis(ANALYSES[name](runs), output=output)
