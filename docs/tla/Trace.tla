------------------------------- MODULE Trace -------------------------------
(***************************************************************************)
(* Does a run follow the specification?  `laststand export --to tla`       *)
(* writes what nodes recorded as Runs: for each partition of each run the  *)
(* lines that concern it, in order.  A line is taken by the action of its  *)
(* name, which goes by the rules of Replication.  Where a line cannot be   *)
(* taken, the trace is rejected there.                                     *)
(*                                                                         *)
(* A line is one event.  So what Replication does in one step takes        *)
(* several here: a fetch changes a follower's log, and the leader's high   *)
(* watermark later.  What a leader knows of its followers is in no event,  *)
(* but for those of a high watermark that moves: it must then have been    *)
(* true at some time of the term.                                          *)
(***************************************************************************)
EXTENDS Replication, Integers, TLC

CONSTANT Runs   \* A sequence of traces; a trace is a sequence of lines.

VARIABLES
    run,        \* Which trace this is,
    lines,      \* and its lines: evaluated once, as TLC would evaluate Runs in each step.
    next,       \* Its next line.
    rejected,   \* The line could not be taken.
    history,    \* States of the partition as committed, with metadata offsets.
    applied,    \* The end of the metadata that each process has applied.
    wasStopped, \* Whether the process before ended in order.
    terms,      \* Of each leader epoch that began: the leader's log in it, and its high watermark.
    reached     \* How far each replica's log agreed with that of the term it follows, at best: term and offset.

followed == <<partition, registered, up, epoch, view, pending, storage, committed, history, applied, wasStopped, terms,
              reached>>

Line == lines[next]
B == Line.broker
Zeros == [b \in Brokers |-> 0]

(* A log is a sequence of batches here, not of records.                    *)
LogEnd(records) == IF records = <<>> THEN 0 ELSE records[Len(records)].last + 1
UpToOffset(records, offset) == SelectSeq(records, LAMBDA batch : batch.last < offset)
Batches(records) == {records[i] : i \in 1..Len(records)}
Batch == [base |-> Line.base, last |-> Line.last, epoch |-> Line.epoch, crc |-> Line.crc]

Begun == DOMAIN terms
Term(b) == view[b].leaderEpoch

(* The log end of a replica as its leader may know it; 0 while the two     *)
(* differ.                                                                 *)
Agreed(b, records, term) ==
    IF term \notin DOMAIN terms' THEN 0
    ELSE IF records = <<>> \/ records[Len(records)] \in Batches(terms'[term].log) THEN LogEnd(records) ELSE 0

Reach(logs, views) ==
    reached' = [b \in Brokers |->
        IF views[b] = None THEN reached[b]
        ELSE LET term == views[b].leaderEpoch
                 agreed == Agreed(b, logs[b], term)
             IN  IF reached[b].term = term /\ reached[b].offset >= agreed THEN reached[b]
                 ELSE [term |-> term, offset |-> agreed]]

-----------------------------------------------------------------------------
\* The controller.

(* The partition after the line, if something changed with the next epoch. *)
Becomes(p) ==
    /\ Line.partition = IF p = partition THEN p ELSE [p EXCEPT !.partitionEpoch = partition.partitionEpoch + 1]
    /\ partition' = Line.partition
    /\ history' = IF p = partition THEN history ELSE Append(history, [offset |-> Line.offset, partition |-> Line.partition])

SameProcesses == UNCHANGED <<up, epoch, view, storage, pending, committed, applied, wasStopped, terms, reached>>

CreatePartitionLine ==
    /\ partition' = Line.partition
    /\ history' = <<[offset |-> Line.offset, partition |-> Line.partition]>>
    /\ UNCHANGED registered /\ SameProcesses

FenceLine ==
    LET states == [registered EXCEPT ![B].unfenced = FALSE] IN
    /\ registered' = states
    /\ \E p \in Elections(Without(partition, B), states) : Becomes(p)
    /\ SameProcesses

UnfenceLine ==
    LET states == [registered EXCEPT ![B].unfenced = ~Line.isShuttingDown] IN
    /\ Line.brokerEpoch = registered[B].epoch
    /\ registered' = states
    /\ \E p \in Elections(partition, states) : Becomes(p)
    /\ SameProcesses

