"""One function per check of ``docs/checks.md``. Each yields a finding in words for every case that it does not exempt.

Checks of replicas' events are silent where Apache Kafka's nodes wrote none. Deleted topics promise nothing more.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from tests.independent.guarantee import is_broken
from tests.independent.kafka_log import Batch, FinalLog
from tests.independent.run import Cut, Key, Line, Run, Send, Takeover

Check = Callable[[Run], Iterator[str]]


def acknowledged(run: Run, key: Key) -> list[Send]:
    """Returns what was acknowledged with acks=all of a partition, with an offset."""
    return [
        send
        for send in run.sends
        if send.key == key and send.acks == -1 and send.result == "ok" and send.base_offset is not None
    ]


def epoch_of(run: Run, send: Send) -> int:
    """Returns the leader epoch in which an acknowledged batch was appended: by its leader's log, or its attempts."""
    epochs = [batch.leader_epoch for _, _, batch in run.appended[send.key] if batch.place in send.places]
    return min(epochs, default=max((each["leader_epoch"] or 0 for each in send.attempts), default=0))


def is_removed(run: Run, key: Key, places: frozenset[tuple[int, int]]) -> bool:
    """Returns whether a batch was deleted on purpose, as it was appended last, by a broker that had it."""
    latest = max((batch.leader_epoch for _, _, batch in run.appended[key] if batch.place in places), default=None)
    return any(batch.place in places and latest in (None, batch.leader_epoch) for batch in run.removed[key])


def lost_sends(run: Run) -> Iterator[tuple[Send, str, Takeover | None]]:
    """Yields acknowledged batches that are not where they must be, why, and the first leader that lacked them."""
    for key in run.kept():
        settled = run.settled(key)
        logs = run.logs[key]
        places = {node: {batch.place for batch in log.batches} for node, log in logs.items()}
        for send in acknowledged(run, key):
            if is_removed(run, key, send.places):
                continue
            epoch = max((each["leader_epoch"] or 0 for each in send.attempts), default=0)
            epoch = max(_answered_in(run, send), default=epoch)
            lacking = _first_lacking(run, key, send, epoch_of(run, send), epoch)
            holders = [node for node in logs if places[node] & send.places]
            final = run.final_reads.get(key)
            if lacking is not None:
                yield send, f"broker {lacking.node} led in epoch {lacking.leader_epoch} without it", lacking
            elif settled is not None and settled[0] in logs and settled[0] not in holders:
                yield send, f"settled leader {settled[0]} lacks it", None
            elif logs and not holders:
                yield send, "it is gone everywhere", None
            elif (
                final is not None
                and settled is not None
                and _is_owed(run, send, final[1])
                and not _was_read(run, key, send)
            ):
                yield send, "the final consumer did not read it", None


def _answered_in(run: Run, send: Send) -> list[int]:
    """Returns the leader epochs of the broker when it acknowledged: it may have been deposed and elected since."""
    return [
        line["leader_epoch"]
        for lines in run.files.values()
        for line in lines
        if _acknowledges(line, send) and line["leader_epoch"] is not None
    ]


def _acknowledges(line: Line, send: Send) -> bool:
    """Returns whether an event is the answer that acknowledged a batch; other batches may have had its offset."""
    return line["type"] == "ProduceAnswered" and (
        line["cause_id"],
        line["topic"],
        line["partition"],
        line["acks"],
        line["error"],
        line["base_offset"],
    ) == (send.operation_id, send.key.topic, send.key.partition, -1, "NONE", send.base_offset)


def acked_durable(run: Run) -> Iterator[str]:
    """D1."""
    for send, why, _ in lost_sends(run):
        yield f"{send.key} offsets {send.base_offset}-{send.last_offset}: {why}"


