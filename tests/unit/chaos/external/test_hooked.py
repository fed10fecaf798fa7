"""Hooks that a scenario lacks are named before anything starts, and an action took effect only where that is seen."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.external.hooked import hook_problems, perform_by_hook
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.cluster.hooks import Hook, HookError, Hooks
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import CONTROLLER

TEXT = """\
name: test/external
cluster: {{brokers: 2}}
topics: [{{name: orders, replicas: [[0, 1]]}}]
workload: {{producers: [{{acks: all, rate: 10}}]}}
steps:
  - {step}
end: {end}
"""
SEEN = "true"


def hooks(*names: str, check: str | None = None, command: str = "true", within_ms: int = 5000) -> Hooks:
    return Hooks(
        path=Path("/tmp/hooks.yaml"),
        names={NodeId(1): "kafka-1", CONTROLLER: "controller"},
        hooks={name: Hook(name=name, command=command, effective_when=check, within_ms=within_ms) for name in names},
    )


def problems(step: str, found: Hooks, *, end: str = "as_is") -> list[str]:
    return hook_problems(read_scenario(Path("external.yaml"), TEXT.format(step=step, end=end)), found)


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("kill: {node: 1}", hooks("kill")),
        ("isolate: {node: 1}", hooks("isolate", check=SEEN)),
        ("until: {partition: orders-0, leader: 0}", hooks()),
        ("produce: {producer: producer-0, partition: orders-0, records: 1}", hooks()),
    ],
)
def test_what_has_its_hook_or_needs_none(step: str, found: Hooks) -> None:
    assert problems(step, found) == []


@pytest.mark.parametrize(
    ("step", "found", "reason"),
    [
        ("kill: {node: 1}", hooks("start"), "has no hook kill, which step 1 "),
        ("kill: {node: 0}", hooks("kill"), "has no name for node 0, which step 1 "),
        ("isolate: {node: 1}", hooks("isolate"), "hook isolate needs effective_when: no client sees that"),
        ("kill: {node: controller}", hooks("kill"), "hook kill needs effective_when: no client sees the controller"),
    ],
)
def test_what_a_step_lacks_is_named(step: str, found: Hooks, reason: str) -> None:
    [problem] = problems(step, found)
    assert problem.startswith("/tmp/hooks.yaml")
    assert reason in problem
    assert "which" not in reason or problem.endswith("(line 6) needs")


@pytest.mark.parametrize(
    ("step", "repair"),
    [("kill: {node: 1}", "start"), ("pause: {node: 1}", "resume"), ("isolate: {node: 1}", "heal")],
)
def test_what_the_end_has_to_mend_needs_a_hook_too(step: str, repair: str) -> None:
    verb = step.partition(":")[0]
    [problem] = problems(step, hooks(verb, check=SEEN), end="restore")
    assert f"has no hook {repair}, which step 1 " in problem
    assert problem.endswith("needs, at the end")
    assert problems(step, hooks(verb, repair, check=SEEN), end="restore") == []


def perform(found: Hooks, action: actions.Action, *, answers: list[bool]) -> actions.Outcome:
    """Performs an action on broker 1, which answers as listed when it is asked; the last one stays."""

    async def is_answering(broker_id: BrokerId) -> bool:
        assert broker_id == BrokerId(NodeId(1))
        return answers.pop(0) if len(answers) > 1 else answers[0]

    return asyncio.run(perform_by_hook(found, action, answers=is_answering))


KILL = actions.Kill(nodes=(NodeId(1),))


def test_a_kill_took_effect_once_the_broker_no_longer_answers() -> None:
    answers = [True, True, False]
    outcome = perform(hooks("kill"), KILL, answers=answers)
    assert outcome.affected
    assert answers == [False]


def test_a_kill_of_a_broker_that_does_not_answer_runs_nothing() -> None:
    outcome = perform(hooks("kill", command="false"), KILL, answers=[False])
    assert not outcome.affected


def test_a_broker_that_still_answers_has_not_been_killed() -> None:
    with pytest.raises(HookError, match=r"within 0\.3 s: true: broker 1 still answers"):
        perform(hooks("kill", within_ms=300), KILL, answers=[True])


def test_hooks_of_other_nodes_end_with_one_that_fails(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = f"if [ {{node}} = 1 ]; then echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 60; fi; "
    command += f"until [ -e {pid} ]; do sleep 0.05; done; exit 3"
    found = hooks("isolate", check="false", command=command, within_ms=30_000)
    found = msgspec.structs.replace(found, names={NodeId(0): "kafka-0", **found.names})
    with pytest.raises(HookError):
        perform(found, actions.Isolate(nodes=(NodeId(0), NodeId(1))), answers=[True])
    assert not Path("/proc", pid.read_text().strip()).exists()


def test_a_broker_that_does_not_answer_has_not_started() -> None:
    with pytest.raises(HookError, match=r"within 0\.3 s: true: broker 1 does not answer"):
        perform(hooks("start", within_ms=300), actions.Start(nodes=(NodeId(1),)), answers=[False])


def test_the_check_of_the_user_comes_before_answers() -> None:
    found = hooks("kill", check="test {name} = kafka-1", command="false")
    assert not perform(found, KILL, answers=[True]).affected
