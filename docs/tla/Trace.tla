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
    starts,     \* Where each replica's log begins: records below were deleted.
    ends,       \* Where it ends.
    terms,      \* Of each leader epoch that began: who leads, the leader's log in it, and its high watermark.
    reached     \* Of each replica and each term that it followed: how far its log agreed with the leader's, at best.

followed == <<partition, registered, up, epoch, view, pending, storage, committed, history, applied, wasStopped, starts,
              ends, terms, reached>>

Line == lines[next]
B == Line.broker
Zeros == [b \in Brokers |-> 0]

(* A log is a sequence of batches here, not of records.  Batches that were *)
(* deleted from its beginning stay in it.                                  *)
UpToOffset(records, offset) == SelectSeq(records, LAMBDA batch : batch.last < offset)
Batches(records) == {records[i] : i \in 1..Len(records)}
Batch == [base |-> Line.base, last |-> Line.last, epoch |-> Line.epoch, crc |-> Line.crc]

Begun == DOMAIN terms
Term(b) == view[b].leaderEpoch

(* The log end of a replica as its leader may know it; 0 while the two     *)
(* differ.                                                                 *)
Agreed(records, end, term) ==
    IF term \notin DOMAIN terms' THEN 0
    ELSE IF records = <<>> \/ records[Len(records)] \in Batches(terms'[term].log) THEN end ELSE 0

Reach(logs, logEnds, views) ==
    reached' = [b \in Brokers |->
        IF views[b] = None THEN reached[b]
        ELSE LET term == views[b].leaderEpoch
                 agreed == Agreed(logs[b], logEnds[b], term)
             IN  IF term \in DOMAIN reached[b] /\ reached[b][term] >= agreed THEN reached[b]
                 ELSE (term :> agreed) @@ reached[b]]

(* The terms in which a leader heard what it knows of its followers: one   *)
(* that leads on in the next epoch forgets nothing.                        *)
TermsOf(b, term) ==
    {term} \cup {first \in Begun : first < term /\ \A t \in first..(term - 1) : t \in Begun /\ terms[t].leader = b}

HasReached(m, b, term, offset) ==
    \E t \in IF progress_of_this_term = "on" THEN TermsOf(b, term) ELSE DOMAIN reached[m] :
        t \in DOMAIN reached[m] /\ offset <= reached[m][t]

-----------------------------------------------------------------------------
\* The controller.

(* The partition after the line, if something changed with the next epoch. *)
(* Metadata versions before 3.6 raise the leader epoch where the ISR       *)
(* shrinks (KAFKA-15021): that it is raised without need loses nothing.    *)
Becomes(p) ==
    LET next_ == [p EXCEPT !.partitionEpoch = partition.partitionEpoch + 1]
        mayBeBumped == p.leaderEpoch = partition.leaderEpoch /\ ~(partition.isr \subseteq p.isr)
    IN
    /\ \/ p = partition /\ Line.partition = p
       \/ p # partition /\ Line.partition = next_
       \/ mayBeBumped /\ Line.partition = [next_ EXCEPT !.leaderEpoch = @ + 1]
    /\ partition' = Line.partition
    /\ history' = IF Line.partition = partition THEN history
                  ELSE Append(history, [offset |-> Line.offset, partition |-> Line.partition])

(* All is as it was, but for the partition epoch.                          *)
IsRestated ==
    /\ Line.partition = [partition EXCEPT !.partitionEpoch = @ + 1]
    /\ partition' = Line.partition
    /\ history' = Append(history, [offset |-> Line.offset, partition |-> Line.partition])

SameProcesses ==
    UNCHANGED <<up, epoch, view, storage, pending, committed, applied, wasStopped, starts, ends, terms, reached>>

CreatePartitionLine ==
    /\ partition' = Line.partition
    /\ history' = <<[offset |-> Line.offset, partition |-> Line.partition]>>
    /\ UNCHANGED registered /\ SameProcesses

(* Nothing of it is promised any more.                                     *)
DeletePartitionLine ==
    /\ Line.partition.replicas = {} /\ Line.partition.leader = None
    /\ partition' = Line.partition
    /\ history' = Append(history, [offset |-> Line.offset, partition |-> Line.partition])
    /\ UNCHANGED registered /\ SameProcesses

FenceLine ==
    LET states == [registered EXCEPT ![B].unfenced = FALSE] IN
    /\ registered' = states
    /\ \E p \in Left(partition, B, {}, states, Line.isUnclean) : Becomes(p)
    /\ SameProcesses