def _first_lacking(run: Run, key: Key, send: Send, appended_in: int, acked_in: int) -> Takeover | None:
    for takeover in sorted(run.takeovers[key], key=lambda each: (each.leader_epoch, each.incarnation)):
        is_later = takeover.leader_epoch > max(appended_in, acked_in) or (
            takeover.leader_epoch == acked_in
            and takeover.has_led
            and any(attempt["node"] == takeover.node and attempt["outcome"] == "NONE" for attempt in send.attempts)
            and _was_appended_before(run, send, takeover)
        )
        if is_later and takeover.lacks(send.places):
            return takeover
    return None


def _was_appended_before(run: Run, send: Send, takeover: Takeover) -> bool:
    """Returns whether a former process of a broker that leads again had acknowledged a batch."""
    return any(
        _acknowledges(line, send)
        for (node, incarnation), lines in run.files.items()
        if node == takeover.node and incarnation < takeover.incarnation
        for line in lines
    )


def _is_owed(run: Run, send: Send, end: int) -> bool:
    """Returns whether the final consumer must have read a batch: a high watermark may be behind until all settles."""
    return run.has_settled or send.last_offset < end


def _was_read(run: Run, key: Key, send: Send) -> bool:
    read = {batch.place for poll in run.polls if poll.key == key and poll.phase == "final" for batch in poll.batches}
    return bool(read & send.places)


def leader_completeness(run: Run) -> Iterator[str]:
    """D2."""
    for key in run.states:
        for takeover in run.takeovers[key]:
            for commit in run.commits[key]:
                is_earlier = commit.leader_epoch < takeover.leader_epoch or (
                    takeover.has_led
                    and commit.node == takeover.node
                    and commit.leader_epoch == takeover.leader_epoch
                    and commit.incarnation < takeover.incarnation
                )
                if (
                    is_earlier
                    and takeover.log_end_offset < commit.high_watermark
                    and not run.unclean_between(key, commit.leader_epoch, takeover.leader_epoch)
                ):
                    yield (
                        f"{key}: broker {takeover.node} began to lead in epoch {takeover.leader_epoch} with a log that "
                        f"ended at {takeover.log_end_offset}, though the high watermark had been at "
                        f"{commit.high_watermark} in epoch {commit.leader_epoch}"
                    )
                    break


def no_global_loss(run: Run) -> Iterator[str]:
    """D4."""
    for key in run.kept():
        places = {batch.place for log in run.logs[key].values() for batch in log.batches}
        if not run.logs[key]:
            continue
        held = defaultdict(set)
        for node, _, batch in run.appended[key]:
            held[batch.place].add(node)
        for send in acknowledged(run, key):
            if places & send.places or is_removed(run, key, send.places):
                continue
            holders = {node for place in send.places for node in held[place]}
            lost = {node for node, place in run.lost_with_disk[key] if place in send.places}
            if holders - lost:
                yield f"{key} offsets {send.base_offset}-{send.last_offset}: no log has it, {sorted(holders)} held it"


def consumed_stable(run: Run) -> Iterator[str]:
    """D5."""
    for key in run.states:
        settled = run.settled(key) if key in set(run.kept()) else None
        log = run.logs[key].get(settled[0]) if settled is not None else None
        final = {batch.place for batch in log.batches} if log is not None else None
        for place, appended_in, epoch, process in sorted({
            (batch.place, batch.leader_epoch, max(batch.leader_epoch, poll.leader_epoch or 0), poll.process)
            for poll in run.polls if poll.key == key
            for batch in poll.batches
        }):  # fmt: skip
            if any(removed.place == place and removed.leader_epoch == appended_in for removed in run.removed[key]):
                continue
            lacking = next(
                (
                    each
                    for each in run.takeovers[key]
                    if (each.leader_epoch > epoch or _had_committed(run, key, each, place, epoch))
                    and (each.lacks(frozenset({place})) or _lacks_at_the_end(run, key, each, place))
                ),
                None,
            )
            if lacking is not None:
                yield (
                    f"{key} offset {place[0]}, given to {process}: broker {lacking.node} led without it in "
                    f"epoch {lacking.leader_epoch}"
                )
            elif final is not None and place not in final:
                yield f"{key} offset {place[0]}, given to {process}: the settled leader lacks it"


