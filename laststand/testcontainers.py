"""A cluster in one container, for tests that use Testcontainers for Python; ``pip install testcontainers`` brings that.

::

    from laststand.testcontainers import LaststandContainer

    with LaststandContainer(era="kafka-3.9") as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers()})
        ...
        cluster.chaos("kill: {node: leader(orders-0)}")
        verdict = cluster.verdict()
    assert verdict["verdict"] == "valid"

Brokers serve clients of Apache Kafka on loopback addresses, and advertise these, so the container has the network of
its host: Linux, and an engine on this machine. It has no proxies: links cannot be cut. ``laststand.standing_cluster``
is the same without a container, and with proxies.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

IMAGE: Final = "laststand"
"""As ``docker/build.sh`` calls it; it is never pulled."""

_CLUSTER: Final = "testcontainers"
_ADDRESSES: Final = "bootstrap.servers="
_START_TIMEOUT_S: Final = 120


class LaststandError(Exception):
    """A command in the container failed; the text is its output."""


class LaststandContainer(DockerContainer):  # type: ignore[misc]  # whoever uses it brings Testcontainers
    """A controller and brokers in one container, with commands to break them and to judge the answers that clients got.

    Args:
        image: of a checkout or wheel, with ``laststand`` in it.
        brokers: their number.
        era: era whose rules hold.
        settings: rules and Kafka's properties of every node that differ, by name.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        brokers: int = 3,
        era: str = "kip-966",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(image)
        up = ["laststand", "up", "--name", _CLUSTER, "--kafka", "--no-proxies", "--brokers", str(brokers), "--era", era]
        for name, value in (settings or {}).items():
            up += ["--set", f"{name}={value}"]
        # The supervisor works in the background: the container lives until it is stopped.
        self.with_command(["sh", "-c", f"{shlex.join(up)} && exec sleep infinity"])
        self.with_kwargs(network_mode="host", init=True)
        self.waiting_for(LogMessageWaitStrategy(_ADDRESSES).with_startup_timeout(_START_TIMEOUT_S))

    def bootstrap_servers(self) -> str:
        """Returns the addresses of the brokers, in the form of ``bootstrap.servers``."""
        logs, _ = self.get_logs()
        printed: str = logs.decode()
        line = next(line for line in printed.splitlines() if _ADDRESSES in line)
        return line.partition(_ADDRESSES)[2].strip()

    def chaos(self, step: str) -> str:
        """Plays a step of a scenario, such as ``kill: {node: 1}`` or ``until: {partition: orders-0, isr: [0, 1, 2]}``.

        Returns:
            The effect that was observed.

        Raises:
            LaststandError: the step failed.
        """
        return self.laststand("chaos", "step", step, "--dir", _CLUSTER)

    def verdict(self) -> dict[str, Any]:
        """Ends the cluster, and judges the answers that its clients got; returns the verdict (docs/verdict.md).

        Raises:
            LaststandError: there is no verdict.
        """
        self.laststand("down", _CLUSTER)
        self.laststand("verify", _CLUSTER, "--judge", "here", codes=(0, 1, 2))
        printed = self.exec(["cat", f"store/standing/{_CLUSTER}/latest/verdict.json"]).output
        verdict: dict[str, Any] = json.loads(printed)
        return verdict

    def laststand(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Runs a command of Laststand in the container; returns its output.

        Args:
            arguments: of the command.
            codes: exit codes that are no error.

        Raises:
            LaststandError: the command ended with another exit code.
        """
        ended = self.exec(["laststand", *arguments])
        printed: str = ended.output.decode()
        if ended.exit_code not in codes:
            raise LaststandError(printed)
        return printed
