"""A controller among three, played against two voters that this module plays by hand."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import inputs, messages, records
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.metadata_version import METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum import effects as quorum_effects
from laststand.emulator.core.quorum import inputs as quorum_inputs
from laststand.emulator.core.quorum import messages as quorum_messages
from laststand.emulator.core.quorum.batches import LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.quorum_controller.effects import QuorumControllerEffect
from laststand.emulator.core.quorum_controller.quorum_controller import QuorumController, QuorumControllerInput
from laststand.emulator.core.quorum_controller.values import PLAIN_VALUES
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    ProducerId,
    RequestId,
)

CAUSE: Final = CauseId("vector")
_OWN: Final = ReplicaKey(NodeId(1))
_PEER: Final = ReplicaKey(NodeId(2))
BROKER: Final = BrokerId(NodeId(1))
BROKER_EPOCH: Final = BrokerEpoch(100)
_CLUSTER: Final = "cluster"


class _Writer(QuorumController):
    """The node under test, which can be told what to write."""

    def write(self, batch: records.MetadataBatch) -> list[QuorumControllerEffect]:
        """Applies and appends a batch, as the active controller does with what it decides."""
        assert self.active is not None
        self.active.fold(batch)
        self._take_active(node_effects.AppendMetadata(batch=batch, events=()))
        taken, self._effects = self._effects, []
        return taken


class QuorumControllerWorld:
    """Node 1 of the voters 1, 2 and 3, with static voters, so that an epoch begins with one record.

    Attributes:
        core: the node.
        now_ms: its time.
        answers: by request.
    """

    def __init__(self, properties: NodeProperties | None = None, switches: Switches | None = None) -> None:
        voters = VoterSet.of(Voter(key=ReplicaKey(NodeId(number))) for number in (1, 2, 3))
        self.now_ms = 0
        self.answers: dict[RequestId, messages.Response] = {}
        self._sent: list[node_effects.SendRequest] = []
        self._last_request = 0
        self.core = _Writer(
            QuorumSettings(key=_OWN, cluster_id=_CLUSTER, bootstrap_voters=voters, kraft_version=0, append_linger_ms=0),
            quorum_inputs.LoadedQuorum(),
            NodeProperties() if properties is None else properties,
            Switches() if switches is None else switches,
            now_ms=0,
        )
        self.step(inputs.Started(cause_id=CAUSE))

    @property
    def end_offset(self) -> MetadataOffset:
        """End of its log."""
        return self.core.quorum.replica.log.end_offset

    def step(self, incoming: QuorumControllerInput) -> None:
        """Hands it an input; its disk syncs at once."""
        self._execute(self.core.step(incoming, now_ms=self.now_ms))

    def _execute(self, effects: Sequence[QuorumControllerEffect]) -> None:
        for effect in effects:
            match effect:
                case node_effects.SendRequest():
                    self._sent.append(effect)
                case node_effects.SendResponse(request_id=request_id, response=response):
                    self.answers[request_id] = response
                case quorum_effects.SyncMetadata(end_offset=end_offset, generation=generation):
                    self.step(quorum_inputs.LogSynced(cause_id=CAUSE, end_offset=end_offset, generation=generation))
                case _:
                    pass

    def ask(self, request: messages.Request) -> RequestId:
        """Asks it something."""
        self._last_request += 1
        request_id = RequestId(self._last_request)
        self.step(inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=request))
        return request_id

    # --- What the other voters do -----------------------------------------------------------------------------------

    def follow(
        self,
        *,
        end_offset: int,
        committed: int,
        first: Sequence[records.Record] = (),
        at: Mapping[int, records.Record] = MappingProxyType({}),
    ) -> None:
        """Node 2 leads the next epoch; node 1 gets its log up to an offset, of which a part is committed.

        Args:
            end_offset: of the log.
            committed: end of what of it is committed.
            first: the first records, in one batch.
            at: some of the others, by their offsets.
        """
        epoch = LeaderEpoch(self.core.quorum.replica.leader_epoch + 1)
        self.ask_quorum(
            quorum_messages.BeginQuorumEpochRequest(
                cluster_id=None, voter=_OWN, leader_id=_PEER.node_id, leader_epoch=epoch
            )
        )
        batches = []
        start, taken = self.end_offset, tuple(first)
        while start < end_offset:
            if start >= committed:  # records of the quorum itself
                change = LeaderChange(leader_id=_PEER.node_id, voters=(), granting_voters=())
                batch = QuorumBatch(base_offset=start, leader_epoch=epoch, control=(change,))
            else:
                of = records.MetadataBatch(base_offset=start, records=taken or (at.get(start) or _filler(start),))
                batch = QuorumBatch(base_offset=start, leader_epoch=epoch, values=PLAIN_VALUES.encode(of, ()))
            batches.append(batch)
            start, taken = batch.end_offset, ()
        fetch = self._pop_sent(quorum_messages.FetchMetadataRequest)
        response = quorum_messages.FetchMetadataResponse(
            error=ErrorCode.NONE,
            leader_id=_PEER.node_id,
            leader_epoch=epoch,
            high_watermark=MetadataOffset(committed),
            batches=tuple(batches),
        )
        self._answer(fetch, response)

    def win(self) -> None:
        """Node 1 is elected by node 2; nothing of its epoch is committed yet."""
        self._sent.clear()
        deadline_ms = self.now_ms
        while not self._sent or not isinstance(self._sent[-1].request, quorum_messages.VoteRequest):
            deadline_ms = self.core.next_deadline_ms() or deadline_ms
            self.now_ms = deadline_ms
            self.step(inputs.TimerFired(cause_id=CAUSE))
        for _ in range(2):  # the pre-vote, and the vote
            vote = self._pop_sent(quorum_messages.VoteRequest)
            epoch = self.core.quorum.replica.leader_epoch
            granted = quorum_messages.VoteResponse(
                error=ErrorCode.NONE, leader_id=None, leader_epoch=epoch, is_granted=True
            )
            self._answer(vote, granted)

    def commit(self, end_offset: int) -> None:
        """Node 2 has what node 1 appended, up to an offset."""
        replica = self.core.quorum.replica
        self.ask_quorum(
            quorum_messages.FetchMetadataRequest(
                cluster_id=None,
                replica=_PEER,
                leader_epoch=replica.leader_epoch,
                fetch_offset=MetadataOffset(end_offset),
                last_fetched_epoch=replica.leader_epoch,
                high_watermark=None,
                max_wait_ms=0,
            )
        )

    def depose(self) -> None:
        """Node 2 leads the next epoch."""
        self.follow(end_offset=self.end_offset, committed=self.core.offsets.committed_end)

    def ask_quorum(self, request: quorum_messages.QuorumRequest) -> None:
        """Another voter asks."""
        self.ask(request)  # type: ignore[arg-type]

    def _pop_sent(self, kind: type[quorum_messages.QuorumRequest]) -> node_effects.SendRequest:
        sent = next(each for each in reversed(self._sent) if isinstance(each.request, kind))
        self._sent.remove(sent)
        return sent

    def _answer(self, sent: node_effects.SendRequest, response: quorum_messages.QuorumAnswer) -> None:
        self.step(
            inputs.ResponseReceived(
                cause_id=CAUSE,
                correlation_id=sent.correlation_id,
                response=response,  # type: ignore[arg-type]
            )
        )

    # --- Operations -------------------------------------------------------------------------------------------------

    def write_up_to(self, last_offset: int, at: Mapping[int, records.Record]) -> None:
        """A batch that ends at an offset, with some records by their offsets."""
        assert self.core.active is not None
        base_offset = self.core.active.image.next_offset
        of = tuple(at.get(offset) or _filler(offset) for offset in range(base_offset, last_offset + 1))
        self._execute(self.core.write(records.MetadataBatch(base_offset=base_offset, records=of)))

    def write(self) -> RequestId:
        """An operation of one record."""
        return self.ask(messages.AllocateProducerIdsRequest(broker_id=BROKER, broker_epoch=BROKER_EPOCH))

    def read(self) -> RequestId:
        """An operation without a record."""
        return self.ask(messages.DescribeTopicPartitionsRequest(topics=("absent",)))


def new_cluster(*, is_fenced: bool = False, level: int = 1) -> tuple[records.Record, ...]:
    """Returns the first records: a metadata version, and broker 1 with epoch 100."""
    broker = records.RegisterBrokerRecord(
        broker_id=BROKER,
        incarnation_id=IncarnationId("process"),
        broker_epoch=BROKER_EPOCH,
        log_dirs=("directory",),
        fenced=is_fenced,
    )
    return records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), broker


def _filler(offset: int) -> records.Record:
    return records.ProducerIdsRecord(broker_id=BROKER, broker_epoch=BROKER_EPOCH, next_producer_id=ProducerId(offset))
