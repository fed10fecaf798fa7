"""Words and numbers as reports write them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.report.axes import US_PER_S
from laststand.emulator.report.numbers import number
from laststand.emulator.verification.story.run import BrokenLink, Fault, Heal, RunStory

ACKS_ALL: Final = -1

CLIENTS: Final = 1000
"""The clients as an end of links."""

DASH: Final = "\N{EN DASH}"
_EVERYTHING: Final = "all"
_ANY_LINK_FAULT: Final = "heal"
_STARTS: Final = frozenset({"kill", "stop", "power_loss", "replace_disk"})
"""Faults that end when the node is started again, which is recorded as what it is."""

_FAULTS: Final = {
    "isolate": "cut off {}",
    "power_loss": "power loss, {}",
    "replace_disk": "new disk, {}",
    "slow_disk": "slow disk, {}",
    "lose_responses": "lose responses, {}",
}
_ELECTIONS: Final = {
    events.Election.ISR: "as a member of the ISR",
    events.Election.ELR: "as an eligible leader replica",
    events.Election.LAST_KNOWN_LEADER: "as the last known leader",
    events.Election.UNCLEAN: "uncleanly",
}
_BRIEF_S: Final = 0.5


def seconds(time_us: int) -> str:
    """Returns a time in seconds with one decimal; a time under half a second with three."""
    value = time_us / US_PER_S
    return f"{value:.3f} s" if 0 < value < _BRIEF_S else f"{value:.1f} s"


def listed(words: Sequence[str]) -> str:
    """Returns words with commas and an *and*."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def brokers(ids: Collection[int]) -> str:
    """Returns brokers by name."""
    ordered = [str(broker) for broker in sorted(ids)]
    return f"broker{'' if len(ordered) == 1 else 's'} {listed(ordered)}"


def members(ids: Iterable[int]) -> str:
    """Returns members of an ISR or ELR."""
    return " ".join(map(str, ids)) or "empty"


def capitalized(words: str) -> str:
    """Returns words as a sentence begins."""
    return words[:1].upper() + words[1:]


def election_words(election: events.Election) -> str:
    """Returns an election in words; empty if there was none."""
    return _ELECTIONS.get(election, "")


def dashed(first: int, last: int) -> str:
    """Returns a range of offsets, both ends inclusive."""
    return f"{number(first)}{DASH}{number(last)}"


def offset_ranges(offsets: Sequence[tuple[int, int]]) -> str:
    """Returns ranges of offsets, both ends inclusive; records whose producers received no offset have no range."""
    if not offsets:
        return "unknown"
    first, last = offsets[0][0], offsets[-1][1]
    span = number(first) if first == last else f"{number(first)} to {number(last)}"
    return span if len(offsets) == 1 else f"{span} in {len(offsets)} ranges"


def channel_of(fault: Fault) -> str:
    """Returns the messages of its link that a fault affects; empty if it affects all."""
    return fault.target.partition(" ")[2] if fault.links else ""


class NodeNames:
    """The names of the nodes in a run."""

    def __init__(self, story: RunStory) -> None:
        self._broken_links = {fault.target: fault for fault in story.faults if fault.links}
        self._controllers = sorted({each.node for each in story.processes if each.role == "controller"})
        self._kafka_clients = story.kafka_clients
        self._zookeeper = {each.node for each in story.processes if each.role == "zookeeper"}

    def name(self, node: int) -> str:
        """Returns the name of a node."""
        if node == CLIENTS:
            return "the clients"
        if node in self._kafka_clients:
            return f"client {self._kafka_clients[node]}"
        if node in self._zookeeper:
            return "ZooKeeper"
        if node in self._controllers:
            return "the controller" if len(self._controllers) == 1 else f"controller {node}"
        return f"broker {node}"

    def target(self, fault: Fault) -> str:
        """Returns the target of a fault, in words."""
        if fault.nodes:
            return listed([self.name(node) for node in fault.nodes])
        if not fault.links:
            return fault.target
        channel = channel_of(fault)
        return listed([self.link(link) for link in fault.links]) + (f" ({channel})" if channel else "")

    def link(self, link: BrokenLink) -> str:
        """Returns the name of a link."""
        return f"{self.name(link.source)} to {self.name(link.target)}"

    def fault_label(self, fault: Fault) -> str:
        """Returns the label of a fault."""
        return _FAULTS.get(fault.fault, fault.fault.replace("_", " ") + " {}").format(self.target(fault))

    def heal_label(self, heal: Heal) -> str:
        """Returns the label of a repair."""
        if heal.target in self._broken_links:
            return f"heal {self.target(self._broken_links[heal.target])}"
        target = self.name(int(heal.target)) if heal.target.isdigit() else heal.target
        if heal.target == _EVERYTHING:
            is_of_one_kind = heal.fault not in (_EVERYTHING, _ANY_LINK_FAULT)
            return f"end of every {heal.fault.replace('_', ' ')}" if is_of_one_kind else "heal everything"
        if heal.fault == "pause":
            return f"resume {target}"
        return f"heal {target}" if heal.fault == _ANY_LINK_FAULT else f"end of {heal.fault.replace('_', ' ')}, {target}"


def faults_and_repairs(story: RunStory) -> list[tuple[int, str, str]]:
    """Returns the plan's faults and repairs: time, a few words, and the observed effect; each once."""
    names = NodeNames(story)
    found = [(fault.begun_us, names.fault_label(fault), fault.effect or "it had no effect") for fault in story.faults]
    found += [(heal.begun_us, names.heal_label(heal), "") for heal in story.heals if _has_mended(heal, story)]
    found += [
        (process.started_us, f"start {names.name(process.node)}", "")
        for process in story.processes
        if process.incarnation > 0
    ]
    return sorted(dict.fromkeys(found), key=lambda each: each[0])


def _has_mended(heal: Heal, story: RunStory) -> bool:
    """Returns whether a step repaired a temporary fault; a start counts even if nothing was broken."""
    return heal.fault not in _STARTS and any(
        fault.begun_us < heal.begun_us == fault.healed_us
        and heal.fault in (_EVERYTHING, _ANY_LINK_FAULT, fault.fault)
        and heal.target in (_EVERYTHING, fault.target)
        for fault in story.faults
    )
