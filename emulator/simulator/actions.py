"""Actions: everything that does not happen by itself, each with all of its choices as arguments.

One text form, a line per action, serves scripts by hand, regression files, shrinking and replay: ``FORMS`` lists them,
and so does ``docs/plans.md`` for users. Node 100 is the controller, 1000 stands for the clients.
"""

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from emulator.core.errors import ConfigError
from emulator.core.types import Acks, NodeId, TopicPartition
from emulator.simulator.disk import Keep, TruncationFate
from emulator.simulator.network import Channel, Way
from emulator.storage.power_loss_plan import NamesFate


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all actions."""


class Wait(_Action, frozen=True, kw_only=True):
    """Let time pass."""

    duration_ms: int


class Produce(_Action, frozen=True, kw_only=True):
    """Offer a batch to the producer with these acks."""

    partition: TopicPartition
    acks: Acks
    records: int


class NodeVerb(Enum):
    """What may be done to nodes without any further choice."""

    KILL = "kill"
    REPLACE_DISK = "replace-disk"
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    SYNC = "sync"
    EXPIRE = "expire"
    ISOLATE = "isolate"
    REJOIN = "rejoin"


class OnNode(_Action, frozen=True, kw_only=True):
    """Do something to nodes, at the same moment."""

    verb: NodeVerb
    nodes: tuple[NodeId, ...]


class PowerLoss(_Action, frozen=True, kw_only=True):
    """Take the power from nodes at the same moment."""

    nodes: tuple[NodeId, ...]
    keep: Keep
    kept: int
    truncation: TruncationFate
    names: NamesFate = NamesFate.KEPT


class CrashWithin(_Action, frozen=True, kw_only=True):
    """Let a broker die in the midst of its next turn that changes logs; by a signal, unless ``loss`` says otherwise."""

    node: NodeId
    after_effects: int
    loss: PowerLoss | None


class ClockRate(_Action, frozen=True, kw_only=True):
    """Let a node's clock run at another rate, in parts per million."""

    node: NodeId
    rate_ppm: int


class LinkVerb(Enum):
    """What may be done to a link."""

    CUT = "cut"
    LOSE_RESPONSES = "lose-responses"
    MEND = "mend"
    RESET = "reset"


class OnLink(_Action, frozen=True, kw_only=True):
    """Do something to the connections that one node dials to another."""

    verb: LinkVerb
    source: NodeId
    destination: NodeId


class Slow(_Action, frozen=True, kw_only=True):
    """Make a link's messages take longer."""

    source: NodeId
    destination: NodeId
    latency_ms: int


class ChannelVerb(Enum):
    """What may be done to messages of one kind."""

    HOLD = "hold"
    RELEASE = "release"
    RELEASE_NEWEST = "release-newest"
    LOSE = "lose"
    DUPLICATE = "duplicate"


class OnChannel(_Action, frozen=True, kw_only=True):
    """Do something to a channel. ``count`` belongs to ``release``; ``None`` there means all."""

    verb: ChannelVerb
    channel: Channel
    count: int | None = None


class Draw(_Action, frozen=True, kw_only=True):
    """Choose what the controller draws for unclean elections."""

    number: int


class MinIsr(_Action, frozen=True, kw_only=True):
    """Set a topic's ``min.insync.replicas``."""

    topic: str
    value: int


class Reassign(_Action, frozen=True, kw_only=True):
    """Move a partition to other replicas; to none: stay where it was."""

    partition: TopicPartition
    replicas: tuple[NodeId, ...]


class Recreate(_Action, frozen=True, kw_only=True):
    """Delete a topic, and create one of the same name on the same brokers."""

    topic: str


class ElrFeature(_Action, frozen=True, kw_only=True):
    """Set the level of feature ``eligible.leader.replicas.version``."""

    level: int


class Heal(_Action, frozen=True, kw_only=True):
    """Mend the network."""


Action: TypeAlias = (
    Wait
    | Produce
    | OnNode
    | PowerLoss
    | CrashWithin
    | ClockRate
    | OnLink
    | Slow
    | OnChannel
    | Draw
    | MinIsr
    | Reassign
    | Recreate
    | ElrFeature
    | Heal
)


class Form(NamedTuple):
    """What an action looks like, by an example, and what it does."""

    example: str
    meaning: str

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.example.split()[0]


