"""Blocks of producer ids in ZooKeeper: each is taken once, also where an answer was lost."""

from emulator.core.broker.zookeeper_producer_ids import take_block
from emulator.core.types import BrokerId, NodeId
from emulator.core.zookeeper.nodes import paths
from emulator.core.zookeeper.nodes.small_nodes import ProducerIdBlock
from emulator.core.zookeeper.operations import Answers, Create, Program, SetData
from emulator.core.zookeeper.server import ZooKeeperServer

BROKER = BrokerId(NodeId(1))


def run(server: ZooKeeperServer, program: Program[ProducerIdBlock], *, loses_answer: bool = False) -> ProducerIdBlock:
    """Runs a program; a lost answer makes the first write be sent twice."""
    session_id = server.open_session(timeout_ms=6000, now_ms=0)
    answers: Answers | None = None
    while True:
        try:
            steps = next(program) if answers is None else program.send(answers)
        except StopIteration as stop:
            block: ProducerIdBlock = stop.value
            return block
        if loses_answer and isinstance(steps[0], SetData):
            loses_answer = False
            server.execute(session_id, steps)
        answers = server.execute(session_id, steps)


def new_server() -> ZooKeeperServer:
    server = ZooKeeperServer()
    session_id = server.open_session(timeout_ms=6000, now_ms=0)
    server.execute(session_id, (Create(path=paths.PRODUCER_IDS),))
    return server


def test_blocks_follow_each_other() -> None:
    server = new_server()
    blocks = [run(server, take_block(BROKER)) for _ in range(2)]
    assert [(block.start, block.end) for block in blocks] == [(0, 999), (1000, 1999)]


def test_a_block_whose_answer_was_lost_is_taken_once() -> None:
    server = new_server()
    assert run(server, take_block(BROKER), loses_answer=True).start == 0
    assert run(server, take_block(BROKER)).start == 1000
