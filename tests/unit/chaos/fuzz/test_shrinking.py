"""A plan that fails is shrunk where it fails: in the simulator, or else by playing shorter ones."""

from laststand.chaos.fuzz.shrinking import shrink_failure
from laststand.emulator.plan.plan import parse_plan

HEAD = "cluster brokers=3 era=kip-966{}\ntopic orders replicas=(0,1,2) min.insync.replicas=2\n"
HARMLESS = (
    f"{HEAD.format('')}produce orders-0 acks=all records=1\nwait 50\nkill 1\nwait 1000\nstart 1\nwait 1000\n"
    "produce orders-0 acks=all records=1\nwait 50\nkill 2\nwait 1000\n"
)


def test_the_shortest_plan_that_still_fails_is_found_by_playing() -> None:
    played = []

    def fails(text: str) -> bool:
        played.append(text)
        return "kill: {node: 2}" in text

    shrunk = shrink_failure(parse_plan(HARMLESS), fails=fails)
    assert not shrunk.is_simulated
    assert shrunk.plan == parse_plan(f"{HEAD.format('')}kill 2\n")
    assert shrunk.trials == len(played)


def test_no_more_is_played_than_allowed() -> None:
    played = []

    def fails(text: str) -> bool:
        played.append(text)
        return False

    shrunk = shrink_failure(parse_plan(HARMLESS), fails=fails, trials_max=3)
    assert (shrunk.trials, len(played)) == (3, 3)
    assert shrunk.plan == parse_plan(HARMLESS)