def _lacks_at_the_end(run: Run, key: Key, takeover: Takeover, place: tuple[int, int]) -> bool:
    """Returns whether the final log of a process that led, and has cut off nothing since, lacks a batch.

    Its disk may have given back other bytes than its events say.
    """
    log = run.logs[key].get(takeover.node)
    return (
        log is not None
        and takeover.incarnation == max(number for node, number in run.files if node == takeover.node)
        and log.log_start_offset <= place[0]
        and place not in {batch.place for batch in log.batches}
        and not any(
            cut.node == takeover.node and cut.leader_epoch > takeover.leader_epoch and cut.new_end_offset <= place[0]
            for cut in run.cuts[key]
        )
    )


def _had_committed(run: Run, key: Key, takeover: Takeover, place: tuple[int, int], epoch: int) -> bool:
    """Returns whether a former process of a broker that leads again had committed a batch in that epoch."""
    return takeover.leader_epoch == epoch and any(
        place in {batch.place for batch in commit.batches}
        for commit in run.commits[key]
        if (commit.node, commit.leader_epoch) == (takeover.node, epoch) and commit.incarnation < takeover.incarnation
    )


def log_matching(run: Run) -> Iterator[str]:
    """D6."""
    for key in run.kept():
        logs = run.logs[key]
        settled = run.settled(key)
        marks = {node: _last_mark(run, key, node, log) for node, log in logs.items()}
        if not logs:
            continue
        reference = (
            settled[0] if settled is not None and settled[0] in logs else max(marks, key=lambda node: marks[node])
        )
        for node, log in logs.items():
            start = max(log.log_start_offset, logs[reference].log_start_offset)
            end = min(marks[node], marks[reference])
            mine, theirs = ({each[:4] for each in one.batches if each.base_offset >= start and each.last_offset < end}
                            for one in (log, logs[reference]))  # fmt: skip
            if mine != theirs:
                yield f"{key}: brokers {node} and {reference} differ below {end}: {sorted(mine ^ theirs)[:2]}"


def _last_mark(run: Run, key: Key, node: int, log: FinalLog) -> int:
    marks = run.high_watermarks[key, node]
    return min(marks[-1][1], log.log_end_offset) if marks else 0


def lineage_matching(run: Run) -> Iterator[str]:
    """D7."""
    for key in run.states:
        found: dict[tuple[int, int], set[Batch]] = defaultdict(set)
        stored = [batch for log in run.logs[key].values() for batch in log.batches]
        for batch in [*(each for _, _, each in run.appended[key]), *stored]:
            found[batch.base_offset, batch.leader_epoch].add(batch)
        for (offset, epoch), batches in sorted(found.items()):
            contents = {batch.place for batch in batches}
            if len(contents) > 1 and not is_removed(run, key, frozenset(contents)):
                yield f"{key} offset {offset} of epoch {epoch} is not one batch: {sorted(contents)}"


def _everything(run: Run, key: Key) -> Iterator[tuple[str, Batch]]:
    for node, log in run.logs[key].items():
        for batch in log.batches:
            yield f"the final log of broker {node}", batch
    for node, role, batch in run.appended[key]:
        if role == "leader":
            yield f"leader {node}", batch
    for poll in run.polls:
        if poll.key == key:
            for batch in poll.batches:
                yield poll.process, batch


def no_phantom(run: Run) -> Iterator[str]:
    """D10."""
    sent: dict[tuple[str, int], set[int]] = defaultdict(set)
    for send in run.sends:
        sent[send.key.topic, send.key.partition] |= send.crcs
    for key in run.states:
        if key.topic in ("__consumer_offsets", "__transaction_state"):
            continue
        markers = {each.crc for _, _, each in run.appended[key] if each.producer_id >= 0 > each.base_sequence}
        for where, batch in _everything(run, key):
            if batch.crc not in markers and batch.crc not in sent[key.topic, key.partition]:
                yield f"{key} offset {batch.base_offset}: {where} has a batch that no producer sent"


