"""Vectors about RECOVERING (KIP-704): who is refused, how it ends; ``kip704_strict`` is ``recovering_gate``."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.broker.kraft.alter_partition_sender import AlterPartitionSender
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.delete_records import DeleteRecordsHandler
from laststand.emulator.core.broker.replicas.fetch import Read, Reader, ReadFailed, ReadResult, read_partition
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.isr import Committed, PendingExpand, PendingRecovery, PendingShrink
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer, maybe_expand_isr
from laststand.emulator.core.broker.replicas.leader_recovery import LeaderRecovery
from laststand.emulator.core.broker.replicas.list_offsets import list_offsets
from laststand.emulator.core.broker.replicas.offset_for_leader_epoch import offsets_for_leader_epochs
from laststand.emulator.core.broker.replicas.produce import Appended, append_batch
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.messages import LATEST_TIMESTAMP
from laststand.emulator.core.types import (
    Acks,
    BrokerEpoch,
    BrokerId,
    CauseId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    Offset,
    PartitionEpoch,
    RequestId,
)
from tests.conformance.broker_world import (
    LETTERS,
    NAME,
    TOPIC_ID,
    PartitionWorld,
    broker_id,
    broker_ids,
    configured,
    letters,
    make_log,
    record,
)
from tests.conformance.controller_broker_kinds import run_alter_validation
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered, step_mismatches

_STATES: Final = {
    Committed: "committed",
    PendingExpand: "pending_expand",
    PendingShrink: "pending_shrink",
    PendingRecovery: "pending_recovery",
}
_SERVABLE: Final = ("PRODUCE", "FETCH", "LIST_OFFSETS", "DELETE_RECORDS", "OFFSET_FOR_LEADER_EPOCH")


def run_recovering(vector: Vector) -> list[str]:
    """A broker's work while RECOVERING, or the controller's judgement of an AlterPartition."""
    return _validate(vector) if "stored_recovery" in vector.before else _Play(vector).play()


def _validate(vector: Vector) -> list[str]:
    """The controller's side, in the words of the kind ``alter_validation``."""
    before = {"replicas": ["L", "F1"], "leader_epoch": 5, "partition_epoch": 7, **vector.before}
    before["leader_recovery_state"] = before.pop("stored_recovery")
    words = {"stored_recovery": "leader_recovery_state"}
    expect = {words.get(key, key): value for key, value in vector.expect.items()}
    raw = {**vector.raw, "before": before, "expect": expect}
    return run_alter_validation(Vector(id=vector.id, kind=vector.kind, file=vector.file, raw=raw))


