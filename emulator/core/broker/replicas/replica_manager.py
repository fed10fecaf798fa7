"""All replicas that a broker hosts, and the requests to them (Kafka's ``ReplicaManager`` and ``LogManager``).

KRaft and ZooKeeper brokers both use it. They differ in who assigns roles and who writes the ISR; the meaning of a role
is the same. A broker changes roles, passes on the inputs that concern replicas, and ends each step with
``check_recoveries``, the ISR changes that were proposed by then, and ``settle``.
"""

from collections.abc import Callable
from enum import Enum

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.delayed_fetch import FetchHandler
from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler, VerifyTransaction
from laststand.emulator.core.broker.replicas.delete_records import DeleteRecordsHandler
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.leader_recovery import LeaderRecovery, Mender
from laststand.emulator.core.broker.replicas.list_offsets import list_offsets
from laststand.emulator.core.broker.replicas.log_writer import follow_segments
from laststand.emulator.core.broker.replicas.maintenance import Maintenance
from laststand.emulator.core.broker.replicas.metadata_requests import metadata
from laststand.emulator.core.broker.replicas.offset_for_leader_epoch import offsets_for_leader_epochs
from laststand.emulator.core.broker.replicas.replica_log_info import replica_log_info
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.timers import Timed
from laststand.emulator.core.types import BrokerEpoch, BrokerId, NodeId, RequestId


class LogsState(Enum):
    """The state of a process's logs: not opened, loading, or open."""

    UNTOUCHED = "untouched"
    LOADING = "loading"
    OPEN = "open"