def no_aborted_read(run: Run) -> Iterator[str]:
    """D11."""
    refused: dict[tuple[str, int], set[int]] = defaultdict(set)
    for send in run.sends:
        if send.result == "fail":
            refused[send.key.topic, send.key.partition] |= send.crcs
    for send in run.sends:  # a client of Kafka sends a batch that was refused again as it is
        if send.result != "fail" and send.process.startswith("kafka:"):
            refused[send.key.topic, send.key.partition] -= send.crcs
    for key in run.states:
        for where, batch in _everything(run, key):
            if batch.crc in refused[key.topic, key.partition] and not where.startswith("leader"):
                yield f"{key} offset {batch.base_offset}: {where} has a batch that was refused for certain"


def _settled_logs(run: Run) -> Iterator[tuple[Key, FinalLog]]:
    for key in run.kept():
        settled = run.settled(key)
        if settled is not None and settled[0] in run.logs[key]:
            yield key, run.logs[key][settled[0]]


def no_duplicate(run: Run) -> Iterator[str]:
    """D12."""
    attempts: Counter[int] = Counter()
    for send in run.sends:
        attempts.update(attempt["crc"] for attempt in send.attempts)
    for key, log in _settled_logs(run):
        if key.topic == "__consumer_offsets":
            continue
        numbered = Counter(batch[4:7] for batch in log.batches if batch.producer_id >= 0 <= batch.base_sequence)
        for (producer, epoch, sequence), count in numbered.items():
            if count > 1:
                yield f"{key}: producer {producer} epoch {epoch} sequence {sequence} is in the log {count} times"
        for crc, count in Counter(batch.crc for batch in log.batches if batch.producer_id < 0).items():
            if count > attempts[crc] > 0:
                yield f"{key}: the batch with CRC {crc} is in the log {count} times, after {attempts[crc]} attempts"


def producer_order(run: Run) -> Iterator[str]:
    """D13."""
    for key, log in _settled_logs(run):
        last: dict[tuple[int, int], int] = {}
        for batch in log.batches:
            if batch.producer_id >= 0 and batch.base_sequence >= 0:
                producer = batch.producer_id, batch.producer_epoch
                fall = last.get(producer, -1) - batch.base_sequence
                if 0 < fall < 1 << 30:  # after 2^31 - 1 the numbers begin again at 0
                    yield (
                        f"{key} offset {batch.base_offset}: sequence {batch.base_sequence} comes after {last[producer]}"
                    )
                last[producer] = batch.base_sequence


def real_time(run: Run) -> Iterator[str]:
    """D14."""
    for key in run.kept():
        sends = acknowledged(run, key)
        for file in sorted({send.file for send in sends}):
            moments = [(send.begun, 0, send) for send in sends if send.file == file]
            moments += [(send.ended, 1, send) for send in sends if send.file == file]
            highest = -1
            floor: dict[int, int] = {}
            for _, is_end, send in sorted(moments, key=lambda each: each[:2]):
                if not is_end:
                    floor[send.begun] = highest
                    continue
                if send.base_offset is not None and send.base_offset <= floor[send.begun]:
                    yield (
                        f"{key} offset {send.base_offset} was given to a batch sent after {floor[send.begun]} was "
                        f"acknowledged"
                    )
                highest = max(highest, send.last_offset)


def truncation_safe(run: Run) -> Iterator[str]:
    """D15."""
    for key in run.states:
        committed: dict[tuple[int, int, int], int] = {}
        for commit in run.commits[key]:
            for batch in commit.batches:
                what = (*batch.place, batch.leader_epoch)
                committed[what] = min(committed.get(what, commit.leader_epoch), commit.leader_epoch)
        for cut in run.cuts[key]:
            if cut.reason == "recovered":
                continue
            for batch in cut.batches:
                epoch = committed.get((*batch.place, batch.leader_epoch))
                if epoch is not None and _is_unsafe(run, key, cut, batch, epoch):
                    yield (
                        f"{key}: broker {cut.node} cut off committed offset {batch.base_offset} in epoch "
                        f"{cut.leader_epoch}"
                    )


