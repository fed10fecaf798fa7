"""Blocks of producer ids in ZooKeeper: each is taken once, also where an answer was lost."""

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.zookeeper.producer_ids import ZooKeeperProducerIds, allocate_block
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, CauseId, NodeId, RequestId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import ProducerIdBlock, encode_producer_ids
from laststand.emulator.core.zookeeper.server import ZooKeeperServer

BROKER = BrokerId(NodeId(1))


def run(
    server: ZooKeeperServer,
    program: operations.Program[ProducerIdBlock],
    *,
    loses_answer: bool = False,
    before_write: ProducerIdBlock | None = None,
) -> ProducerIdBlock:
    """Runs a program; a lost answer makes the first write be sent twice, and another broker may write before it."""
    session_id = server.open_session(timeout_ms=6000, now_ms=0)
    answers: operations.Answers | None = None
    while True:
        try:
            steps = next(program) if answers is None else program.send(answers)
        except StopIteration as stop:
            block: ProducerIdBlock = stop.value
            return block
        if before_write is not None and isinstance(steps[0], operations.SetData):
            data = encode_producer_ids(before_write)
            server.execute(session_id, (operations.SetData(path=paths.PRODUCER_IDS, data=data, version=None),))
            before_write = None
        if loses_answer and isinstance(steps[0], operations.SetData):
            loses_answer = False
            server.execute(session_id, steps)
        answers = server.execute(session_id, steps)


def new_server() -> ZooKeeperServer:
    server = ZooKeeperServer()
    session_id = server.open_session(timeout_ms=6000, now_ms=0)
    server.execute(session_id, (operations.Create(path=paths.PRODUCER_IDS),))
    return server


def test_blocks_follow_each_other() -> None:
    server = new_server()
    blocks = [run(server, allocate_block(BROKER)) for _ in range(2)]
    assert [(block.start, block.end) for block in blocks] == [(0, 999), (1000, 1999)]


def test_a_block_whose_answer_was_lost_is_taken_once() -> None:
    server = new_server()
    assert run(server, allocate_block(BROKER), loses_answer=True).start == 0
    assert run(server, allocate_block(BROKER)).start == 1000


def test_of_two_brokers_that_read_the_same_block_one_reads_again() -> None:
    server = new_server()
    others = ProducerIdBlock(broker_id=BrokerId(NodeId(2)), start=0, end=999)
    assert run(server, allocate_block(BROKER), before_write=others).start == 1000


class Producers:
    """A broker's producer ids, and what it answered."""

    def __init__(self) -> None:
        self.ids = ZooKeeperProducerIds()
        self.answers: dict[int, tuple[ErrorCode, int | None]] = {}

    def turn(self) -> Turn:
        return Turn(now_ms=0, cause_id=CauseId("unit"))

    def take(self, turn: Turn) -> None:
        for effect in turn.effects():
            assert isinstance(effect, effects.SendResponse)
            assert isinstance(effect.response, messages.InitProducerIdResponse)
            self.answers[effect.request_id] = (effect.response.error, effect.response.producer_id)

    def init(self, number: int) -> None:
        turn = self.turn()
        self.ids.handle_request(turn, RequestId(number), messages.InitProducerIdRequest())
        self.take(turn)

    def hear(self, start: int, end: int) -> None:
        turn = self.turn()
        self.ids.handle_block(turn, ProducerIdBlock(broker_id=BROKER, start=start, end=end))
        self.take(turn)

    def takes_block(self) -> bool:
        wanted, self.ids.wants_block = self.ids.wants_block, False
        return wanted


def test_producers_wait_for_one_block_and_get_its_ids_to_the_last_one() -> None:
    producers = Producers()
    assert not producers.takes_block()
    producers.init(1)
    assert producers.takes_block()
    producers.init(2)
    assert not producers.takes_block(), "one is under way"
    assert producers.answers == {}
    producers.hear(10, 10)
    assert producers.answers == {1: (ErrorCode.NONE, 10)}
    assert producers.takes_block(), "one of them still waits"
    producers.hear(20, 21)
    producers.init(3)
    assert producers.answers == {1: (ErrorCode.NONE, 10), 2: (ErrorCode.NONE, 20), 3: (ErrorCode.NONE, 21)}
    assert not producers.takes_block()
    producers.init(4)
    assert producers.takes_block()


def test_a_waiting_request_is_refused_as_retriable_when_no_block_comes() -> None:
    producers = Producers()
    producers.init(1)
    turn = producers.turn()
    producers.ids.give_up(turn)
    producers.take(turn)
    assert producers.answers == {1: (ErrorCode.BROKER_NOT_AVAILABLE, -1)}
    assert not producers.takes_block()
    producers.init(2)
    assert producers.takes_block()