(* BrokerFenced, for good: it is no broker of the cluster any more.        *)
UnregisterLine ==
    LET states == [registered EXCEPT ![B] = [epoch |-> 0, unfenced |-> FALSE]] IN
    /\ registered' = states
    /\ \E p \in Left(partition, B, {}, states, Line.isUnclean) : Becomes(p)
    /\ SameProcesses

UnfenceLine ==
    LET states == [registered EXCEPT ![B].unfenced = ~Line.isShuttingDown] IN
    /\ Line.brokerEpoch = registered[B].epoch
    /\ registered' = states
    /\ \E p \in Elections(partition, states, Line.isUnclean) : Becomes(p)
    /\ SameProcesses

(* A metadata version before that of ELR takes no proof.                   *)
RegisterLine ==
    LET isProven == proof[B] # 0 /\ proof[B] = registered[B].epoch
        states == [registered EXCEPT ![B] = [epoch |-> Line.brokerEpoch, unfenced |-> FALSE]]
        unclean == IF Line.isClean THEN {} ELSE {B}
    IN
    /\ unclean_detection = "on" /\ Line.isWitnessed => Line.isClean = (isProven /\ Line.isProofTaken)
    /\ registered' = states
    /\ \E p \in Left(partition, B, unclean, states, Line.isUnclean) : Becomes(p)
    /\ epoch' = [epoch EXCEPT ![B] = IF Line.isOfThisProcess THEN Line.brokerEpoch ELSE @]
    /\ proof' = [proof EXCEPT ![B] = 0]
    /\ UNCHANGED <<up, view, log, hw, pending, committed, applied, wasStopped, starts, ends, terms, reached>>

DecideLine ==
    LET request == [leaderEpoch |-> Line.leaderEpoch, partitionEpoch |-> Line.partitionEpoch]
        members == {member[1] : member \in Line.members}
        isEligible == \A member \in Line.members :
            \* A leader need not have heard which process of a follower fetches; its own it knows.
            \/ /\ member[2] = None /\ registered[member[1]].unfenced
               /\ ap_broker_epoch_check = "on" => member[1] # B
            \/ IsEligible(member[1], member[2])
        isAccepted == IsCurrent(request) /\ partition.leader = B /\ isEligible /\ members \subseteq partition.replicas
    IN
    /\ CASE Line.error = "NONE" ->
                /\ isAccepted
                /\ \/ \E p \in Changes(partition, [partition EXCEPT !.isr = members], {}, Unfenced(registered),
                                       Line.isUnclean) : Becomes(p)
                   \/ members = partition.isr /\ IsRestated  \* A leader that was the last known has recovered (KIP-704).
         [] Line.error = "INELIGIBLE_REPLICA" ->
                /\ IsCurrent(request) /\ ~isEligible
                /\ IF refusals_are_final = "on" THEN IsRestated ELSE Becomes(partition)
         [] Line.error = "NEW_LEADER_ELECTED" ->    \* It is accepted all the same.
                /\ isAccepted
                /\ \E p \in Changes(partition, [partition EXCEPT !.isr = members], {}, Unfenced(registered),
                                    Line.isUnclean) : p.leader # B /\ Becomes(p)
         [] OTHER -> Becomes(partition)
    /\ UNCHANGED registered /\ SameProcesses

(* Of a controller that nobody heard of the request: metadata of Kafka.    *)
ChangeIsrLine ==
    LET members == Line.partition.isr IN
    /\ partition.leader \in members \/ members = partition.isr
    /\ members # partition.isr => \A b \in members : registered[b].unfenced
    /\ \/ members = partition.isr /\ IsRestated  \* Of other directories, or a leader that has recovered.
       \/ \E p \in Changes(partition, [partition EXCEPT !.isr = members], {}, Unfenced(registered), FALSE) : Becomes(p)
       \/ \E removed \in SUBSET partition.removing :    \* With it a reassignment ends.
            \E p \in Changes(partition, [partition EXCEPT !.isr = members \cup removed], {}, Unfenced(registered), FALSE) :
                p.replicas # partition.replicas /\ Becomes(p)
    /\ UNCHANGED registered /\ SameProcesses

ElectLeaderLine ==
    /\ \/ \E p \in AskedElections(partition, Line.partition.leader, registered) : Becomes(p)
       \/ \E p \in Elections(partition, registered, Line.isUnclean) : Becomes(p)
       \/ Line.isUnclean /\ \E p \in UncleanElections(partition, Line.partition.leader, registered) : Becomes(p)
    /\ UNCHANGED registered /\ SameProcesses