def _is_unsafe(run: Run, key: Key, cut: Cut, batch: Batch, committed_in: int) -> bool:
    return (
        committed_in < cut.leader_epoch
        and batch not in run.removed[key]
        and not run.unclean_between(key, committed_in, cut.leader_epoch)
    )


def visible_below_high_watermark(run: Run) -> Iterator[str]:
    """D16."""
    for poll in run.polls:
        marks = run.high_watermarks[poll.key, poll.node]
        if poll.leader_epoch is None or not marks:
            continue
        highest = max(mark for epoch, mark in marks if epoch is None or epoch <= poll.leader_epoch)
        for batch in poll.batches:
            if batch.base_offset >= highest:
                yield (
                    f"{poll.key} offset {batch.base_offset}: broker {poll.node} gave it to {poll.process} above "
                    f"{highest}"
                )


def consumer_order(run: Run) -> Iterator[str]:
    """C1."""
    expected: dict[tuple[str, str, int], int] = {}
    for poll in run.polls:
        who = poll.process, poll.key.topic, poll.key.partition
        if poll.is_seek or who not in expected:
            expected[who] = poll.position
        for batch in poll.batches:
            if batch.base_offset != expected[who]:
                verb = "skipped" if batch.base_offset > expected[who] else "repeated"
                yield f"{poll.process} on {poll.key} {verb} offsets at {batch.base_offset}"
            expected[who] = batch.last_offset + 1


def poll_skip(run: Run) -> Iterator[str]:
    """C2."""
    for key in run.kept():
        if key not in run.final_reads:
            continue
        start, end = run.final_reads[key]
        seen: dict[tuple[int, int], int] = {}
        for batch in (each for poll in run.polls if poll.key == key for each in poll.batches):
            seen[batch.place] = min(batch.base_offset, seen.get(batch.place, batch.base_offset))
        for send in acknowledged(run, key):
            begin = send.base_offset
            assert begin is not None
            is_seen = any(place in seen and seen[place] <= begin for place in send.places)
            if start <= begin and send.last_offset < end and not is_seen:
                yield f"{key} offset {send.base_offset} reached no consumer, though the final one read up to {end}"


def client_high_watermark(run: Run) -> Iterator[str]:
    """C3."""
    read: dict[tuple[str, Key], Batch] = {}
    refused: set[tuple[str, Key]] = set()
    for poll in run.polls:
        who = poll.process, poll.key
        if poll.error is not None:
            if poll.error == "OFFSET_OUT_OF_RANGE":
                refused.add(who)
            continue
        is_back = poll.is_seek and who in refused and who in read and poll.position <= read[who].last_offset
        if is_back and not is_removed(run, poll.key, frozenset({read[who].place})):
            yield f"{poll.process} on {poll.key} read up to {read[who].last_offset} and went on from {poll.position}"
        refused.discard(who)
        if poll.batches:
            read[who] = poll.batches[-1]


def losses_are_broken(run: Run) -> Iterator[bool]:
    """Yields of each lost batch whether it was lost within the guarantee."""
    for send, _, lacking in lost_sends(run):
        until = None if lacking is None else _began_at(run, send.key, lacking)
        yield is_broken(run, send.key, from_offset=_acked_at(run, send), until_offset=until)


