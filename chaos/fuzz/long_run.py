"""One long run: a load, logs that roll and expire, and one fault after the other, drawn from a seed.

While ``drawing.py`` makes a short run of each plan, this makes one scenario of the requested length, with one verdict.
It never breaks more than the guarantee covers: each fault concerns one node, and before the next one the cluster is
repaired. Every minute has three drawn faults; the rest of the minute passes under load.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

import msgspec

from laststand.chaos.fuzz.drawing import FOLDER

MINUTE_S: Final = 60
BROKERS: Final = 3

_PARTITIONS: Final = 3
_FAULTS_A_MINUTE: Final = 3
_WITHIN: Final = "within: 60 s"
_PROPERTIES: Final[Mapping[str, int]] = {
    "broker.session.timeout.ms": 2_000,
    "broker.heartbeat.interval.ms": 250,
    "replica.lag.time.max.ms": 1_500,
    "log.segment.bytes": 1 << 20,
    "log.retention.bytes": 4 << 20,
    "log.retention.ms": 120_000,
    "log.retention.check.interval.ms": 5_000,
    "log.segment.delete.delay.ms": 1_000,
}


class LongRunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a long run.

    Attributes:
        seed: that faults are drawn from.
        era: era whose rules hold.
        minutes: how long faults are played.
        rate: records per second, of one producer.
        is_simulated: leave out the faults that virtual time does not have.
    """

    seed: int
    era: str
    minutes: int
    rate: int
    is_simulated: bool = False


def long_run(options: LongRunOptions) -> str:
    """Returns a long run as the text of a scenario file."""
    chance = Random(options.seed)
    properties = ", ".join(f"{name}: {value}" for name, value in _PROPERTIES.items())
    lines = [
        f"name: {FOLDER}/long-{options.seed}",
        f"title: {options.minutes} minutes at {options.rate} records a second, retention, three faults a minute",
        "source: laststand fuzz --one-run",
        f"cluster: {{brokers: {BROKERS}, properties: {{{properties}}}}}",
        "topics:",
        f"  - {{name: orders, partitions: {_PARTITIONS}, replication_factor: {BROKERS}, min.insync.replicas: 2}}",
        "workload:",
        f"  producers: [{{acks: all, rate: {options.rate}}}]",
        "  consumers: [{}]",
        "steps:",
        f"  - until: {{acked: 1, acks: all, per: partition, {_WITHIN}}}",
    ]
    for _ in range(options.minutes):
        lines.append(f"  - every: {{period: {MINUTE_S} s, for: {MINUTE_S} s, do: [")
        for _ in range(_FAULTS_A_MINUTE):
            lines += [f"      {{{step}}}," for step in _round(chance, options)]
        lines.append("    ]}")
    lines += ["expect:", f"  {options.era}: {{verdict: valid, lost: 0}}"]
    return "\n".join(lines) + "\n"


def _round(chance: Random, options: LongRunOptions) -> list[str]:
    """Returns the steps of a fault, of records that pass meanwhile, and of the repair."""
    weights = {fault: weight for fault, weight in _FAULTS.items() if not (options.is_simulated and fault is _slow_disk)}
    (draw,) = chance.choices(list(weights), weights=list(weights.values()))
    rate = options.rate
    broken, mended = draw(chance, chance.randrange(BROKERS))
    return [
        *broken,
        _load(rate, seconds=chance.choice((1, 2, 4))),
        *mended,
        f"until: {{partition: all, isr: [{', '.join(map(str, range(BROKERS)))}], {_WITHIN}}}",
        _load(rate, seconds=chance.choice((1, 2, 3))),
    ]


def _load(rate: int, *, seconds: int) -> str:
    return f"until: {{acked: {rate * seconds}, acks: all, {_WITHIN}}}"


def _unfenced(broker: int) -> str:
    return f"until: {{node: {broker}, unfenced: true, {_WITHIN}}}"


def _fenced(broker: int) -> str:
    return f"until: {{node: {broker}, unfenced: false, {_WITHIN}}}"


def _kill(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"kill: {{node: {broker}}}", _fenced(broker)], [f"start: {{node: {broker}}}", _unfenced(broker)]


def _restart_before_it_is_missed(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"kill: {{node: {broker}}}"], [f"start: {{node: {broker}}}", _unfenced(broker)]


def _stop(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"stop: {{node: {broker}}}"], [f"start: {{node: {broker}}}", _unfenced(broker)]


def _power_loss(chance: Random, broker: int) -> tuple[list[str], list[str]]:
    keep = chance.choice(("none", "prefix", "torn", "pages"))
    lost = f"power_loss: {{node: {broker}, keep: {keep}}}"
    return [lost, _fenced(broker)], [f"start: {{node: {broker}}}", _unfenced(broker)]


def _pause(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"pause: {{node: {broker}}}", _fenced(broker)], [f"resume: {{node: {broker}}}", _unfenced(broker)]


def _isolate(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"isolate: {{node: {broker}, clients: connected}}", _fenced(broker)], ["heal: all", _unfenced(broker)]


def _cut_from_controller(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"cut: {{from: {broker}, to: controller}}", _fenced(broker)], ["heal: all", _unfenced(broker)]


def _cut_between_brokers(chance: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"cut: {{from: {broker}, to: {_other(chance, broker)}}}"], ["heal: all"]


def _slow_link(chance: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"slow: {{from: {broker}, to: {_other(chance, broker)}, latency: 30 ms, jitter: 20 ms}}"], ["heal: all"]


def _reset(chance: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"reset: {{from: {broker}, to: {_other(chance, broker)}}}"], []


def _slow_disk(_: Random, broker: int) -> tuple[list[str], list[str]]:
    return [f"slow_disk: {{node: {broker}, delay: 20 ms}}"], [f"slow_disk: {{node: {broker}, delay: 0 ms}}"]


def _kill_controller(_: Random, __: int) -> tuple[list[str], list[str]]:
    return ["kill: {node: controller}"], ["start: {node: controller}", *map(_unfenced, range(BROKERS))]


def _lose_power_of_controller(_: Random, __: int) -> tuple[list[str], list[str]]:
    return ["power_loss: {node: controller, keep: none}"], [
        "start: {node: controller}",
        *map(_unfenced, range(BROKERS)),
    ]


def _elect_preferred(_: Random, __: int) -> tuple[list[str], list[str]]:
    return ["elect_leaders: {type: preferred, partition: all, answer: [NONE, ELECTION_NOT_NEEDED]}"], []


def _other(chance: Random, broker: int) -> int:
    return chance.choice([other for other in range(BROKERS) if other != broker])


_FAULTS: Final[Mapping[Callable[[Random, int], tuple[list[str], list[str]]], int]] = {
    _kill: 3,
    _restart_before_it_is_missed: 2,
    _stop: 2,
    _power_loss: 4,
    _pause: 2,
    _isolate: 2,
    _cut_from_controller: 2,
    _cut_between_brokers: 2,
    _slow_link: 2,
    _reset: 1,
    _slow_disk: 1,
    _kill_controller: 1,
    _lose_power_of_controller: 1,
    _elect_preferred: 2,
}
"""Functions that draw a fault (the steps that break, and those that mend), with their weights."""