FORMS: Final = (
    Form("wait 120", "Virtual milliseconds pass, everything being delivered promptly."),
    Form("produce orders-0 acks=all records=1", "The producer with these acks (`all` or `1`) is offered a batch."),
    Form("kill 1", "Nodes die at the same moment: `kill 0,1` for several. So do all verbs on nodes alone."),
    Form(
        "power-loss 1 keep=prefix kept=2 truncation=kept",
        "Nodes lose power, and with it what was not synced: `keep` (`none`, `prefix`, `torn`, `pages`) and `kept` say "
        "which batches stay, `truncation` (`kept`, `undone`) what becomes of truncations.",
    ),
    Form(
        "power-loss 1 keep=none kept=0 truncation=undone names=undone",
        "With `names=undone`, what was not synced of names comes undone, too.",
    ),
    Form(
        "crash-within 1 after-effects=2",
        "A broker dies in its next turn that opens or changes logs, after two changes of files.",
    ),
    Form(
        "crash-within 1 after-effects=1 keep=none kept=0 truncation=kept",
        "The same by a loss of power; `names=undone` may follow.",
    ),
    Form("replace-disk 1", "Nodes die and get empty disks."),
    Form("start 1", "Nodes that do not run are started."),
    Form("stop 1", "Nodes are asked to shut down in order."),
    Form("pause 1", "Nodes stand still, as by SIGSTOP."),
    Form("resume 1", "Paused nodes go on."),
    Form("sync 1", "The operating system writes out what the nodes' disks have in their caches."),
    Form("clock 1 rate=1100000", "A broker's clock runs at this rate, in parts per million."),
    Form("draw 2", "The controller draws this number for unclean elections from now on."),
    Form("expire 1", "Brokers' heartbeats wait until the controller has fenced them."),
    Form("isolate 1", "Brokers are cut off from the other nodes; clients still reach them."),
    Form("rejoin 1", "Every link of these nodes is mended."),
    Form("cut 0->1", "What 0 dials to 1 is swallowed, in both directions."),
    Form("lose-responses 0->1", "Requests of 0 reach 1, and the answers are swallowed."),
    Form("mend 0->1", "The link is whole again."),
    Form("reset 0->1", "Connections end; requests on their way may still arrive."),
    Form("slow 0->1 ms=40", "Messages of a link take longer."),
    Form("hold 0->100 AlterPartition request", "Messages of this kind, `request` or `response`, wait from now on."),
    Form("release 0->100 AlterPartition request", "All that are held arrive in order, and none is held any longer."),
    Form("release 0->100 AlterPartition request count=1", "As many as counted arrive; the rest is held on."),
    Form(
        "release-newest 100->1 Stream response",
        "The newest overtakes; of the metadata stream, all batches are then applied as one.",
    ),
    Form("lose 0->1 Fetch response", "The oldest held message is lost."),
    Form(
        "duplicate 0->100 AlterPartition request",
        "The oldest held request arrives now, and once more when it is released.",
    ),
    Form("min-isr orders value=1", "An administrator sets `min.insync.replicas`."),
    Form("reassign orders-0 replicas=0,1,3", "An administrator moves a partition."),
    Form("reassign orders-0 replicas=none", "An administrator cancels that."),
    Form("recreate orders", "An administrator deletes a topic and creates it again."),
    Form(
        "elr-feature level=0", "An administrator sets `eligible.leader.replicas.version`; 0 is as unsafe as `elr=off`."
    ),
    Form("heal", "Every link is mended, and everything that is held is released."),
)
"""All of them: every action that there is has a line here that it parses from."""

_ACKS: Final = {"all": Acks.ALL, "0": Acks.NONE, "1": Acks.LEADER}
_REPAIRS: Final = frozenset({NodeVerb.RESUME, NodeVerb.REJOIN})


def is_counted(action: Action) -> bool:
    """Whether an action counts towards a plan's length: time and repairs do not."""
    match action:
        case Wait() | Heal() | OnLink(verb=LinkVerb.MEND):
            return False
        case OnChannel(verb=ChannelVerb.RELEASE, count=None):
            return False
        case OnNode(verb=verb):
            return verb not in _REPAIRS
        case _:
            return True


def format_action(action: Action) -> str:
    """Returns an action's line."""
    match action:
        case Wait(duration_ms=duration_ms):
            return f"wait {duration_ms}"
        case Produce(partition=partition, acks=acks, records=records):
            return f"produce {partition} acks={'all' if acks is Acks.ALL else int(acks)} records={records}"
        case OnNode(verb=verb, nodes=nodes):
            return f"{verb.value} {_ids(nodes)}"
        case PowerLoss(nodes=nodes):
            return f"power-loss {_ids(nodes)} {_loss_words(action)}"
        case CrashWithin(node=node, after_effects=after_effects, loss=loss):
            words = "" if loss is None else f" {_loss_words(loss)}"
            return f"crash-within {node} after-effects={after_effects}{words}"
        case ClockRate(node=node, rate_ppm=rate_ppm):
            return f"clock {node} rate={rate_ppm}"
        case OnLink(verb=verb, source=source, destination=destination):
            return f"{verb.value} {source}->{destination}"
        case Slow(source=source, destination=destination, latency_ms=latency_ms):
            return f"slow {source}->{destination} ms={latency_ms}"
        case OnChannel(verb=verb, channel=channel, count=count):
            return f"{verb.value} {channel}" + ("" if count is None else f" count={count}")
        case Draw(number=number):
            return f"draw {number}"
        case MinIsr(topic=topic, value=value):
            return f"min-isr {topic} value={value}"
        case Reassign(partition=partition, replicas=replicas):
            return f"reassign {partition} replicas={_ids(replicas) or 'none'}"
        case Recreate(topic=topic):
            return f"recreate {topic}"
        case ElrFeature(level=level):
            return f"elr-feature level={level}"
        case Heal():
            return "heal"