def _began_at(run: Run, key: Key, takeover: Takeover) -> int | None:
    """Returns the metadata offset at which a term began: of its election, or of the restarted leader's registration."""
    if not takeover.has_led:
        epoch = takeover.leader_epoch
        return next((each["metadata_offset"] for each in run.states[key] if each["leader_epoch"] == epoch), None)
    ended = next(
        line["metadata_offset"] or 0
        for line in run.harness
        if line["type"] == "IncarnationEnded"
        and (line["ended_node"], line["ended_incarnation"]) == (takeover.node, takeover.incarnation - 1)
    )
    registrations = (
        line["metadata_offset"]
        for line in run.metadata
        if line["type"] == "BrokerRegistered" and line["broker_id"] == takeover.node
    )
    return next((offset for offset in registrations if offset >= ended), None)


def _acked_at(run: Run, send: Send) -> int:
    """Returns the metadata that the acknowledging broker had applied, exclusive; 0 where its answer is missing."""
    for lines in run.files.values():
        applied = 0
        for line in lines:
            if line["type"] == "MetadataApplied":
                applied = line["end_offset"]
            elif _acknowledges(line, send):
                return applied
    return 0


def _ends(run: Run) -> dict[Key, dict[int, list[int | None]]]:
    """Returns which ends the batches of transactions have in settled logs, by CRC; ``None`` where there is none yet."""
    found: dict[Key, dict[int, list[int | None]]] = {}
    for key, log in _settled_logs(run):
        ends = found[key] = defaultdict(list)
        for place, batch in enumerate(log.batches):
            if batch.is_transactional and batch.end < 0:
                after = (each.end for each in log.batches[place:] if each.producer_id == batch.producer_id)
                ends[batch.crc].append(next((end for end in after if end >= 0), None))
    return found


def _sent_in(run: Run, transaction: Line) -> list[Send]:
    return [send for send in run.sends if send.operation_id in transaction["sends"]]


def _ends_of(run: Run, transaction: Line) -> set[int]:
    ends = _ends(run)
    return {
        end
        for send in _sent_in(run, transaction)
        for crc in send.crcs
        for end in ends.get(send.key, {}).get(crc, ())
        if end is not None
    }


def no_aborted_record(run: Run) -> Iterator[str]:
    """X1."""
    for name, transaction in run.transactions.items():
        is_told = transaction["type"] == "fail" or (transaction["type"], transaction["result"]) == ("ok", "abort")
        if is_told or 0 in _ends_of(run, transaction):
            crcs = {crc for send in _sent_in(run, transaction) for crc in send.crcs}
            for key, read in run.committed_reads:
                for batch in read["batches"]:
                    if batch["crc"] in crcs:
                        yield f"{read['process']} was given {key} offset {batch['base_offset']}, of {name}"


def one_end(run: Run) -> Iterator[str]:
    """X2."""
    for name, transaction in run.transactions.items():
        if len(_ends_of(run, transaction)) > 1:
            yield f"{name} is committed in one partition and aborted in another"


def committed_stays(run: Run) -> Iterator[str]:
    """X3."""
    ends = _ends(run)
    for name, transaction in run.transactions.items():
        if (transaction["type"], transaction["result"]) != ("ok", "commit"):
            continue
        for send in _sent_in(run, transaction):
            if send.result == "ok" and send.key in ends:
                found = [end for crc in send.crcs for end in ends[send.key].get(crc, [])]
                if found != [1] and (found or not is_removed(run, send.key, send.places)):
                    yield f"{send.key} offset {send.base_offset}, of {name}: its ends are {found}"


CHECKS: Final[dict[str, Check]] = {
    "D1": acked_durable,
    "D2": leader_completeness,
    "D4": no_global_loss,
    "D5": consumed_stable,
    "D6": log_matching,
    "D7": lineage_matching,
    "D10": no_phantom,
    "D11": no_aborted_read,
    "D12": no_duplicate,
    "D13": producer_order,
    "D14": real_time,
    "D15": truncation_safe,
    "D16": visible_below_high_watermark,
    "C1": consumer_order,
    "C2": poll_skip,
    "C3": client_high_watermark,
    "X1": no_aborted_record,
    "X2": one_end,
    "X3": committed_stays,
}
