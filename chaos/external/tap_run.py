"""A tap that writes a run directory: clients' histories, and the final contents of the partitions that they used."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from laststand.chaos.external.client_run import ClientRun
from laststand.chaos.external.state import ExternalState
from laststand.chaos.play.ending import SETTLE_TIMEOUT_S, settled
from laststand.chaos.play.runner import FINAL_READ_TIMEOUT_MS
from laststand.chaos.process.client_link import ClientLink
from laststand.emulator.client.config import ClientConfig, Wire
from laststand.emulator.client.history import HISTORY_FILE
from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.cluster.kafka_tap import KafkaTap, Listen
from laststand.emulator.cluster.layout import foreign_history_file, key_file, token_file
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.errors import ConfigError, EmulatorError
from laststand.emulator.core.properties import node_properties
from laststand.emulator.rpc.run_token import RunToken

_SETTLES_AGAIN_S: Final = 0.5


async def run_tap(
    cluster: ExternalCluster,
    listen: Listen,
    *,
    directory: Path,
    era: str,
    has_keys: bool,
    on_open: Callable[[KafkaTap], Awaitable[None]],
) -> None:
    """Taps a cluster, until ``on_open`` returns; then reads all that clients have used, and completes the directory.

    Args:
        cluster: the cluster as it was found.
        listen: the addresses to which clients connect.
        directory: the new run directory.
        era: era whose rules judge the run.
        has_keys: whether keys of records are written down.
        on_open: called with the open tap.

    Raises:
        ConfigError: another process listens there, or the directory exists.
    """
    tap = KafkaTap(
        cluster,
        listen,
        history_file=lambda broker_id: foreign_history_file(directory, broker_id, incarnation=0),
        key_file=lambda broker_id: key_file(directory, broker_id, incarnation=0) if has_keys else None,
    )
    try:
        await tap.open()
        run = ClientRun(
            directory,
            era=era,
            broker_ids=sorted(cluster.addresses),
            description=f"Clients of cluster {cluster.cluster_id}, through a tap.",
        )
    except ConfigError:
        await tap.close()
        raise
    problem: str | None = "the tap did not reach its end"
    try:
        try:
            await _until_end(tap, on_open(tap))
        finally:
            await tap.close()
        problem = tap.problem or await _settle(tap) or await _read_all(tap, directory)
        if problem is None:
            run.note_settled()
    finally:
        run.close(problem=problem)


async def _until_end(tap: KafkaTap, opened: Awaitable[None]) -> None:
    """Waits until the user's part is over, or the tap fails."""
    over, failed = asyncio.ensure_future(opened), asyncio.ensure_future(tap.failed.wait())
    try:
        done, _ = await asyncio.wait((over, failed), return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        over.cancel()
        failed.cancel()


async def _settle(tap: KafkaTap) -> str | None:
    """Waits until the partitions that clients used have leaders and full ISRs; returns what is missing after a time."""
    topics = sorted({partition.topic for partition in tap.partitions})
    state = ExternalState(tap.addresses, topics=lambda: topics, on_change=lambda: None)
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    try:
        while True:
            await state.refresh()
            observed = settled(state.image)
            if observed.reached:
                return None
            if time.monotonic() >= deadline:
                return f"the cluster did not settle: {observed.text}"
            await asyncio.sleep(_SETTLES_AGAIN_S)
    finally:
        await state.close()


async def _read_all(tap: KafkaTap, directory: Path) -> str | None:
    """Lets a client process read the partitions that clients used; returns why the read is incomplete, if it is."""
    partitions = tuple(sorted(tap.partitions))
    if not partitions:
        return "no client wrote or read anything that can be judged"
    link = ClientLink(on_counts=lambda: None)
    token = RunToken.read_or_draw(token_file(directory))
    addresses = {int(broker_id): address for broker_id, address in tap.addresses.items()}
    try:
        async with Supervisor(on_end=lambda _: None) as supervisor:
            config = ClientConfig(
                history_path=str(directory / HISTORY_FILE),
                control_port=await link.listen(token),
                token_file=str(token_file(directory)),
                brokers=tuple(tap.addresses),
                session_timeout_ms=node_properties({}).broker_session_timeout_ms,
                producers=(),
                consumers=(),
                wire=Wire.KAFKA,
            )
            client = await link.launch(supervisor, config, directory=directory)
            await link.read_all(partitions, addresses, timeout_ms=FINAL_READ_TIMEOUT_MS)
            await client.stop()
    except (EmulatorError, OSError) as error:
        return f"the partitions could not be read at the end: {error}"
    finally:
        await link.close()
        token_file(directory).unlink(missing_ok=True)
    return None