def parse_action(line: str) -> Action:
    """Returns the action of a line.

    Raises:
        ConfigError: it is none.
    """
    words = [word for word in line.split() if "=" not in word]
    pairs = dict(word.split("=", 1) for word in line.split() if "=" in word)
    try:
        action = _parse(words[0], words[1:], pairs)
    except (ValueError, KeyError, IndexError):
        action = None
    if action is None or format_action(action).split() != line.split():
        raise _complaint(line)
    return action


def _complaint(line: str) -> ConfigError:
    verb = line.split()[0] if line.split() else ""
    examples = [form.example for form in FORMS if form.verb == verb]
    if examples:
        return ConfigError(key=verb, value=line, expected=" or ".join(f"a line as '{each}'" for each in examples))
    verbs = dict.fromkeys(form.verb for form in FORMS)
    return ConfigError(key=verb, value=None, expected=f"cluster, topic, or an action: {', '.join(verbs)}")


def _parse(verb: str, words: list[str], pairs: dict[str, str]) -> Action | None:
    match verb, words:
        case "wait", [duration]:
            return Wait(duration_ms=int(duration))
        case "produce", [partition]:
            return Produce(partition=_partition(partition), acks=_ACKS[pairs["acks"]], records=int(pairs["records"]))
        case "power-loss", [nodes]:
            return _loss(_nodes(nodes), pairs)
        case "crash-within", [node]:
            return CrashWithin(
                node=NodeId(int(node)),
                after_effects=int(pairs["after-effects"]),
                loss=_loss(_nodes(node), pairs) if "keep" in pairs else None,
            )
        case "clock", [node]:
            return ClockRate(node=NodeId(int(node)), rate_ppm=int(pairs["rate"]))
        case "slow", [link]:
            return Slow(source=_end(link, 0), destination=_end(link, 1), latency_ms=int(pairs["ms"]))
        case "draw", [number]:
            return Draw(number=int(number))
        case "min-isr", [topic]:
            return MinIsr(topic=topic, value=int(pairs["value"]))
        case "reassign", [partition]:
            replicas = pairs["replicas"]
            return Reassign(partition=_partition(partition), replicas=() if replicas == "none" else _nodes(replicas))
        case "recreate", [topic]:
            return Recreate(topic=topic)
        case "elr-feature", []:
            return ElrFeature(level=int(pairs["level"]))
        case "heal", []:
            return Heal()
        case _, [link, api, way]:
            channel = Channel(_end(link, 0), _end(link, 1), api, Way(way))
            count = int(pairs["count"]) if "count" in pairs else None
            return OnChannel(verb=ChannelVerb(verb), channel=channel, count=count)
        case _, [target] if "->" in target:
            return OnLink(verb=LinkVerb(verb), source=_end(target, 0), destination=_end(target, 1))
        case _, [target]:
            return OnNode(verb=NodeVerb(verb), nodes=_nodes(target))
        case _:
            return None


def _loss(nodes: tuple[NodeId, ...], pairs: dict[str, str]) -> PowerLoss:
    return PowerLoss(
        nodes=nodes,
        keep=Keep(pairs["keep"]),
        kept=int(pairs["kept"]),
        truncation=TruncationFate(pairs["truncation"]),
        names=NamesFate(pairs.get("names", NamesFate.KEPT.value)),
    )


def _loss_words(loss: PowerLoss) -> str:
    words = f"keep={loss.keep.value} kept={loss.kept} truncation={loss.truncation.value}"
    return words if loss.names is NamesFate.KEPT else f"{words} names={loss.names.value}"


def _partition(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    return TopicPartition(topic, int(index))


def _nodes(word: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(node)) for node in word.split(","))


def _end(link: str, position: int) -> NodeId:
    return NodeId(int(link.split("->")[position]))


def _ids(nodes: tuple[NodeId, ...]) -> str:
    return ",".join(str(node) for node in nodes)
