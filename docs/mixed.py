"""The page on clusters of several eras, ``docs/mixed.md``: its tables are played in virtual time.

``make mixed`` plays a fault at each step of a rolling upgrade from Kafka 3.9 to 4.4 and back, and each known loss with
the rule that prevents it on one node only, and writes the verdicts into the page.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from docs.rule_tables import table
from laststand.emulator.core.metadata_version import LEVELS
from laststand.emulator.core.release import latest_metadata_version
from laststand.emulator.core.types import ClusterKind, NodeId
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.simulator.run.judgement import LossGuarantee
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.run.writer import play_and_stop

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = Path(__file__).parent / "mixed.md"
KNOWN_LOSSES: Final = ROOT / "tests" / "simulation" / "regressions"

KAFKA_3_9: Final = "kafka-3.9"
KAFKA_4_2: Final = "kafka-4.2"
KAFKA_4_4: Final = "kafka-4.2,reassignment_needs_all=off"
"""The rules of 4.3 and later differ from those of 4.2 in KAFKA-19975 alone."""

_NOTHING: Final = "—"

# --- Rolls --------------------------------------------------------------------------------------------------------

_SESSION_MS: Final = 2000
_CLUSTER: Final = f"""\
cluster brokers=3 era={KAFKA_3_9} metadata.version=3.9-IV0 broker.session.timeout.ms={_SESSION_MS} \
broker.heartbeat.interval.ms=250 replica.lag.time.max.ms=1500
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=2
"""
_SETTLES: Final = f"wait {4 * _SESSION_MS}"
_UPGRADE: Final = "update_feature: {{feature: {}, level: {}}}"
_DOWNGRADE: Final = "update_feature: {{feature: {}, level: {}, upgrade_type: SAFE_DOWNGRADE}}"
_ELR: Final = "eligible.leader.replicas.version"


class Step(NamedTuple):
    """A step of a roll: what the cluster is after it, in words, and the lines of a plan that lead there."""

    title: str
    lines: tuple[str, ...]


def _rolled(node: int, era: str) -> tuple[str, ...]:
    return (f"stop {node}", f"wait {_SESSION_MS * 3 // 2}", f"start {node} era={era}", _SETTLES)


def _roll(since: str, until: str, era: str, *, controller_first: bool = False) -> Iterator[Step]:
    """Yields the steps of one roll: brokers one by one, and the controller."""
    steps = [
        Step(f"{since} → {until}: broker 2 is {until}", _rolled(2, era)),
        Step(f"{since} → {until}: brokers 1 and 2 are {until}", _rolled(1, era)),
        Step(f"{since} → {until}: all brokers are {until}", _rolled(0, era)),
    ]
    controller = Step(f"{since} → {until}: the controller is {until}", _rolled(CONTROLLER, era))
    yield from ((controller, *steps) if controller_first else (*steps, controller))


STEPS: Final = (
    Step("3.9", ()),
    *_roll("3.9", "4.2", KAFKA_4_2),
    Step("4.2: metadata.version is 4.2", (_UPGRADE.format("metadata.version", "4.2-IV1"), "wait 200")),
    Step("4.2: ELR is on", (_UPGRADE.format(_ELR, 1), "wait 200")),
    *_roll("4.2", "4.4", KAFKA_4_4),
    *_roll("4.4", "4.2", KAFKA_4_2, controller_first=True),
    Step("4.2: ELR is off", (_DOWNGRADE.format(_ELR, 0), "wait 200")),
    Step("4.2: metadata.version is 3.9", (_DOWNGRADE.format("metadata.version", "3.9-IV0"), "wait 200")),
    *_roll("4.2", "3.9", KAFKA_3_9, controller_first=True),
)
"""The path of the whole roll."""

FAULTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "nothing": (),
        "the leader is killed": ("kill 0", _SETTLES, "start 0"),
        "the controller is killed": ("kill 100", "wait 500", "start 100"),
        "a follower is cut off": ("isolate 2", _SETTLES),
        "the leader loses power": ("power-loss 0 keep=none", _SETTLES, "start 0"),
        "the last replica standing loses power": (
            *("kill 2", _SETTLES, "produce orders-0 acks=all records=1", "wait 500"),
            *("stop 1", _SETTLES, "power-loss 0 keep=none", _SETTLES, "start 0", _SETTLES, "start 1", "start 2"),
        ),
        "a broker's next start is not of its era": ("stop 1", _SETTLES, "start 1 era=kip-966", _SETTLES),
    }
)
"""Lines of plans by the titles of their faults."""


def roll_plan(step: int, fault: str) -> Plan:
    """Returns the plan of a cell: the path up to a step, records, the fault, and records again."""
    lines = [line for each in STEPS[: step + 1] for line in each.lines]
    records = ["produce orders-0 acks=all records=2", "wait 500"]
    leads = ["elect_leaders: {type: preferred, partition: orders-0}", "wait 500"]
    return parse_plan(_CLUSTER + "\n".join([*lines, *leads, *records, *FAULTS[fault], _SETTLES, *records]) + "\n")


def verdict_of(plan: Plan) -> str:
    """Returns the verdict on a plan, in the words of the page."""
    simulation = play_and_stop(plan)
    skipped = [plan.actions[number] for number in simulation.skipped]
    if skipped:
        raise ValueError(f"what the plan does is impossible: {skipped}")
    judgement = simulation.judgement()
    if not judgement.lost_records:
        return judgement.verdict.value
    kind = "broken" if judgement.guarantee is LossGuarantee.BROKEN else "exceeded"
    return f"**{judgement.lost_records} lost**, guarantee {kind}"


def roll_row(step: int) -> tuple[str, ...]:
    """Returns the row of a step: its title, and a verdict for each fault."""
    return (STEPS[step].title, *(verdict_of(roll_plan(step, fault)) for fault in FAULTS))


# --- A rule on one node only --------------------------------------------------------------------------------------


class Lacking(NamedTuple):
    """A known loss: its name, its plan, and the rules of a node of that plan, as ``node_rules`` reads them."""

    name: str
    plan: Plan
    rules: str

    @property
    def amended(self) -> str:
        """The rules of ``kip-966``, with ELR where the plan has it: that is the cluster's affair, not a node's."""
        return "kip-966" if self.plan.rules().elr else "kip-966,elr=off"


def known_losses() -> tuple[Lacking, ...]:
    """Returns the known losses of KRaft clusters with one controller that a rule prevents."""
    found = []
    for file in sorted(KNOWN_LOSSES.glob("*.txt")):
        plan = parse_plan(file.read_text(encoding="utf-8"))
        rules = ",".join((plan.era, *(f"{name}={value}" for name, value in plan.switches)))
        is_ours = plan.controllers == 1 and plan.rules().kind is ClusterKind.KRAFT
        if is_ours and rules != "kip-966":
            found.append(Lacking(file.stem, plan, rules))
    return tuple(found)


def findings_of(loss: Lacking, amended: Iterable[int]) -> str:
    """Returns what a plan leads to where these nodes alone follow ``kip-966``: the checks that find it."""
    known = frozenset(amended)
    plan = loss.plan
    if CONTROLLER in known:
        switches = tuple(each.split("=") for each in loss.amended.split(",")[1:])
        level = ("metadata.version", LEVELS[latest_metadata_version(plan.rules())])  # else its brokers are not let in
        plan = msgspec.structs.replace(
            plan,
            era="kip-966",
            switches=tuple((name, value) for name, value in switches),
            properties=(*plan.properties, level),
        )
    simulation = Simulation(plan)
    for broker_id in simulation.cluster.nodes:
        simulation.cluster.set_era(NodeId(broker_id), loss.amended if broker_id in known else loss.rules)
    simulation.play_plan()
    return " ".join(sorted({finding.check_id for finding in simulation.findings()})) or _NOTHING


def loss_row(loss: Lacking) -> tuple[str, ...]:
    """Returns the row of a known loss: with the rule nowhere, on one node only, and everywhere."""
    brokers = range(loss.plan.brokers)
    single = [findings_of(loss, [node]) for node in brokers] + [""] * (4 - loss.plan.brokers)
    return (
        f"[{loss.name.replace('-', ' ')}](../tests/simulation/regressions/{loss.name}.txt)",
        f"`{loss.rules}`",
        findings_of(loss, ()),
        *single[:4],
        findings_of(loss, [CONTROLLER]),
        findings_of(loss, [*brokers, CONTROLLER]),
    )


# --- The page -----------------------------------------------------------------------------------------------------


def page(*, rolls: str, losses: str) -> str:
    """Returns the page with these tables."""
    text = PAGE.read_text(encoding="utf-8")
    for name, played in (("rolls", rolls), ("losses", losses)):
        before, marker, after = text.partition(f"<!-- played: {name} -->\n")
        _, end, after = after.partition("<!-- end -->\n")
        text = f"{before}{marker}\n{played}\n{end}{after}"
    return text


def main() -> None:
    """Plays both tables, and writes the page."""
    rolls = table(("Step", *FAULTS), [roll_row(step) for step in range(len(STEPS))])
    header = ("Loss", "Rules", "nobody", *(f"broker {number}" for number in range(4)), "controller", "all")
    losses = table(header, [loss_row(loss) for loss in known_losses()])
    PAGE.write_text(page(rolls=rolls, losses=losses), encoding="utf-8")


if __name__ == "__main__":
    main()