ReassignLine ==
    /\ \/ \E targets \in SUBSET Line.partition.replicas :
            \/ \E p \in Reassigned(partition, targets, registered) : Becomes(p)
            \/ partition \in Reassigned(partition, targets, registered) /\ IsRestated  \* In another order.
       \/ \E p \in Cancelled(partition, registered, Line.isUnclean) : Becomes(p)
    /\ UNCHANGED registered /\ SameProcesses

(* A reassignment that waited for min ISR may end with it.                 *)
ChangeMinIsrLine ==
    LET size == Line.partition.minIsr
        p == WithMinIsr(partition, size)
        larger == [partition EXCEPT !.minIsr = size]
    IN
    /\ \/ /\ Line.partition \in {p, [p EXCEPT !.partitionEpoch = @ + 1]}
          /\ p # larger => Line.partition # p
          /\ partition' = Line.partition
          /\ history' = Append(history, [offset |-> Line.offset, partition |-> Line.partition])
       \/ \E q \in Changes(larger, larger, {}, Unfenced(registered), FALSE) : q.replicas # partition.replicas /\ Becomes(q)
    /\ UNCHANGED registered /\ SameProcesses

(* FeatureChanged, and then what is forgotten with it.                     *)
ChangeFeatureLine ==
    /\ Line.partition = [partition EXCEPT !.hasElr = Line.partition.hasElr]
    /\ partition' = Line.partition
    /\ history' = history
    /\ UNCHANGED registered /\ SameProcesses

ForgetElrLine ==
    /\ partition.hasElr /\ downgrade_ignores_elr = "on"
    /\ Becomes([partition EXCEPT !.elr = {}, !.lastKnownElr = {}, !.lastKnownLeader = None])
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
    /\ UNCHANGED <<partition, registered, history, storage, committed, starts, ends, terms, reached>>

StopLine ==
    /\ up[B]
    /\ up' = [up EXCEPT ![B] = FALSE]
    /\ wasStopped' = [wasStopped EXCEPT ![B] = @ \/ Line.hasOpened]
    /\ proof' = IF epoch[B] # 0 /\ (Line.hasOpened \/ untouched_logs_stay_proven = "on")
                THEN [proof EXCEPT ![B] = epoch[B]] ELSE proof
    /\ UNCHANGED <<partition, registered, history, epoch, view, pending, log, hw, committed, applied, starts, ends, terms,
                   reached>>

LoseDiskLine ==
    /\ wasStopped' = [wasStopped EXCEPT ![B] = FALSE]
    /\ proof' = [proof EXCEPT ![B] = 0]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, pending, log, hw, committed, applied, starts, ends,
                   terms, reached>>

(* A log that is new, or found at the start of a process.                  *)
OpenLine ==
    LET found == UpToOffset(log[B], Line.end) IN
    /\ up[B]
    /\ roles_after_registration = "on" => epoch[B] # 0
    /\ \/ /\ Line.end <= ends[B] /\ Line.start <= starts[B]
          /\ wasStopped[B] => Line.end = ends[B]
       \* A log that had begun again below its start has that back (S51).
       \/ lower_start_is_durable = "off" /\ Line.start > starts[B]
    /\ Line.hw <= Line.end     \* That is the last checkpoint, which may be of a log that was longer.
    /\ log' = [log EXCEPT ![B] = found]
    /\ ends' = [ends EXCEPT ![B] = Line.end]
    /\ starts' = [starts EXCEPT ![B] = Line.start]
    /\ hw' = [hw EXCEPT ![B] = Line.hw]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped,
                   terms, reached>>

(* What the process before appended in its last term, and did not live to  *)
(* tell: a batch of its leader, or its own.                                *)
KeepLine ==
    /\ ~wasStopped[B] /\ Line.base = ends[B] /\ reached[B] # <<>>
    /\ LET term == Max(DOMAIN reached[B]) IN
       \/ term \in Begun /\ (Batch \in Batches(terms[term].log) \/ (Line.epoch = term /\ terms[term].leader = B))
       \/ truncation_sync = "off"  \* What was cut off is there again (S35).
    /\ log' = [log EXCEPT ![B] = Append(@, Batch)]
    /\ ends' = [ends EXCEPT ![B] = Line.last + 1]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, hw, proof, pending, committed, applied, wasStopped,
                   starts, terms, reached>>

