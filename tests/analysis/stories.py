"""Hand-written runs with a clock. The times are chosen so that sums can be done in the head."""

from pathlib import Path

from laststand.emulator.core import events as e
from laststand.emulator.core.history import OperationType
from tests.verification.run_builder import Batch, RunBuilder


def sent_at(run: RunBuilder, begin_s: float, end_s: float, *, acks: int = -1) -> Batch:
    """Sends a batch of ten records, which is appended and answered at ``end_s``."""
    run.at(end_s)
    return run.send(acks=acks, begun_s=begin_s)


def failover(path: Path) -> Path:
    """The leader fails; the ISR shrinks to one broker, which lags, loses power and comes back; the ELR leads then.

    ::

         1.0  broker 0 leads brokers 0, 1, 2
         2.0  10 records, acks=all, answered after 0.1 s
         4.0  broker 0 is isolated
         6.0  fenced; broker 1 leads, ISR 1 2
         6.5  10 records, acks=all, answered after 0.5 s
         8.0  broker 1 is isolated, as is seen at 8.5
        10.0  fenced; broker 2 leads, ISR 2, ELR 1
        10.2  10 records, acks=1, answered after 0.1 s
        11.0  10 records, acks=all, never acknowledged (fails at 12.0)
        12.0  broker 2 loses power, all of its log
        13.0  fenced; no leader, ELR 1 2
        14.0  broker 2 is back, unclean; ELR 1
        15.0  healed
        16.0  broker 1 leads from the ELR, ISR 1
        17.0  brokers 0 and 2 have caught up; ISR 0 1 2
        18.0  10 records, acks=all, answered after 0.2 s
        20.0  the end
    """
    run = RunBuilder(path, begin_s=1.0)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    first = sent_at(run, 2.0, 2.1)
    run.poll([first])

    run.at(4.0)
    run.fault("isolate", "0")
    run.step("{isolate: {node: 0}}")
    run.at(6.0)
    run.fence(0)
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    second = sent_at(run, 6.5, 7.0)
    run.poll([second])

    run.at(8.5)
    run.fault("isolate", "1", begun_s=8.0)
    run.step("{isolate: {node: 1}}")
    run.at(10.0)
    run.fence(1)
    run.alter(reason="broker_fenced", broker=1, leader=2, election=e.Election.ISR, isr=(2,), elr=(1,))
    sent_at(run, 10.2, 10.3, acks=1)
    run.at(12.0)
    run.operate(run.new_batch(), outcome=OperationType.FAIL, begun_s=11.0)
    run.power_loss(2)
    run.fault("power_loss", "2", effect="1 process killed")

    run.at(13.0)
    run.fence(2)
    run.alter(
        reason="broker_fenced", broker=2, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(1, 2),
        last_known_leader=2,
    )  # fmt: skip
    run.at(14.0)
    run.restart(2)
    run.heal("power_loss", "2")
    run.alter(reason="broker_registered", broker=2, elr=(1,), last_known_leader=2)
    run.unfence(2)
    run.at(15.0)
    run.heal("all", "all")
    run.at(16.0)
    run.unfence(1)
    run.alter(reason="broker_unfenced", broker=1, leader=1, election=e.Election.ELR, isr=(1,), elr=())
    run.unfence(0)
    run.at(17.0)
    run.append(0, second)
    run.append(2, first)
    run.append(2, second)
    run.expand((0, 1, 2))
    last = sent_at(run, 18.0, 18.2)
    run.poll([last])
    run.at(20.0)
    return run.finish()