class _Play:
    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        switches = vector.switches
        if "kip704_strict" in vector.config:
            switches = msgspec.structs.replace(switches, recovering_gate=bool(vector.config["kip704_strict"]))
        before = vector.before
        log = {"epochs": [[0, 0]], **(before.get("log") or {})}
        self._world = PartitionWorld(configured(vector.config, switches), make_log(log))
        self._world.register({letter: {} for letter in LETTERS})
        self._recoveries = LeaderRecovery(self._world.config, self._world.hosted)
        self._sender = AlterPartitionSender(
            self._world.config, ControllerChannel(self._world.config, InFlightRequests())
        )
        self._sent: list[messages.AlterPartitionRequest] = []
        self._scan: effects.RecoverLog | None = None
        self._error: str | None = None
        if before.get("role") != "none":
            epochs = {
                "leader_epoch": before.get("leader_epoch", 1),
                "partition_epoch": before.get("partition_epoch", 1),
            }
            state = {"replicas": ["L", "F1", "F2"], "isr": before.get("isr") or ["L"], **epochs}
            self._apply(state, recovery=before["leader_recovery_state"], leads=before["role"] == "leader")

    def play(self) -> list[str]:
        found: list[str] = []
        for index, step in enumerate(self._vector.steps):
            found += self._step(index, step)
        return found + mismatches(self._vector.final, self._observe())

    def _apply(self, fields: Fields, *, recovery: str, leads: bool) -> None:
        own, other = self._world.config.broker_id, broker_id("F1")
        state = msgspec.structs.replace(
            self._world.state(fields, leader=own if leads else other),
            leader_recovery_state=LeaderRecoveryState[recovery],
        )
        turn = self._world.turn()
        if leads:
            self._world.partition.become_leader(turn, state)
        else:
            self._world.partition.become_follower(turn, state)
        self._settle(turn)

    def _settle(self, turn: Turn) -> None:
        self._recoveries.check(turn, NAME)
        for proposal in turn.proposals:
            self._sender.submit(proposal)
        self._sender.send_queued(turn, BrokerEpoch(100))
        for effect in turn.effects():
            match effect:
                case effects.SendRequest(request=messages.AlterPartitionRequest() as request):
                    self._sent.append(request)
                case effects.RecoverLog():
                    self._scan = effect

    def _step(self, index: int, step: Fields) -> list[str]:
        outcome: str | None = None
        match step["op"]:
            case "become_leader" | "become_follower" as op:
                self._apply(step, recovery=step.get("recovery", "RECOVERED"), leads=op == "become_leader")
            case "request":
                self._error = self._ask(step["api"], step.get("who", "consumer")).name
                outcome = "error"
            case "fetch":
                self._error = self._fetch(broker_id(step["replica"]), Offset(step["offset"])).name
                outcome = "error"
            case "finish_recovery":
                self._finish()
            case "expect_alter_partition":
                expected = {key: value for key, value in step.items() if key not in ("op", "note")}
                return numbered(index, mismatches(expected, self._last_sent()))
            case "alter_response":
                self._answer(step)
            case "check":
                pass
            case unknown:
                return numbered(index, [f"operation {unknown} is not known"])
        return step_mismatches(index, step, self._observe(), outcome=outcome)

    def _ask(self, api: str, who: str) -> ErrorCode:
        turn = self._world.turn()
        topic, number = NAME
        match api:
            case "PRODUCE":
                asked = messages.ProducePartition(topic=topic, partition=number, batch=record(0, 0))
                outcome = append_batch(turn, self._world.hosted, asked, acks=Acks.LEADER)
                return ErrorCode.NONE if isinstance(outcome, Appended) else outcome.error
            case "FETCH":
                if who != "consumer":
                    return self._fetch(broker_id("F1"), self._world.partition.log.log_end_offset)
                offset = self._world.partition.log.log_start_offset
                result = self._read(Reader(replica_id=None, client_rack=""), offset)
                return result.error if isinstance(result, ReadFailed) else ErrorCode.NONE
            case "LIST_OFFSETS":
                position = messages.ListOffsetsPosition(topic=topic, partition=number, timestamp=LATEST_TIMESTAMP)
                return (
                    list_offsets(self._world.hosted, messages.ListOffsetsRequest(partitions=(position,)))
                    .partitions[0]
                    .error
                )
            case "DELETE_RECORDS":
                target = messages.DeleteRecordsTarget(topic=topic, partition=number, offset=Offset(0))
                for follower in self._world.partition.followers.values():
                    follower.log_start_offset = Offset(0)  # they hold nothing up
                handler = DeleteRecordsHandler(self._world.hosted)
                handler.handle_request(
                    turn, RequestId(0), messages.DeleteRecordsRequest(partitions=(target,), timeout_ms=0)
                )
                handler.handle_timer(turn)
                [answer] = [effect.response for effect in turn.effects() if isinstance(effect, effects.SendResponse)]
                assert isinstance(answer, messages.DeleteRecordsResponse)
                return answer.partitions[0].error
            case "OFFSET_FOR_LEADER_EPOCH":
                epoch = messages.EpochPosition(topic=topic, partition=number, leader_epoch=LeaderEpoch(0))
                request = messages.OffsetForLeaderEpochRequest(partitions=(epoch,))
                return offsets_for_leader_epochs(self._world.hosted, request).partitions[0].error
            case unknown:
                raise ValueError(f"request {unknown} is not known")

    def _fetch(self, replica: BrokerId, offset: Offset) -> ErrorCode:
        turn = self._world.turn()
        epoch = self._world.image.brokers[replica].broker_epoch
        result = self._read(Reader(replica_id=replica, replica_epoch=epoch), offset)
        if not isinstance(result, Read):
            return result.error if isinstance(result, ReadFailed) else ErrorCode.NONE
        partition = self._world.partition
        partition.note_fetch(turn, replica, fetch_offset=offset, log_start_offset=Offset(0), broker_epoch=epoch)
        maybe_expand_isr(turn, partition, replica)
        self._settle(turn)
        return ErrorCode.NONE

    def _read(self, reader: Reader, offset: Offset) -> ReadResult:
        asked = messages.FetchPartition(
            topic=NAME.topic, topic_id=None, partition=NAME.partition, fetch_offset=offset, log_start_offset=Offset(0)
        )
        return read_partition(self._world.hosted, asked, reader, bytes_left=1 << 30, bytes_read=0)

    def _finish(self) -> None:
        assert self._scan is not None, "no recovery was started"
        turn = self._world.turn()
        found = inputs.LogRecovered(
            cause_id=CauseId("vector"),
            partition=NAME,
            leader_epoch=self._scan.leader_epoch,
            scanned_from=Offset(0),
            batch_count=self._world.partition.log.batch_count,
            bad_offset=None,
        )
        self._recoveries.handle_recovered(turn, found)
        self._settle(turn)

    def _last_sent(self) -> dict[str, Any]:
        if not self._sent:
            return {"isr": None, "recovery": None}
        data: messages.AlterPartitionData = self._sent[-1].partitions[0]
        isr = letters([member.broker_id for member in data.new_isr])
        return {"isr": isr, "recovery": data.leader_recovery_state.name}

    def _answer(self, step: Fields) -> None:
        partition = self._world.partition
        turn = self._world.turn()
        result = messages.AlterPartitionResult(
            topic=NAME.topic,
            topic_id=TOPIC_ID,
            partition=NAME.partition,
            error=ErrorCode[step.get("error", "NONE")],
            leader=self._world.config.broker_id,
            leader_epoch=LeaderEpoch(step.get("leader_epoch", partition.leader_epoch)),
            isr=broker_ids(step.get("isr") or ()),
            leader_recovery_state=LeaderRecoveryState[step.get("recovery", "RECOVERED")],
            partition_epoch=PartitionEpoch(step.get("partition_epoch", partition.partition_epoch)),
        )
        response = messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=(result,))
        sent, known_end_offset = self._sent[-1], MetadataOffset(0)
        for answered in self._sender.handle_response(turn, sent, response, known_end_offset=known_end_offset):
            handle_answer(turn, partition, answered.proposal, answered.result)
        self._settle(turn)

    def _observe(self) -> dict[str, Any]:
        partition = self._world.partition
        state = partition.leader_recovery_state.name
        observed: dict[str, Any] = {
            "error": self._error,
            "state": _STATES[type(partition.isr_state)],
            "committed_isr": letters(partition.committed_isr),
            "maximal_isr": letters(partition.maximal_isr),
            "leader_recovery_state": state,
            "local_recovery_state": state,
            "partition_epoch": partition.partition_epoch,
            "leader_epoch": partition.leader_epoch,
            "hw": partition.log.high_watermark,
            "leo": partition.log.log_end_offset,
            "alter_partition_sent": len(self._sent),
        }
        if "serves_requests" in self._vector.final:
            observed["serves_requests"] = all(self._ask(api, "consumer") is ErrorCode.NONE for api in _SERVABLE)
        return observed


KINDS: Final[Mapping[str, Handler]] = {"recovering": run_recovering}