RegisterLine ==
    LET isProven == proof[B] # 0 /\ proof[B] = registered[B].epoch
        states == [registered EXCEPT ![B] = [epoch |-> Line.brokerEpoch, unfenced |-> FALSE]]
        left == Without(partition, B)
        remaining == IF Line.isClean THEN left ELSE [left EXCEPT !.elr = @ \ {B}]
    IN
    /\ unclean_detection = "on" /\ Line.isWitnessed => Line.isClean = isProven
    /\ registered' = states
    /\ \E p \in Elections(remaining, states) : Becomes(p)
    /\ epoch' = [epoch EXCEPT ![B] = IF Line.isOfThisProcess THEN Line.brokerEpoch ELSE @]
    /\ proof' = [proof EXCEPT ![B] = 0]
    /\ UNCHANGED <<up, view, log, hw, pending, committed, applied, wasStopped, terms, reached>>

DecideLine ==
    LET request == [leaderEpoch |-> Line.leaderEpoch, partitionEpoch |-> Line.partitionEpoch]
        members == {member[1] : member \in Line.members}
        isEligible == \A member \in Line.members :
            \/ member[2] = None /\ registered[member[1]].unfenced
            \/ IsEligible(member[1], member[2])
    IN
    /\ CASE Line.error = "NONE" ->
                /\ IsCurrent(request) /\ partition.leader = B /\ isEligible
                /\ \/ Becomes([partition EXCEPT !.isr = members, !.elr = ElrAfter(partition, members, partition.minIsr)])
                   \/ /\ members = partition.isr   \* A leader that was the last known has recovered (KIP-704).
                      /\ Line.partition = [partition EXCEPT !.partitionEpoch = @ + 1]
                      /\ partition' = Line.partition
                      /\ history' = Append(history, [offset |-> Line.offset, partition |-> Line.partition])
         [] Line.error = "INELIGIBLE_REPLICA" ->
                /\ IsCurrent(request) /\ ~isEligible
                /\ Line.partition = IF refusals_are_final = "on" THEN [partition EXCEPT !.partitionEpoch = @ + 1]
                                    ELSE partition
                /\ partition' = Line.partition
                /\ history' = IF partition' = partition THEN history
                              ELSE Append(history, [offset |-> Line.offset, partition |-> Line.partition])
         [] OTHER -> Becomes(partition)
    /\ UNCHANGED registered /\ SameProcesses

(* Of a controller that nobody heard of the request: metadata of Kafka.    *)
ChangeIsrLine ==
    LET members == Line.partition.isr IN
    /\ partition.leader \in members /\ \A b \in members : registered[b].unfenced
    /\ Becomes([partition EXCEPT !.isr = members, !.elr = ElrAfter(partition, members, partition.minIsr)])
    /\ UNCHANGED registered /\ SameProcesses

ElectLeaderLine ==
    /\ \/ /\ Line.partition.leader \in partition.isr /\ registered[Line.partition.leader].unfenced
          /\ Becomes([partition EXCEPT !.leader = Line.partition.leader, !.leaderEpoch = @ + 1])
       \/ partition.leader = None /\ \E p \in Elections(partition, registered) : Becomes(p)
    /\ UNCHANGED registered /\ SameProcesses

ChangeMinIsrLine ==
    LET size == Line.partition.minIsr
        isCleared == \/ clear_elr_on_min_isr_change = "always"
                     \/ clear_elr_on_min_isr_change = "satisfied" /\ Cardinality(partition.isr) >= size
        p == [partition EXCEPT !.minIsr = size, !.elr = IF isCleared THEN {} ELSE @]
    IN
    /\ Line.partition = IF p.elr # partition.elr /\ Line.partition.partitionEpoch # p.partitionEpoch
                        THEN [p EXCEPT !.partitionEpoch = @ + 1] ELSE p
    /\ partition' = Line.partition
    /\ history' = Append(history, [offset |-> Line.offset, partition |-> Line.partition])
    /\ UNCHANGED registered /\ SameProcesses

-----------------------------------------------------------------------------
\* Processes.

