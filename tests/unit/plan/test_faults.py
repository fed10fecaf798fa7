"""Faults are told when they begin and when they end, and everything that begins can end."""

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, MetadataOffset, NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.faults import EVERY_LINK, Fault, ended_by, fault_events, faults_of
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from tests.unit.plan.test_lines import names


def link(source: int, target: int) -> Link[NodeId]:
    return Link(NodeId(source), NodeId(target))


APP, SPARK = NodeId(1001), NodeId(1002)
FETCHES = Channel(NodeId(0), NodeId(100), "Fetch", Way.REQUEST)
BROKEN = (Link(NodeId(0), NodeId(1)), Link(NodeId(1), NodeId(100)), Link(NodeId(2), NodeId(0)))


@pytest.mark.parametrize(
    ("line", "begun", "ended"),
    [
        ("wait 5", (), ()),
        ("kill 0,1", (Fault("kill", NodeId(0)), Fault("kill", NodeId(1))), ()),
        ("stop 1", (Fault("stop", NodeId(1)),), ()),
        ("pause 100", (Fault("pause", NodeId(100)),), ()),
        ("resume 1", (), (Fault("pause", NodeId(1)),)),
        (
            "start 1",
            (),
            (
                Fault("disk_error", NodeId(1)),
                Fault("kill", NodeId(1)),
                Fault("lose_quorum_state", NodeId(1)),
                Fault("power_loss", NodeId(1)),
                Fault("replace_disk", NodeId(1)),
                Fault("stop", NodeId(1)),
            ),
        ),
        ("expire 1", (Fault("lose_responses", link(1, 100)),), (Fault("lose_responses", link(1, 100)),)),
        ("isolate 1", (Fault("isolate", NodeId(1)),), ()),
        ("cut 0->1", (Fault("cut", link(0, 1)),), ()),
        ("cut 1000->1", (Fault("cut", link(1000, 1)),), ()),
        ("lose-responses 0->1", (Fault("lose_responses", link(0, 1)),), ()),
        ("mend 0->1", (), (Fault("heal", link(0, 1)),)),
        ("reset 0->1", (Fault("reset", link(0, 1)),), (Fault("reset", link(0, 1)),)),
        ("half-open 0->1", (Fault("half_open", link(0, 1)),), ()),
        ("flap 0->1 down=200 up=200 times=2", (Fault("flap", link(0, 1)),), (Fault("flap", link(0, 1)),)),
        ("slow 0->1 ms=5", (Fault("slow", link(0, 1)),), ()),
        ("rejoin 1", (), (Fault("heal", NodeId(1)), Fault("heal", link(0, 1)), Fault("heal", link(1, 100)))),
        ("hold 0->100 Fetch request", (Fault("hold", FETCHES),), ()),
        ("lose-next 0->100 Fetch request count=1", (Fault("lose_messages", FETCHES),), ()),
        ("duplicate-next 0->100 Fetch request count=1", (Fault("duplicate_messages", FETCHES),), ()),
        ("delay 0->100 Fetch request ms=5", (Fault("delay_messages", FETCHES),), ()),
        ("release 0->100 Fetch request", (), (Fault("heal", FETCHES),)),
        ("release 0->100 Fetch request count=1", (), ()),
        ("disk-full 1 left=1000", (Fault("disk_full", NodeId(1)),), ()),
        ("disk-full 1 state=off", (), (Fault("disk_full", NodeId(1)),)),
        ("clock 1 rate=700000", (Fault("clock", NodeId(1)),), ()),
        ("clock 1 rate=1000000", (), (Fault("clock", NodeId(1)),)),
        ("heal", (), (EVERY_LINK,)),
    ],
)
def test_what_an_action_begins_and_ends(line: str, begun: tuple[Fault, ...], ended: tuple[Fault, ...]) -> None:
    action = parse_action(line)
    assert faults_of(action) == begun
    assert ended_by(action, broken=BROKEN) == ended


def examples() -> list[actions.Action]:
    return [parse_action(row.example, names()) for row in actions.ACTION_SPECS.values()]


@pytest.mark.parametrize("action", examples(), ids=lambda action: type(action).__name__)
def test_a_fault_can_be_ended_by_another_action_than_by_healing_everything(action: actions.Action) -> None:
    menders = [each for each in examples() if not isinstance(each, actions.HealAll)]
    menders += [actions.ClockRate(nodes=(NodeId(1),), rate_ppm=1_000_000), actions.Start(nodes=(NodeId(101),))]
    menders += [actions.Release(channel=each.channel) for each in examples() if isinstance(each, actions.OnChannel)]
    ended = {fault for mender in menders for fault in ended_by(mender, broken=())}
    for fault in faults_of(action):
        assert fault in ended or Fault("heal", fault.on) in ended, fault