class ReplicaManager:
    """The replicas of one broker.

    Attributes:
        logs_state: whether logs are open.
        hosted: the hosted partitions.
        fetchers: of the partitions that this broker follows.
        fetches: requests that read.
        strays: logs that belong elsewhere.
    """

    def __init__(
        self,
        config: BrokerConfig,
        image: MetadataImage,
        in_flight: InFlightRequests,
        verify: VerifyTransaction | None = None,
        mender: Mender | None = None,
    ) -> None:
        self._config = config
        self.logs_state = LogsState.UNTOUCHED
        self.hosted = HostedPartitions(image)
        self.fetchers = FetcherPool(config, in_flight)
        self._produces = ProduceHandler(self.hosted, config.switches, verify)
        self.fetches = FetchHandler(config, self.hosted, self._produces)
        self._deletes = DeleteRecordsHandler(self.hosted)
        self._recoveries = LeaderRecovery(config, self.hosted, mender)
        self.strays = StrayLogs(config)
        self._maintenance = Maintenance(config, self.hosted)
        self._timers: tuple[tuple[Timed, Callable[[Turn], None]], ...] = (
            (self._produces.timers, self._produces.handle_timer),
            *((timers, self.fetches.handle_timer) for timers in self.fetches.timers),
            (self._deletes.timers, self._deletes.handle_timer),
            (self._recoveries.timers, self._recoveries.handle_timer),
            (self.strays.timers, self.strays.handle_timer),
            (self.fetchers.timers, self.fetchers.handle_timer),
            (self._maintenance.timers, self._maintenance.handle_timer),
        )

    @property
    def max_fetch_lag(self) -> int:
        """Records of the followed partition that is furthest behind its leader's high watermark."""
        return max((followed.lag for followed in self.fetchers.followed.values()), default=0)

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timers`` is due, or ``None`` if nothing waits for the time."""
        earliest: int | None = None
        for timed, _ in self._timers:  # called after each step, so it builds no list
            deadline = timed.earliest_ms
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest

    # --- Logs -----------------------------------------------------------------------------------------------------

    def load_logs(self, turn: Turn) -> None:
        """Begins to load the logs on disk; ``LogsLoaded`` has the result."""
        self.logs_state = LogsState.LOADING
        turn.write(effects.LoadLogs())

    def open_logs(self, turn: Turn, loaded: inputs.LogsLoaded) -> None:
        """Starts periodic maintenance and the grace periods of strays; the broker decides which logs it hosts."""
        self.logs_state = LogsState.OPEN
        self.strays.resume(turn, loaded.strays)
        self._maintenance.start(turn)

    def handle_recovered(self, turn: Turn, recovered: inputs.LogRecovered) -> None:
        """Continues an uncleanly elected leader's recovery with the result of the log scan."""
        self._recoveries.handle_recovered(turn, recovered)

    def handle_read(self, turn: Turn, read: inputs.RecordsRead) -> None:
        """Continues a leader's recovery with the records of a coordinator's partition."""
        self._recoveries.handle_read(turn, read)

    def handle_segments_deleted(self, turn: Turn, deleted: inputs.SegmentsDeleted) -> None:
        """Raises a log's start to where retention has deleted segments."""
        partition = self.hosted.get(deleted.partition)
        if partition is None or deleted.log_start_offset <= partition.log.log_start_offset:
            return
        follow_segments(turn, partition.log, deleted.log_start_offset)
        turn.advanced[deleted.partition] = None

    def exit(self, turn: Turn, *, broker_epoch: BrokerEpoch | None, proven_epoch: BrokerEpoch | None) -> None:
        """Ends the process: closes logs that are open with their high watermarks and ``broker_epoch``.

        If logs are not open but still as the previous process closed them, ``proven_epoch`` is written instead.
        """
        self.fetchers.stop()
        if self.logs_state is LogsState.OPEN:
            self._maintenance.checkpoint_high_watermarks(turn)
            turn.exit(effects.CloseLogs(broker_epoch=broker_epoch))
        else:
            # Without open logs, the checkpoints must not be overwritten with empty ones.
            turn.exit(effects.StopNode(proven_epoch=proven_epoch))

    # --- Requests and responses -----------------------------------------------------------------------------------

    def handle_request(
        self,
        turn: Turn,
        request_id: RequestId,
        request: messages.Request,
        *,
        broker_epoch: BrokerEpoch | None,
        controller: NodeId | None,
        unauthorized: frozenset[str] = frozenset(),
    ) -> None:
        """Handles a request that every broker serves; ``unauthorized`` are topics hidden from the sender.

        Raises:
            InvariantError: no broker serves such a request.
        """
        response: messages.Response
        match request:
            case messages.FetchRequest():
                self.fetches.handle_request(turn, request_id, request)
                return
            case messages.ProduceRequest():
                self._produces.handle_request(turn, request_id, request)
                return
            case messages.DeleteRecordsRequest():
                self._deletes.handle_request(turn, request_id, request)
                return
            case messages.MetadataRequest():
                response = metadata(self.hosted.image, request, controller, unauthorized)
            case messages.DescribeTopicPartitionsRequest():
                response = describe_topic_partitions(
                    self.hosted.image,
                    request,
                    partition_limit=self._config.properties.max_request_partition_size_limit,
                    unauthorized=unauthorized,
                )
            case messages.ListOffsetsRequest():
                response = list_offsets(self.hosted, request)
            case messages.OffsetForLeaderEpochRequest():
                response = offsets_for_leader_epochs(self.hosted, request)
            case messages.GetReplicaLogInfoRequest():
                response = replica_log_info(self.hosted, request, broker_epoch)
            case _:
                raise InvariantError(f"{type(request).__name__} is not for a broker")
        turn.send(effects.SendResponse(request_id=request_id, response=response, cause_id=turn.cause_id))

    def handle_response(
        self, turn: Turn, leader: BrokerId, request: messages.Request, response: messages.Response
    ) -> None:
        """Handles the response of a leader that this broker follows.

        Raises:
            InvariantError: a response to another request.
        """
        match request, response:
            case messages.FetchRequest(), messages.FetchResponse():
                self.fetchers.handle_fetch(turn, leader, request, response)
            case messages.ListOffsetsRequest(), messages.ListOffsetsResponse():
                for position, result in zip(request.partitions, response.partitions, strict=True):
                    self.fetchers.handle_offset(turn, leader, position, result)
            case messages.OffsetForLeaderEpochRequest(), messages.OffsetForLeaderEpochResponse():
                for asked, end in zip(request.partitions, response.partitions, strict=True):
                    self.fetchers.handle_epoch_end(turn, leader, asked, end)
            case _:
                raise InvariantError(f"{type(response).__name__} answers {type(request).__name__}")

    def handle_failure(self, turn: Turn, leader: BrokerId, request: messages.Request) -> None:
        """Handles that a leader did not answer.

        Raises:
            InvariantError: no broker sends such a request.
        """
        match request:
            case messages.FetchRequest() | messages.ListOffsetsRequest() | messages.OffsetForLeaderEpochRequest():
                self.fetchers.handle_failure(turn, leader, request)
            case _:
                raise InvariantError(f"{type(request).__name__} failed, which a broker never sends")

    # --- Time, and the end of a step ------------------------------------------------------------------------------

    def handle_timers(self, turn: Turn) -> None:
        """Handles each timer that is due."""
        for timed, handle in self._timers:
            if timed.earliest_ms is not None and timed.earliest_ms <= turn.now_ms:
                handle(turn)

    def check_recoveries(self, turn: Turn) -> None:
        """Starts or ends recoveries of leaders whose role changed; may propose an ISR change."""
        for name in turn.turned:
            self._recoveries.check(turn, name)

    def settle(self, turn: Turn, broker_epoch: BrokerEpoch | None) -> None:
        """Answers the requests that waited for what this step changed, and sends fetches to leaders.

        Fetches name ``broker_epoch`` (KIP-903), or no incarnation.
        """
        for name in turn.turned:
            self._produces.check(turn, name)
            self.fetches.check_role(turn, name)
        for name in turn.grown:
            self.fetches.check_growth(turn, name)
        for name in turn.advanced:
            self._produces.check(turn, name)
            self.fetches.check_high_watermark(turn, name)
        if turn.advanced or turn.turned:
            self._deletes.check(turn)
        self.fetchers.send_due(turn, broker_epoch)
