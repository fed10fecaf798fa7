"""The controller's reads and writes of ZooKeeper, as programs (the controller's part of ``KafkaZkClient``).

Each write of an elected controller is a transaction with a check of ``/controller_epoch`` at the version of its
election (KAFKA-6082): the writes of a replaced controller fail, which is how it learns that it was replaced. The check
comes before the node's own version. Reads of the same kind are sent together; each write of a batch is a separate
transaction.
"""

from collections.abc import Iterable, Mapping

import msgspec

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext
from laststand.emulator.core.zookeeper.errors import ControllerMovedError, ZooKeeperRefusedError
from laststand.emulator.core.zookeeper.identifiers import NodeVersion
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import (
    LeaderAndIsr,
    PartitionLeadership,
    decode_state,
    encode_state,
)
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_config
from laststand.emulator.core.zookeeper.nodes.topic import TopicAssignment, encode_topic

_UNCLEAN: str = "unclean.leader.election.enable"


class StateUpdates(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a batch of state writes.

    Attributes:
        written: decisions as the nodes have them now.
        outdated: nodes that another process has written meanwhile; they have to be read and decided again.
        refused: writes that failed for another reason, with ZooKeeper's reason.
    """

    written: dict[TopicPartition, LeaderAndIsr]
    outdated: tuple[TopicPartition, ...]
    refused: dict[TopicPartition, operations.ZooKeeperFailure]


class ControllerStore:
    """The controller's nodes. The context says which term it writes in."""

    def __init__(self, config: ControllerConfig, context: ControllerContext) -> None:
        self._config = config
        self._context = context

    # --- Fencing --------------------------------------------------------------------------------------------------

    def fenced(self, write: operations.Write) -> operations.Step:
        """Returns a write that fails unless this controller's term is current."""
        if not self._config.rules.controller_epoch_fence:
            return write
        check = operations.CheckVersion(path=paths.CONTROLLER_EPOCH, version=self._context.epoch_version)
        return operations.Transaction((check, write))

    def write(self, writes: Iterable[operations.Write]) -> operations.Program[tuple[operations.OperationAnswer, ...]]:
        """Sends fenced writes together; returns the answer to each.

        Raises:
            ControllerMovedError: the term is over.
        """
        steps = tuple(self.fenced(write) for write in writes)
        if not steps:
            return ()
        answers = yield steps
        return tuple(unfenced(answer) for answer in answers)

    # --- Partition states -----------------------------------------------------------------------------------------

    def read_states(
        self, names: Iterable[TopicPartition]
    ) -> operations.Program[dict[TopicPartition, PartitionLeadership]]:
        """Reads state nodes; partitions that have none are left out."""
        asked = tuple(names)
        if not asked:
            return {}
        answers = yield tuple(operations.GetData(path=paths.state_node(name)) for name in asked)
        found = {}
        for name, answer in zip(asked, answers, strict=True):
            match answer:
                case operations.DataRead(data=data, stat=stat):
                    leadership = decode_state(data, stat.version, state_format=self._config.rules.state_format)
                    if leadership is not None:
                        found[name] = leadership
                case operations.OperationFailed(reason=operations.ZooKeeperFailure.NO_NODE):
                    pass
                case _:
                    raise refused(paths.state_node(name), answer)
        return found

    def update_states(self, decided: Mapping[TopicPartition, LeaderAndIsr]) -> operations.Program[StateUpdates]:
        """Replaces state nodes, each at the version that its decision was made by.

        Raises:
            ControllerMovedError: the term is over.
        """
        answers = yield from self.write(
            operations.SetData(
                path=paths.state_node(name),
                data=self._encode(leader_and_isr),
                version=NodeVersion(leader_and_isr.partition_epoch),
            )
            for name, leader_and_isr in decided.items()
        )
        written: dict[TopicPartition, LeaderAndIsr] = {}
        outdated: list[TopicPartition] = []
        refusals: dict[TopicPartition, operations.ZooKeeperFailure] = {}
        for (name, leader_and_isr), answer in zip(decided.items(), answers, strict=True):
            match answer:
                case operations.DataSet(stat=stat):
                    written[name] = leader_and_isr.at_version(stat.version)
                case operations.OperationFailed(reason=operations.ZooKeeperFailure.BAD_VERSION):
                    outdated.append(name)
                case operations.OperationFailed(reason=reason):
                    refusals[name] = reason
                case _:
                    raise refused(paths.state_node(name), answer)
        return StateUpdates(written=written, outdated=tuple(outdated), refused=refusals)

    def create_states(
        self, decided: Mapping[TopicPartition, LeaderAndIsr]
    ) -> operations.Program[frozenset[TopicPartition]]:
        """Makes the first state nodes of partitions; returns those that were made.

        Raises:
            ControllerMovedError: the term is over.
        """
        topics = sorted({name.topic for name in decided})
        yield from self.write(operations.Create(path=paths.partitions_node(topic)) for topic in topics)
        yield from self.write(operations.Create(path=paths.partition_node(name)) for name in decided)
        answers = yield from self.write(
            operations.Create(path=paths.state_node(name), data=self._encode(leader_and_isr))
            for name, leader_and_isr in decided.items()
        )
        return frozenset(
            name for name, answer in zip(decided, answers, strict=True) if isinstance(answer, operations.Created)
        )

    def _encode(self, leader_and_isr: LeaderAndIsr) -> bytes:
        leadership = PartitionLeadership(leader_and_isr=leader_and_isr, controller_epoch=self._context.controller_epoch)
        return encode_state(leadership, state_format=self._config.rules.state_format)

    # --- Topics ---------------------------------------------------------------------------------------------------

    def write_assignment(self, topic: str) -> operations.Program[None]:
        """Writes a topic's node as the context has it.

        Raises:
            ControllerMovedError: the term is over.
            ZooKeeperRefusedError: the topic's node is gone.
        """
        content = TopicAssignment(
            topic_id=self._context.topic_ids.get(topic),
            partitions={name.partition: self._context.assignments[name] for name in self._context.partitions_of(topic)},
        )
        data = encode_topic(content, topic_format=self._config.rules.topic_format)
        path = paths.topic_node(topic)
        (answer,) = yield from self.write([operations.SetData(path=path, data=data, version=None)])
        if not isinstance(answer, operations.DataSet):
            raise refused(path, answer)

    def read_unclean_topics(self, topics: Iterable[str]) -> operations.Program[frozenset[str]]:
        """Returns which of some topics may be led by a replica outside the ISR, by their configuration."""
        asked = tuple(dict.fromkeys(topics))
        if not asked:
            return frozenset()
        # Watched, as an offline partition gets a leader once its topic comes to allow unclean election.
        answers = yield tuple(
            operations.GetData(path=paths.topic_config_node(topic), is_watched=True) for topic in asked
        )
        return frozenset(
            topic for topic, answer in zip(asked, answers, strict=True) if self._is_unclean_allowed(answer)
        )

    def _is_unclean_allowed(self, answer: operations.StepAnswer) -> bool:
        configured = decode_config(answer.data).get(_UNCLEAN) if isinstance(answer, operations.DataRead) else None
        return self._config.unclean_leader_election_enable if configured is None else configured == "true"

    def delete_recursively(self, path: str) -> operations.Program[None]:
        """Deletes a node and all nodes below it, leaves first; a node that is gone already is no error.

        Raises:
            ControllerMovedError: the term is over.
        """
        (answer,) = yield (operations.GetChildren(path=path),)
        if not isinstance(answer, operations.ChildrenRead):
            return
        for child in answer.children:
            yield from self.delete_recursively(f"{path}/{child}")
        yield from self.write([operations.Delete(path=path, version=None)])


def children_of(answers: operations.Answers, path: str) -> tuple[str, ...]:
    """Returns the names in the answer to one ``GetChildren``; empty if there is no such node."""
    (answer,) = answers
    match answer:
        case operations.ChildrenRead(children=children):
            return children
        case operations.OperationFailed(reason=operations.ZooKeeperFailure.NO_NODE):
            return ()
        case _:
            raise refused(path, answer)


def unfenced(answer: operations.StepAnswer) -> operations.OperationAnswer:
    """Returns the answer to a fenced write, without that to its check.

    Raises:
        ControllerMovedError: the epoch node has another version, or is missing.
    """
    if not isinstance(answer, operations.TransactionAnswer):
        return answer
    check, written = answer.answers
    if isinstance(check, operations.OperationFailed) and check.reason is not operations.ZooKeeperFailure.ROLLED_BACK:
        raise ControllerMovedError
    return written


def refused(path: str, answer: operations.StepAnswer) -> Exception:
    """Returns the error for an answer that its sender cannot handle."""
    if isinstance(answer, operations.OperationFailed):
        return ZooKeeperRefusedError(path=path, reason=answer.reason)
    return InvariantError(f"{path}: {answer!r} answers something else")