(* Metadata up to an offset, exclusive.                                    *)
KnownAt(end) == LET seen == {i \in 1..Len(history) : history[i].offset < end} IN
    IF seen = {} THEN None ELSE Known(history[Max(seen)].partition)

(* LogDeleted: it is no replica any more, or the topic is gone. A process  *)
(* that starts finds that with the metadata that it is about to apply.     *)
DeleteLogLine ==
    LET known == IF Line.end = 0 THEN view[B] ELSE KnownAt(Line.end) IN
    /\ up[B] /\ known # None /\ B \notin known.replicas
    /\ log' = [log EXCEPT ![B] = <<>>]
    /\ ends' = [ends EXCEPT ![B] = 0]
    /\ starts' = [starts EXCEPT ![B] = 0]
    /\ hw' = [hw EXCEPT ![B] = 0]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped,
                   terms, reached>>

ApplyLine ==
    LET known == KnownAt(Line.end) IN
    /\ up[B]
    /\ applied' = [applied EXCEPT ![B] = Line.end]
    /\ IF view[B] # None /\ known # None /\ known.partitionEpoch < view[B].partitionEpoch
       THEN UNCHANGED <<view, pending>>     \* An answer has told it of more.
       ELSE /\ view' = [view EXCEPT ![B] = known]
            /\ pending' = IF view[B] # None /\ known # None /\ known.partitionEpoch = view[B].partitionEpoch
                          THEN pending ELSE [pending EXCEPT ![B] = None]
    /\ UNCHANGED <<partition, registered, history, up, epoch, storage, committed, wasStopped, starts, ends, terms,
                   reached>>

IsRoleOf(b) ==
    /\ up[b] /\ view[b] # None
    /\ roles_after_registration = "on" => epoch[b] # 0 /\ applied[b] > epoch[b]
    /\ view[b].leaderEpoch = Line.leaderEpoch /\ view[b].partitionEpoch = Line.partitionEpoch

