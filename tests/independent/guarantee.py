"""The guarantee: whether the faults stayed within what min ISR covers, as ``docs/verdict.md`` defines it."""

from tests.independent.run import Key, Line, Run

UNCLEAN_ENDS = ("killed", "power_lost", "unexpected")


def is_broken(run: Run, key: Key, *, from_offset: int, until_offset: int | None) -> bool:
    """Returns whether a loss between two metadata offsets lies within the guarantee.

    Args:
        run: all evidence.
        key: the partition.
        from_offset: metadata that the broker had applied that acknowledged the records, exclusive.
        until_offset: of the election of the first leader without them; ``None`` is the end of the run.
    """
    end = until_offset if until_offset is not None else 1 << 62
    states = run.states[key]
    within = [state for state in states if from_offset <= state["metadata_offset"] <= end]
    before = [state for state in states if state["metadata_offset"] < from_offset][-1:]
    if any(_is_accepted(run, key, state) for state in within):
        return False
    allowed = min((_min_isr(run, key, state, from_offset) for state in before + within), default=1) - 1
    moments = {from_offset, *(state["metadata_offset"] for state in within)}
    outstanding = _outstanding(run, key)
    moments |= {begin for _, begin, _ in outstanding if from_offset <= begin <= end}
    return all(len({node for node, begin, back in outstanding if begin <= at < back}) <= allowed for at in moments)


def _outstanding(run: Run, key: Key) -> list[tuple[int, int, int]]:
    """Returns replicas that ended without a clean shutdown: node, since when and until when, as metadata offsets."""
    found = []
    for line in run.harness:
        if line["type"] != "IncarnationEnded" or line["ended_node"] in run.controllers:
            continue
        node, incarnation = line["ended_node"], line["ended_incarnation"]
        process = run.files.get((node, incarnation), [])
        was_registered = any(each.get("broker_epoch") is not None for each in process)
        if line["end"] not in UNCLEAN_ENDS and (was_registered or not process):
            continue
        begin = line["metadata_offset"] if line["metadata_offset"] is not None else 0
        registered = [
            each["metadata_offset"]
            for each in run.metadata
            if each["type"] == "BrokerRegistered" and each["broker_id"] == node and each["metadata_offset"] >= begin
        ]
        back = 1 << 62
        if registered:
            returns = [
                state["metadata_offset"]
                for state in run.states[key]
                if node in state["isr"]
                and state["metadata_offset"] > registered[0]
                and (state["reason"] == "alter_partition" or state["leader"] == node)
            ]
            back = min(returns, default=back)
        if any(node in state["replicas"] for state in run.states[key]):
            found.append((node, begin, back))
    return found


def _min_isr(run: Run, key: Key, state: Line, from_offset: int) -> int:
    """Returns the least min ISR up to a state, from the metadata on that the acknowledging broker had applied."""
    values: list[int] = []
    value: int = state["effective_min_isr"]
    for line in run.metadata:
        if line["metadata_offset"] > max(state["metadata_offset"], from_offset - 1):
            break
        if (line["type"], line.get("name"), line.get("resource")) != ("ConfigChanged", "min.insync.replicas", "topic"):
            continue
        if line["resource_name"] == key.topic and line["value"] is not None:
            if line["metadata_offset"] >= from_offset:
                values.append(value)
            value = int(line["value"])
    return min(*values, value, len(state["replicas"]))


def _is_accepted(run: Run, key: Key, state: Line) -> bool:
    """Returns whether somebody accepted that an election may lose records: a setting, or an administrator."""
    if state["election"] not in ("unclean", "last_known_leader"):
        return False
    asked = any(str(key) in line.get("unclean_elections", ()) for line in run.harness)
    settings = {"unclean.leader.election.enable": "true", "unclean.recovery.strategy": "Aggressive"}
    allowed = any(
        line["type"] == "ConfigChanged" and line["name"] in settings and line["value"] not in (None, "false", "None")
        for line in run.metadata
    )
    properties = [lines[0].get("properties", {}) for lines in run.files.values()]
    allowed |= any(each.get(name) == value for each in properties for name, value in settings.items())
    return asked or allowed or state["election"] == "unclean"
