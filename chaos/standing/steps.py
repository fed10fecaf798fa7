"""Steps that a standing cluster is asked to play, written as in a scenario file, one at a time."""

from pathlib import Path

from chaos.faults.stage import Stage
from chaos.name_reader import NameReader
from chaos.roles import resolve
from chaos.scenario import Acked, Action, Kill, NetworkAction, Pause, Resume, Start, Step, Stop, Until
from chaos.step_reader import StepReader
from chaos.yaml_cursor import ScenarioError, open_document
from emulator.core.errors import EmulatorError


class UnplayableStep(EmulatorError):
    """A step that this cluster cannot play; nothing was done."""


def read_step(text: str, stage: Stage) -> Step:
    """Returns a step that a user wrote.

    Raises:
        UnplayableStep: it is none, names what does not exist, or needs what this cluster lacks.
    """
    names = NameReader(brokers=len(stage.cluster.layout.broker_ids), partitions=sorted(stage.watch.image.partitions))
    try:
        cursor = open_document(Path("step"), text)
        step = StepReader(names).read(cursor, text=cursor.flow_text())
    except ScenarioError as error:
        raise UnplayableStep(error.reason if error.key is None else f"{error.key}: {error.reason}") from None
    action = step.action
    if isinstance(action, Until) and isinstance(action.condition, Acked):
        raise UnplayableStep("acked: counts the records of a scenario's workload, and a standing cluster has none")
    if isinstance(action, NetworkAction) and stage.cluster.toxiproxy is None:
        raise UnplayableStep("this cluster was started with --no-proxies, so its links cannot be cut or healed")
    return step


def nothing_to_do(action: Action, stage: Stage) -> str | None:
    """Returns why a step on a process would change nothing, or ``None`` where it would.

    A plan that counts on a fault which does not bite proves nothing. A person who kills what is dead has only to be
    told so: nothing is done, and nothing goes on record.
    """
    if not isinstance(action, Kill | Stop | Pause | Resume | Start):
        return None
    node_id = resolve(action.node, stage.watch.image, {})
    if node_id is None:
        return None  # the step itself says whom it did not find
    is_running, is_paused = stage.cluster.is_running(node_id), stage.cluster.is_paused(node_id)
    match action:
        case Start():
            return f"node {node_id} runs already" if is_running else None
        case Resume():
            return None if is_paused else f"node {node_id} is not paused"
        case Pause() if is_paused:
            return f"node {node_id} is paused already"
        case _:
            return None if is_running else f"node {node_id} is down already"