(* A process that did not end in order is not missed before another one    *)
(* starts: then the log may have lost its end.                             *)
StartLine ==
    /\ up' = [up EXCEPT ![B] = TRUE]
    /\ wasStopped' = [wasStopped EXCEPT ![B] = ~up[B] /\ wasStopped[B]]
    /\ epoch' = [epoch EXCEPT ![B] = 0]
    /\ view' = [view EXCEPT ![B] = None]
    /\ pending' = [pending EXCEPT ![B] = None]
    /\ applied' = [applied EXCEPT ![B] = 0]
    /\ UNCHANGED <<partition, registered, history, storage, committed, terms, reached>>

StopLine ==
    /\ up[B]
    /\ up' = [up EXCEPT ![B] = FALSE]
    /\ wasStopped' = [wasStopped EXCEPT ![B] = TRUE]
    /\ proof' = IF epoch[B] # 0 /\ (view[B] # None \/ untouched_logs_stay_proven = "on")
                THEN [proof EXCEPT ![B] = epoch[B]] ELSE proof
    /\ UNCHANGED <<partition, registered, history, epoch, view, pending, log, hw, committed, applied, terms, reached>>

LoseDiskLine ==
    /\ wasStopped' = [wasStopped EXCEPT ![B] = FALSE]
    /\ proof' = [proof EXCEPT ![B] = 0]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, pending, log, hw, committed, applied, terms, reached>>

OpenLine ==
    LET found == UpToOffset(log[B], Line.end) IN
    /\ up[B]
    /\ roles_after_registration = "on" => epoch[B] # 0
    /\ LogEnd(found) = Line.end
    /\ wasStopped[B] => found = log[B]
    /\ Line.hw <= hw[B] /\ Line.hw <= Line.end
    /\ log' = [log EXCEPT ![B] = found]
    /\ hw' = [hw EXCEPT ![B] = Line.hw]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped,
                   terms, reached>>

(* Metadata up to an offset, exclusive.                                    *)
KnownAt(end) == LET seen == {i \in 1..Len(history) : history[i].offset < end} IN
    IF seen = {} THEN None ELSE Known(history[Max(seen)].partition)

ApplyLine ==
    LET known == KnownAt(Line.end) IN
    /\ up[B]
    /\ applied' = [applied EXCEPT ![B] = Line.end]
    /\ IF view[B] # None /\ known # None /\ known.partitionEpoch < view[B].partitionEpoch
       THEN UNCHANGED <<view, pending>>     \* An answer has told it of more.
       ELSE /\ view' = [view EXCEPT ![B] = known]
            /\ pending' = IF view[B] # None /\ known # None /\ known.partitionEpoch = view[B].partitionEpoch
                          THEN pending ELSE [pending EXCEPT ![B] = None]
    /\ UNCHANGED <<partition, registered, history, up, epoch, storage, committed, wasStopped, terms, reached>>

IsRoleOf(b) ==
    /\ up[b] /\ view[b] # None
    /\ roles_after_registration = "on" => epoch[b] # 0 /\ applied[b] > epoch[b]
    /\ view[b].leaderEpoch = Line.leaderEpoch /\ view[b].partitionEpoch = Line.partitionEpoch