def test_an_action_without_a_fault_begins_and_ends_nothing() -> None:
    action = parse_action("create_topic: {name: returns, replicas: [[1]]}", names())
    assert isinstance(action, actions.CreateTopic)
    assert (faults_of(action), ended_by(action, broken=BROKEN)) == ((), ())


def test_events_name_what_was_seen_and_both_offsets() -> None:
    told = list(
        fault_events(
            parse_action("expire 1"),
            effect="fenced",
            cause_id=CauseId("step-1"),
            before=MetadataOffset(3),
            after=MetadataOffset(7),
            broken=(),
            begun_ns=5,
            proved_ns=9,
        )
    )
    cause, links = CauseId("step-1"), (events.FaultLink(NodeId(1), NodeId(100)),)
    assert told == [
        events.FaultInjected(
            cause_id=cause,
            fault="lose_responses",
            target="1->100",
            links=links,
            effect="fenced",
            metadata_offset=MetadataOffset(3),
            begun_ns=5,
            proved_ns=9,
        ),
        events.FaultHealed(
            cause_id=cause,
            fault="lose_responses",
            target="1->100",
            links=links,
            seen="fenced",
            metadata_offset=MetadataOffset(7),
            begun_ns=5,
            proved_ns=9,
        ),
    ]


def test_healing_everything_names_the_links_that_were_broken() -> None:
    (healed,) = fault_events(
        actions.HealAll(),
        effect="probe succeeded",
        cause_id=CauseId("step-1"),
        before=MetadataOffset(3),
        after=MetadataOffset(7),
        broken=BROKEN,
        begun_ns=5,
        proved_ns=9,
    )
    assert isinstance(healed, events.FaultHealed)
    assert (healed.target, healed.nodes) == ("all", ())
    assert healed.links == tuple(events.FaultLink(*each) for each in BROKEN)


@pytest.mark.parametrize(
    ("action", "silenced"),
    [
        (actions.Cut(link=Link(APP, NodeId(0))), [(APP, 0)]),
        (actions.LoseResponses(link=Link(APP, NodeId(1))), [(APP, 1)]),
        (actions.Reset(link=Link(APP, NodeId(0))), [(APP, 0)]),
        (actions.HalfOpen(link=Link(APP, NodeId(0))), []),
        (actions.Cut(link=Link(NodeId(1), NodeId(0))), []),
        (actions.Isolate(nodes=(NodeId(1),)), [(APP, 1), (SPARK, 1)]),
        (actions.Isolate(nodes=(NodeId(1),), clients=actions.Clients.CONNECTED), []),
    ],
)
def test_a_fault_names_the_clients_whose_answers_it_may_swallow(
    action: actions.Action, silenced: list[tuple[NodeId, int]]
) -> None:
    begun, *_ = fault_events(
        action,
        effect="silent",
        cause_id=CauseId("step-1"),
        before=MetadataOffset(3),
        after=MetadataOffset(3),
        broken=(),
        begun_ns=5,
        proved_ns=9,
        kafka_links=[Link(client, NodeId(broker)) for client in (APP, SPARK) for broker in (0, 1)],
    )
    assert isinstance(begun, events.FaultInjected)
    assert [(link.source, link.target) for link in begun.silenced] == silenced


def test_a_fault_that_did_not_bite_was_proved_at_no_time() -> None:
    (begun,) = fault_events(
        parse_action("pause 2"),
        effect=None,
        cause_id=CauseId("step-1"),
        before=MetadataOffset(3),
        after=MetadataOffset(3),
        broken=(),
        begun_ns=5,
        proved_ns=9,
    )
    assert isinstance(begun, events.FaultInjected)
    assert (begun.nodes, begun.begun_ns, begun.proved_ns) == ((2,), 5, None)


PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2)
cut 0->1
wait 5
mend 0->1
mend 0->1
pause 2
"""


def test_a_run_reports_both_once_and_of_its_own_healing() -> None:
    journal = Journal()
    Simulation(parse_plan(PLAN), journal=journal).play_plan()
    told = [
        (type(event), event.fault, event.target)
        for event in (entry.event for entry in journal.entries)
        if isinstance(event, events.FaultInjected | events.FaultHealed)
    ]
    expected: list[tuple[type[events.Event], str, str]] = [
        (events.FaultInjected, "cut", "0->1"),
        (events.FaultHealed, "heal", "0->1"),
        (events.FaultInjected, "pause", "2"),
        (events.FaultHealed, "all", "all"),
    ]
    assert told == expected