LeadLine ==
    /\ IsRoleOf(B) /\ view[B].leader = B /\ view[B].isr = Line.isr
    /\ Line.start = ends[B]
    /\ terms' = (Line.leaderEpoch :> [leader |-> B, log |-> log[B], start |-> starts[B], hw |-> hw[B]]) @@ terms
    /\ Reach(log, ends, view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, storage, pending, committed, applied, wasStopped,
                   starts, ends>>

FollowLine ==
    /\ IsRoleOf(B) /\ view[B].leader = Line.leader /\ Line.leader # B /\ B \in view[B].replicas
    /\ Line.end = ends[B]
    /\ UNCHANGED terms
    /\ Reach(log, ends, view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, storage, pending, committed, applied, wasStopped,
                   starts, ends>>

-----------------------------------------------------------------------------
\* Logs.

Appends ==
    /\ Line.base = ends[B]
    /\ log' = [log EXCEPT ![B] = Append(@, Batch)]
    /\ ends' = [ends EXCEPT ![B] = Line.last + 1]
    /\ Reach(log', ends', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, hw, proof, pending, committed, applied, wasStopped,
                   starts>>

ProduceLine ==
    /\ Leads(B) /\ Term(B) = Line.epoch
    /\ terms' = [terms EXCEPT ![Line.epoch].log = Append(@, Batch)]
    /\ Appends

FetchLine ==
    /\ up[B] /\ view[B] # None /\ view[B].leader \notin {None, B}
    /\ Term(B) = Line.term /\ Line.term \in Begun
    /\ Batch \in Batches(terms[Line.term].log)
    /\ UNCHANGED terms
    /\ Appends

(* Where a follower may cut its log, by its era and the reason that it     *)
(* gives.  By leader epochs nothing goes that the leader has, too.         *)
IsCutAllowed(kept) ==
    LET leaders == Batches(terms[Line.term].log)
        lost == Batches(log[B]) \ Batches(kept)
    IN
    CASE Line.reason = "diverging_epoch" ->
            /\ truncation # "high_watermark"
            /\ truncation = "leader_epoch" => lost \cap leaders = {}
      [] Line.reason = "high_watermark" ->
            \* Where nothing is left to compare, in newer eras, too.
            /\ truncation = "leader_epoch" => \A i \in 1..Len(log[B]) : log[B][i].last < starts[B]
            /\ Line.end >= ends[B] \/ kept = UpToOffset(log[B], hw[B])
      [] Line.reason = "offset_out_of_range" -> lost \cap leaders = {}
      [] OTHER -> FALSE

TruncateLine ==
    LET kept == UpToOffset(log[B], Line.end) IN
    /\ up[B] /\ view[B] # None /\ Term(B) = Line.term /\ Line.end < ends[B]
    /\ Line.reason = "high_watermark" \/ Line.term \in Begun
    /\ view[B].leader # B /\ IsCutAllowed(kept)
    /\ log' = [log EXCEPT ![B] = kept]
    /\ ends' = [ends EXCEPT ![B] = Line.end]
    /\ hw' = [hw EXCEPT ![B] = Smaller(@, Line.end)]
    /\ starts' = [starts EXCEPT ![B] = Smaller(@, Line.end)]
    /\ UNCHANGED terms
    /\ Reach(log', ends', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped>>

(* A follower whose log ends before its leader's begins: it begins there,  *)
(* too.                                                                    *)
RestartLogLine ==
    /\ up[B] /\ view[B] # None /\ Term(B) = Line.term /\ Line.term \in Begun /\ view[B].leader \notin {None, B}
    /\ Line.end <= starts[view[B].leader] \/ Line.end <= terms[Line.term].start
    /\ log' = [log EXCEPT ![B] = <<>>]
    /\ ends' = [ends EXCEPT ![B] = Line.end]
    /\ starts' = [starts EXCEPT ![B] = Line.end]
    /\ hw' = [hw EXCEPT ![B] = Line.end]
    /\ UNCHANGED terms
    /\ Reach(log', ends', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped>>

(* A leader that recovers from an unclean election (KIP-704) finds a bad   *)
(* batch, before it has committed anything.                                *)
RecoverLogLine ==
    LET kept == UpToOffset(log[B], Line.end) IN
    /\ Leads(B) /\ Term(B) = Line.term /\ Line.term \in Begun /\ Line.end <= ends[B]
    /\ log' = [log EXCEPT ![B] = kept]
    /\ ends' = [ends EXCEPT ![B] = Line.end]
    /\ hw' = [hw EXCEPT ![B] = Smaller(@, Line.end)]
    /\ starts' = [starts EXCEPT ![B] = Smaller(@, Line.end)]
    /\ terms' = [terms EXCEPT ![Line.term].log = kept, ![Line.term].hw = Smaller(@, Line.end)]
    /\ Reach(log', ends', view)
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, proof, pending, committed, applied, wasStopped>>

(* LogStartOffsetRaised: records that are committed were deleted.          *)
RaiseLogStartLine ==
    /\ up[B] /\ Line.new <= ends[B]
    /\ Line.new <= hw[B] \/ (view[B] # None /\ view[B].leader # B)
    /\ starts' = [starts EXCEPT ![B] = IF Line.new > @ THEN Line.new ELSE @]
    /\ hw' = [hw EXCEPT ![B] = IF Line.new > @ THEN Line.new ELSE @]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, log, proof, pending, committed, applied, wasStopped,
                   ends, terms, reached>>

HighWatermarkLine ==
    LET maximal == MaximalIsr(view[B].isr, pending[B])
        ReportedEnd(m) == IF m = B THEN ends[B]
                          ELSE (CHOOSE report \in Line.reports : report[1] = m)[2]
    IN
    /\ Leads(B) /\ Term(B) = Line.term
    /\ Line.isr = view[B].isr /\ Line.maximal = maximal
    /\ hw_requires_min_isr = "on" => Cardinality(Line.isr) >= Effective(view[B])
    /\ \A m \in maximal \ {B} :
        /\ \E report \in Line.reports : report[1] = m
        /\ HasReached(m, B, Line.term, ReportedEnd(m))
    /\ Line.new > hw[B] /\ \A m \in maximal : Line.new <= ReportedEnd(m)
    /\ hw' = [hw EXCEPT ![B] = Line.new]
    /\ IF Line.term \in Begun THEN terms' = [terms EXCEPT ![Line.term].hw = Line.new]
       ELSE \* It says at the end of this turn that it leads.
            terms' = (Line.term :> [leader |-> B, log |-> log[B], start |-> starts[B], hw |-> Line.new]) @@ terms
    /\ committed' = committed \cup Batches(UpToOffset(log[B], Line.new))
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, log, proof, pending, applied, wasStopped, starts,
                   ends, reached>>

(* No replica shows a reader what differs from its leader's log.           *)
FollowerHighWatermarkLine ==
    LET shown == {batch \in Batches(UpToOffset(log[B], Line.new)) :
                     batch.base >= terms[Line.term].start /\ batch.last >= starts[B]}
    IN
    /\ up[B] /\ view[B] # None /\ Term(B) = Line.term /\ Line.term \in Begun
    /\ Line.new <= terms[Line.term].hw \/ Line.new <= starts[B]
    /\ Line.new <= ends[B]
    /\ truncate_before_hw = "on" /\ truncation = "leader_epoch" => shown \subseteq Batches(terms[Line.term].log)
    /\ hw' = [hw EXCEPT ![B] = Line.new]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, log, proof, pending, committed, applied, wasStopped,
                   starts, ends, terms, reached>>

-----------------------------------------------------------------------------
\* ISR changes.

ProposeLine ==
    /\ Leads(B) /\ Term(B) = Line.leaderEpoch /\ view[B].partitionEpoch = Line.partitionEpoch
    /\ pending[B] = None
    /\ \A m \in Line.isr \ view[B].isr : HasReached(m, B, Term(B), hw[B])
    /\ pending' = [pending EXCEPT ![B] = Line.isr]
    /\ UNCHANGED <<partition, registered, history, up, epoch, view, storage, committed, applied, wasStopped, starts, ends,
                   terms, reached>>

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
    /\ UNCHANGED <<partition, registered, history, up, epoch, storage, committed, applied, wasStopped, starts, ends,
                   terms, reached>>

-----------------------------------------------------------------------------

Take ==
    CASE Line.action = "CreatePartition" -> CreatePartitionLine
      [] Line.action = "DeletePartition" -> DeletePartitionLine
      [] Line.action = "Fence" -> FenceLine
      [] Line.action = "Unregister" -> UnregisterLine
      [] Line.action = "Unfence" -> UnfenceLine
      [] Line.action = "Register" -> RegisterLine
      [] Line.action = "Decide" -> DecideLine
      [] Line.action = "ChangeIsr" -> ChangeIsrLine
      [] Line.action = "ElectLeader" -> ElectLeaderLine
      [] Line.action = "ChangeMinIsr" -> ChangeMinIsrLine
      [] Line.action = "Reassign" -> ReassignLine
      [] Line.action = "ChangeFeature" -> ChangeFeatureLine
      [] Line.action = "ForgetElr" -> ForgetElrLine
      [] Line.action = "Start" -> StartLine
      [] Line.action = "Stop" -> StopLine
      [] Line.action = "LoseDisk" -> LoseDiskLine
      [] Line.action = "OpenLog" -> OpenLine
      [] Line.action = "Keep" -> KeepLine
      [] Line.action = "DeleteLog" -> DeleteLogLine
      [] Line.action = "Apply" -> ApplyLine
      [] Line.action = "Lead" -> LeadLine
      [] Line.action = "Follow" -> FollowLine
      [] Line.action = "Produce" -> ProduceLine
      [] Line.action = "Fetch" -> FetchLine
      [] Line.action = "Truncate" -> TruncateLine
      [] Line.action = "RestartLog" -> RestartLogLine
      [] Line.action = "RecoverLog" -> RecoverLogLine
      [] Line.action = "RaiseLogStart" -> RaiseLogStartLine
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
    /\ reached = [b \in Brokers |-> <<>>]
    /\ partition = [leader |-> None, leaderEpoch |-> -1, partitionEpoch |-> -1, isr |-> {}, elr |-> {},
                    lastKnownElr |-> {}, lastKnownLeader |-> None, minIsr |-> 1, hasElr |-> TRUE,
                    replicas |-> {}, adding |-> {}, removing |-> {}]    \* It is not created yet.
    /\ registered = [b \in Brokers |-> [epoch |-> 0, unfenced |-> FALSE]]
    /\ up = [b \in Brokers |-> FALSE]
    /\ epoch = Zeros /\ hw = Zeros /\ proof = Zeros /\ epochStart = Zeros /\ starts = Zeros /\ ends = Zeros
    /\ view = [b \in Brokers |-> None] /\ pending = [b \in Brokers |-> None]
    /\ log = [b \in Brokers |-> <<>>]
    /\ brokerEpochs = 0 /\ progress = Zeros /\ requests = {} /\ committed = {} /\ appended = 0
    /\ fences = 0 /\ elections = 0 /\ uncleanShutdowns = 0 /\ stops = 0 /\ minIsrChanges = 0
    /\ excused = {} /\ reassignments = 0 /\ uncleanElections = 0 /\ featureChanges = 0

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
