"""Foreign clients as processes: their command lines, and the lines in which they say what they saw."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Self

from tests.clients.programs import go_client, java_client, needed, python_client

Action = Literal["create", "produce", "consume", "pipe"]
Kind = Literal["created", "acked", "failed", "read", "piped", "error", "written", "batch", "stream"]

PATIENCE_S: Final = 240.0
"""The time that a client may take for what is waited for: a busy machine starts Spark in minutes."""


def _kcat(action: Action, servers: str, topic: str) -> tuple[str, ...]:
    options = ("-b", servers, "-t", topic, "-q", "-X", "client.id=kcat")
    if action == "produce":
        return (needed("kcat"), *options, "-P", "-X", "enable.idempotence=true")
    return (
        needed("kcat"),
        *options,
        "-C",
        "-p",
        "0",
        "-o",
        "beginning",
        "-u",
        "-f",
        r"read %s %o\n",
        "-X",
        "auto.offset.reset=earliest",
    )


def _program(command: Callable[[], tuple[str, ...]]) -> Callable[[Action, str, str], tuple[str, ...]]:
    return lambda action, servers, topic: (*command(), servers, action, topic)


CLIENTS: Final[Mapping[str, Callable[[Action, str, str], tuple[str, ...]]]] = {
    "kcat": _kcat,
    "confluent-kafka": _program(lambda: python_client("confluent", "confluent_kafka")),
    "kafka-python": _program(lambda: python_client("kafka_python", "kafka")),
    "aiokafka": _program(lambda: python_client("aio", "aiokafka")),
    "Java 4.2": _program(lambda: java_client("kafka-clients-4.2.0")),
    "Java 3.9": _program(lambda: java_client("kafka-clients-3.9.1")),
    "franz-go": _program(lambda: go_client("franz")),
    "sarama": _program(lambda: go_client("sarama")),
}
"""Makes the command line of an action of a client, by the name that ``docs/clients.md`` has for it."""


def start(client: str, action: Action, servers: str, topic: str) -> "Running":
    """Starts a client.

    Args:
        client: its name in ``CLIENTS``.
        action: ``create``, ``produce`` (each line of its input is a record), ``consume`` (from the beginning on) or
            ``pipe`` (to ``TOPIC-out``, in transactions).
        servers: its ``bootstrap.servers``.
        topic: of which it uses partition 0.
    """
    return Running(client, CLIENTS[client](action, servers, topic))


class Running:
    """A client at work. Use it as a context manager: it is killed at the end.

    Args:
        name: of the client, in messages.
        command: its command line.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def send(self, values: Sequence[object]) -> None:
        """Gives a producer records."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{value}\n" for value in values))
        self._process.stdin.flush()

    def said(self, kind: Kind) -> list[tuple[str, ...]]:
        """Returns the words of all lines of a kind, without that word."""
        with self._news:
            return [tuple(line.split()[1:]) for line in self._lines if line.startswith(f"{kind} ")]

    def values(self, kind: Kind) -> list[str]:
        """Returns the values of the records that lines of a kind are about."""
        return [words[0] for words in self.said(kind)]

    def wait_for(self, kind: Kind, count: int) -> list[str]:
        """Waits until so many lines of a kind are there, and returns their values.

        Raises:
            TimeoutError: they did not come; the text has the client's last words.
        """
        deadline = time.monotonic() + PATIENCE_S
        with self._news:
            while sum(line.startswith(f"{kind} ") for line in self._lines) < count:
                left = deadline - time.monotonic()
                if left <= 0 or not self._news.wait(left):
                    raise TimeoutError(self._failure(f"said {kind} fewer than {count} times"))
        return self.values(kind)

    def pause(self) -> None:
        """Stops it for a time, with its connections."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on."""
        self._process.send_signal(signal.SIGCONT)

    def finish(self) -> None:
        """Ends a client's input and waits until it ends itself.

        Raises:
            AssertionError: it failed; the text has its last words.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_S)
        self._reader.join()
        assert code == 0, self._failure(f"ended with {code}")

    def _failure(self, what: str) -> str:
        return "\n".join((f"{self.name} {what}", *self._lines[-20:]))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(line.rstrip("\n"))
                self._news.notify_all()