LeadLine ==
    /\ IsRoleOf(B) /\ view[B].leader = B /\ view[B].isr = Line.isr
    /\ Line.start = LogEnd(log[B])
    /\ terms' = (Line.leaderEpoch :> [log |-> log[B], hw |-> hw[B]]) @@ terms
    /\ Reach(log, view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, storage, pending, committed, applied, wasStopped>>

FollowLine ==
    /\ IsRoleOf(B) /\ view[B].leader = Line.leader /\ Line.leader # B
    /\ Line.end = LogEnd(log[B])
    /\ UNCHANGED terms
    /\ Reach(log, view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, storage, pending, committed, applied, wasStopped>>

-----------------------------------------------------------------------------
\* Logs.

ProduceLine ==
    /\ Leads(B) /\ Term(B) = Line.epoch /\ Line.base = LogEnd(log[B])
    /\ log' = [log EXCEPT ![B] = Append(@, Batch)]
    /\ terms' = [terms EXCEPT ![Line.epoch].log = Append(@, Batch)]
    /\ Reach(log', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, hw, proof, pending, committed, applied, wasStopped>>

FetchLine ==
    /\ up[B] /\ view[B] # None /\ view[B].leader \notin {None, B}
    /\ Term(B) = Line.term /\ Line.term \in Begun
    /\ Line.base = LogEnd(log[B])
    /\ Batch \in Batches(terms[Line.term].log)
    /\ log' = [log EXCEPT ![B] = Append(@, Batch)]
    /\ UNCHANGED terms
    /\ Reach(log', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, hw, proof, pending, committed, applied, wasStopped>>

TruncateLine ==
    /\ up[B] /\ view[B] # None /\ Term(B) = Line.term /\ Line.term \in Begun
    /\ truncation = "leader_epoch" /\ Line.reason = "diverging_epoch"
    /\ LET kept == SubSeq(log[B], 1, AgreeUpTo(log[B], terms[Line.term].log)) IN
       /\ Line.end = LogEnd(kept) /\ kept # log[B]
       /\ log' = [log EXCEPT ![B] = kept]
       /\ hw' = [hw EXCEPT ![B] = Smaller(@, Line.end)]
    /\ UNCHANGED terms
    /\ Reach(log', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped>>

HighWatermarkLine ==
    LET maximal == MaximalIsr(view[B].isr, pending[B])
        ReportedEnd(m) == IF m = B THEN LogEnd(log[B])
                          ELSE (CHOOSE report \in Line.reports : report[1] = m)[2]
    IN
    /\ Leads(B) /\ Term(B) = Line.term
    /\ Line.isr = view[B].isr /\ Line.maximal = maximal
    /\ hw_requires_min_isr = "on" => Cardinality(Line.isr) >= view[B].minIsr
    /\ \A m \in maximal \ {B} :
        /\ \E report \in Line.reports : report[1] = m
        /\ progress_of_this_term = "on" => reached[m].term = Line.term /\ ReportedEnd(m) <= reached[m].offset
    /\ Line.new > hw[B] /\ \A m \in maximal : Line.new <= ReportedEnd(m)
    /\ hw' = [hw EXCEPT ![B] = Line.new]
    /\ terms' = [terms EXCEPT ![Line.term].hw = Line.new]
    /\ committed' = committed \cup Batches(UpToOffset(log[B], Line.new))
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, log, proof, pending, applied, wasStopped, reached>>

(* No replica shows a reader what differs from its leader's log.           *)
FollowerHighWatermarkLine ==
    /\ up[B] /\ view[B] # None /\ Term(B) = Line.term /\ Line.term \in Begun
    /\ Line.new <= terms[Line.term].hw /\ Line.new <= LogEnd(log[B])
    /\ truncate_before_hw = "on" => Batches(UpToOffset(log[B], Line.new)) \subseteq Batches(terms[Line.term].log)
    /\ hw' = [hw EXCEPT ![B] = Line.new]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, log, proof, pending, committed, applied, wasStopped,
                   terms, reached>>

-----------------------------------------------------------------------------
\* ISR changes.

ProposeLine ==
    /\ Leads(B) /\ Term(B) = Line.leaderEpoch /\ view[B].partitionEpoch = Line.partitionEpoch
    /\ pending[B] = None
    /\ \A m \in Line.isr \ view[B].isr : reached[m].term = Term(B) /\ reached[m].offset >= hw[B]
    /\ pending' = [pending EXCEPT ![B] = Line.isr]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, storage, committed, applied, wasStopped, terms, reached>>

TakeAnswerLine ==
    /\ up[B] /\ view[B] # None
    /\ CASE Line.outcome = "committed" ->
                \E i \in 1..Len(history) :
                    /\ history[i].partition.partitionEpoch = Line.partitionEpoch
                    /\ history[i].partition.leaderEpoch = Term(B)
                    /\ history[i].partition.isr = Line.isr
                    /\ answers_await_metadata = "on" => applied[B] >= history[i].offset
                    /\ view' = [view EXCEPT ![B] = [Known(history[i].partition) EXCEPT !.minIsr = view[B].minIsr]]
                    /\ pending' = [pending EXCEPT ![B] = None]
         [] Line.outcome = "reverted" ->
                /\ pending' = [pending EXCEPT ![B] = None]
                /\ UNCHANGED view
         [] OTHER -> UNCHANGED <<view, pending>>
    /\ UNCHANGED <<partition, registered, history, up, epoch, storage, committed, applied, wasStopped, terms, reached>>

-----------------------------------------------------------------------------

Take ==
    CASE Line.action = "CreatePartition" -> CreatePartitionLine
      [] Line.action = "Fence" -> FenceLine
      [] Line.action = "Unfence" -> UnfenceLine
      [] Line.action = "Register" -> RegisterLine
      [] Line.action = "Decide" -> DecideLine
      [] Line.action = "ChangeIsr" -> ChangeIsrLine
      [] Line.action = "ElectLeader" -> ElectLeaderLine
      [] Line.action = "ChangeMinIsr" -> ChangeMinIsrLine
      [] Line.action = "Start" -> StartLine
      [] Line.action = "Stop" -> StopLine
      [] Line.action = "LoseDisk" -> LoseDiskLine
      [] Line.action = "OpenLog" -> OpenLine
      [] Line.action = "Apply" -> ApplyLine
      [] Line.action = "Lead" -> LeadLine
      [] Line.action = "Follow" -> FollowLine
      [] Line.action = "Produce" -> ProduceLine
      [] Line.action = "Fetch" -> FetchLine
      [] Line.action = "Truncate" -> TruncateLine
      [] Line.action = "AdvanceHighWatermark" -> HighWatermarkLine
      [] Line.action = "UpdateHighWatermark" -> FollowerHighWatermarkLine
      [] Line.action = "Propose" -> ProposeLine
      [] Line.action = "TakeAnswer" -> TakeAnswerLine
      [] OTHER -> FALSE

NotInTraces == UNCHANGED <<brokerEpochs, progress, epochStart, requests, appended, bounds>>

Begins ==
    /\ \E all \in {Runs} : PrintT(<<"traces", Len(all)>>) /\ run \in 1..Len(all) /\ lines = all[run]
    /\ next = 1 /\ rejected = FALSE
    /\ history = <<>> /\ terms = <<>> /\ applied = Zeros
    /\ wasStopped = [b \in Brokers |-> FALSE]
    /\ reached = [b \in Brokers |-> [term |-> -1, offset |-> 0]]
    /\ partition = [leader |-> None, leaderEpoch |-> -1, partitionEpoch |-> -1, isr |-> {}, elr |-> {},
                    lastKnownLeader |-> None, minIsr |-> 0]     \* It is not created yet.
    /\ registered = [b \in Brokers |-> [epoch |-> 0, unfenced |-> FALSE]]
    /\ up = [b \in Brokers |-> FALSE]
    /\ epoch = Zeros /\ hw = Zeros /\ proof = Zeros /\ epochStart = Zeros
    /\ view = [b \in Brokers |-> None] /\ pending = [b \in Brokers |-> None]
    /\ log = [b \in Brokers |-> <<>>]
    /\ brokerEpochs = 0 /\ progress = Zeros /\ requests = {} /\ committed = {} /\ appended = 0
    /\ fences = 0 /\ elections = 0 /\ uncleanShutdowns = 0 /\ stops = 0 /\ minIsrChanges = 0

(* A trace is accepted with its last line, Finish: one that is empty, or   *)
(* was cut off, never is.                                                  *)
Step ==
    /\ ~rejected /\ next <= Len(lines)
    /\ UNCHANGED <<run, lines>>
    /\ NotInTraces
    /\ IF Line.action = "Finish"
       THEN /\ next > 2 /\ PrintT(<<"accepted", run>>)
            /\ next' = next + 1 /\ UNCHANGED <<followed, rejected>>
       ELSE IF ENABLED Take
       THEN Take /\ next' = next + 1 /\ UNCHANGED rejected
       ELSE /\ PrintT(<<"rejected", run, next, Line.action, Line.at>>)
            /\ rejected' = TRUE /\ UNCHANGED <<followed, next>>

\* For TLC: what tells two states apart.
Position == <<run, next, rejected>>

=============================================================================
