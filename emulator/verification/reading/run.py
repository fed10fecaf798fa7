"""Reads a run: its events, its clients' histories and its final logs, file by file, once."""

import msgspec

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.quorum import MetadataLog
from laststand.emulator.verification.facts.run import RunFacts
from laststand.emulator.verification.reading.census import FileCensus, HistoryCensus
from laststand.emulator.verification.reading.digest import FileContent
from laststand.emulator.verification.reading.lines import LineReader
from laststand.emulator.verification.reading.logs import METADATA_LOG, KnownSegments, directory_owner, read_node_logs
from laststand.emulator.verification.reading.metadata_log import read_metadata_log
from laststand.emulator.verification.reading.run_directory import RunDirectory
from laststand.emulator.verification.reading.run_plan import ReadLedger
from laststand.emulator.verification.reading.zookeeper_log import LoggedWrite, read_zookeeper_log, transaction_logs
from laststand.emulator.verification.tables.timeline import Timeline


class RunEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence that was read of one run.

    Attributes:
        files: the census of each event file.
        contradictions: sentences about records that two controller processes report differently.
        sizes: bytes that were read of each file, by its path in the run's directory.
        contents: the digest of each file, by the same path.
        owners: the node id that each node's log directory names, if it names one.
        metadata_logs: those of controllers, by node.
        zookeeper_logs: transaction logs of ZooKeeper servers, by node.
    """

    run: RunDirectory
    facts: RunFacts
    timeline: Timeline
    files: tuple[FileCensus, ...]
    history: HistoryCensus
    contradictions: tuple[str, ...]
    sizes: dict[str, int]
    contents: dict[str, FileContent]
    owners: dict[int, str]
    metadata_logs: dict[int, MetadataLog]
    zookeeper_logs: dict[int, tuple[LoggedWrite, ...]]


def read_run(run: RunDirectory) -> RunEvidence:
    """Reads all evidence; files that are missing from the directory are missing from the result.

    Raises:
        OSError: a file is there and cannot be read.
    """
    ledger, facts = ReadLedger(run.path), RunFacts()
    reader = LineReader(facts)
    for path in run.event_files():
        reader.read_events(path.name, ledger.blocks(path))
    for path in run.histories:
        reader.read_history(path.name, ledger.blocks(path))
    facts.cluster.is_history_whole = reader.history.is_gapless and not reader.history.corrupt
    timeline = facts.order_events()
    read_final_logs(run, facts, timeline, ledger)
    facts.complete_transactions()
    read_descriptions(run, ledger)
    metadata_logs = read_metadata_logs(run, ledger)
    facts.cluster.metadata_logs = metadata_logs
    return RunEvidence(
        run=run,
        facts=facts,
        timeline=timeline,
        files=tuple(reader.files),
        history=reader.history,
        contradictions=facts.cluster.quorum.unexplained(reader.contradictions),
        sizes=ledger.sizes,
        contents=ledger.contents,
        owners=read_owners(run, ledger),
        metadata_logs=metadata_logs,
        zookeeper_logs=read_zookeeper_logs(run, ledger),
    )


def read_descriptions(run: RunDirectory, ledger: ReadLedger) -> None:
    """Reads the descriptions of the run (``cluster.yaml`` and others), so that their digests are known.

    Raises:
        OSError: a file cannot be read.
    """
    for path in run.descriptions():
        ledger.read(path)


def read_owners(run: RunDirectory, ledger: ReadLedger) -> dict[int, str]:
    """Returns the node id that each node's log directory names in ``meta.properties``, if it names one."""
    found = ((node, directory_owner(directory, ledger.read)) for node, directory in run.node_directories())
    return {node: owner for node, owner in found if owner is not None}


def read_metadata_logs(run: RunDirectory, ledger: ReadLedger) -> dict[int, MetadataLog]:
    """Returns the existing logs of controllers.

    Raises:
        OSError: a file cannot be read.
    """
    return {
        node: read_metadata_log(ledger.read(directory / METADATA_LOG).content)
        for node, directory in run.node_directories()
        if (directory / METADATA_LOG).exists()
    }


def read_zookeeper_logs(run: RunDirectory, ledger: ReadLedger) -> dict[int, tuple[LoggedWrite, ...]]:
    """Returns the content of the existing transaction logs.

    Raises:
        OSError: a file cannot be read.
    """
    return {
        node: read_zookeeper_log(ledger.read(path).content for path in paths)
        for node, directory in run.node_directories()
        if (paths := transaction_logs(directory))
    }


def read_final_logs(
    run: RunDirectory,
    facts: RunFacts,
    timeline: Timeline,
    ledger: ReadLedger,
    *,
    only: PartitionFacts | None = None,
) -> None:
    """Adds the replicas' final logs to the facts of all partitions, or only to separate facts of one partition.

    Raises:
        OSError: a file is there and cannot be read.
    """
    if facts.cluster.is_seen_by_clients_alone:
        for partition in facts.partitions() if only is None else (only,):
            partition.add_final_reads()
        return
    taken_over = timeline.logs_taken_over
    known: KnownSegments = {}
    name = None if only is None else (only.topic, only.partition)
    for node, directory in run.node_directories():
        facts.cluster.node_directories.add(node)
        for found in read_node_logs(node=node, directory=directory, read=ledger.read, only=name, known=known):
            log = found.log
            topic_id = taken_over.get((node, log.topic, log.partition, log.topic_id or ""), log.topic_id)
            facts.add_final(found._replace(log=msgspec.structs.replace(log, topic_id=topic_id)), only)
