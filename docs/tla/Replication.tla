---------------------------- MODULE Replication ----------------------------
(***************************************************************************)
(* One partition of Kafka's replication protocol, with eligible leader     *)
(* replicas (KIP-966) and the rules that they build on (KIP-101, KIP-497,  *)
(* KIP-903).  An action is what one event of Laststand records, or a few   *)
(* that belong to one turn of a node.                                      *)
(*                                                                         *)
(* Each rule whose absence loses something is a constant, named as the     *)
(* switch of emulator/core/switches.py.  So one module is kip-966,         *)
(* kip-966-text, kafka-4.2 and every era between.                          *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Brokers,                    \* Those that are, or may become, replicas of the partition.
    None,
    Spares,                     \* How many of them are no replicas at first.
    MinIsr,                     \* min.insync.replicas of the topic when it was created.
    \* Bounds of the model.
    MaxRecords,
    MaxLeaderEpoch,
    MaxPartitionEpoch,
    MaxFences,
    MaxElections,
    MaxUncleanShutdowns,
    MaxStops,
    MaxMinIsrChanges,
    MaxReassignments,
    MaxUncleanElections,
    MaxFeatureChanges,
    MaxRequests,                \* AlterPartition requests that may still be accepted, at one time.
    \* Rules.
    elr,                        \* An empty ISR, and replicas that may lead although they left it (KIP-966).
    hw_requires_min_isr,        \* The high watermark waits for a committed ISR of min ISR (KIP-966).
    unclean_detection,          \* A registration without proof of a clean shutdown leaves ISR and ELR (KIP-966).
    maximal_isr,                \* "on", "proposed" or "committed_only" (KIP-497).
    truncation,                 \* "leader_epoch" (KIP-101, KIP-279) or "high_watermark".
    ap_partition_epoch_check,   \* AlterPartition is compare-and-set on the partition epoch (KIP-497).
    ap_broker_epoch_check,      \* It names members with their broker epochs (KIP-903).
    clear_elr_on_min_isr_change,\* A new min ISR empties the ELR (KIP-966).
    truncate_before_hw,         \* A follower that diverges takes over no high watermark (KAFKA-14704).
    roles_after_registration,   \* A broker takes its roles once it is registered (Laststand, S36).
    progress_of_this_term,      \* A new leader counts on nothing that followers reported in an earlier term (S43).
    refusals_are_final,         \* A refusal moves the partition epoch on (Laststand, S45).
    answers_await_metadata,     \* A leader takes an ISR with the metadata that it was accepted by (Laststand, S38).
    untouched_logs_stay_proven, \* A broker that stops before it opened its logs renews their proof (Laststand, S46).
    elr_within_replicas,        \* Who is reassigned away is eligible no more (KIP-966).
    reassignment_requires_min_isr,  \* A reassignment completes with min ISR members only (KIP-966).
    cancel_requires_min_isr,    \* It is called off with min ISR members only (KIP-966).
    min_isr_per_partition,      \* Min ISR is capped by the partition's own replicas (KIP-966).
    downgrade_ignores_elr,      \* An ELR that a downgrade leaves over counts for nothing (KIP-966).
    \* Rules of which none loses a record within the guarantee, or only what no model deletes.
    truncation_sync,            \* A log that was cut stays cut, whatever happens (Laststand, S35).
    lower_start_is_durable,     \* A log that begins again below its start stays there (Laststand, S51).
    last_known,                 \* "kip" (KIP-966) or "leader": what a partition without a leader remembers.
    reassignment_needs_all      \* A reassignment completes with every target in the ISR (KAFKA-15665).

Unknown == [offset |-> 0, epoch |-> 0, isKnown |-> FALSE]
NoProgress == [b \in Brokers |-> Unknown]


(* What a broker reads of the partition.                                   *)
Known(p) == [leader |-> p.leader, leaderEpoch |-> p.leaderEpoch, partitionEpoch |-> p.partitionEpoch,
             isr |-> p.isr, replicas |-> p.replicas, minIsr |-> p.minIsr]

(* KIP-966: "min(min ISR, replication factor)".                            *)
Effective(p) == IF p.minIsr <= Cardinality(p.replicas) THEN p.minIsr ELSE Cardinality(p.replicas)

VARIABLES
    partition,      \* What the controller has committed of the partition.
    registered,     \* What it has committed of each broker: its epoch, and whether it is unfenced.
    brokerEpochs,   \* How many broker epochs were given.
    up,             \* Which broker processes run.
    epoch,          \* The broker epoch of each process; 0 before it is registered.
    view,           \* The partition as each process knows it; None before it knows any.
    log,            \* The records of each replica.
    hw,             \* Each replica's high watermark: the number of records below it.
    proof,          \* The broker epoch in each clean-shutdown file; 0 where there is none.
    progress,       \* What a leader knows of each follower: log end, and the broker epoch that fetched.
    epochStart,     \* The log end of a leader when its term began.
    pending,        \* The ISR that a leader has proposed; None where no proposal is in flight.
    requests,       \* AlterPartition requests on their way.
    excused,        \* Those of them that an unclean election gave up.
    committed,      \* Records that were below the high watermark of a leader, with their offsets.
    appended,       \* How many records producers sent.
    fences, elections, uncleanShutdowns, stops, minIsrChanges, reassignments, uncleanElections, featureChanges

controller == <<partition, registered, brokerEpochs>>
process == <<up, epoch, view, progress, epochStart, pending>>
storage == <<log, hw, proof>>
administration == <<excused, minIsrChanges, reassignments, uncleanElections, featureChanges>>
bounds == <<fences, elections, uncleanShutdowns, stops, administration>>
vars == <<controller, process, storage, requests, committed, appended, bounds>>

Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : x >= y
Smaller(a, b) == IF a < b THEN a ELSE b
Entries(records, from, to) == {<<o, records[o]>> : o \in from..to}

-----------------------------------------------------------------------------
\* The controller.

(* The feature may be off in a cluster that has the rule.                  *)
HasElr(p) == elr = "on" /\ p.hasElr

Unfenced(states) == {b \in Brokers : states[b].unfenced}

(* The min ISR that the controller goes by. Without min_isr_per_partition  *)
(* it is capped by the replicas of partition 0, of which nothing is known  *)
(* here.                                                                   *)
Sizes(p) == IF min_isr_per_partition = "on" THEN {Effective(p)} ELSE 1..p.minIsr

(* A reassignment ends with the change that brings its targets into the    *)
(* ISR (KIP-455).                                                          *)
Completed(p) ==
    LET final == p.replicas \ p.removing
        finalIsr == p.isr \ p.removing
        isSmaller == reassignment_requires_min_isr = "off" /\ Cardinality(p.adding) < Cardinality(p.removing)
        needed == IF reassignment_needs_all = "on" \/ isSmaller THEN final ELSE p.adding \ p.removing
        required == IF reassignment_requires_min_isr = "on" THEN Smaller(p.minIsr, Cardinality(final)) ELSE 1
    IN  IF /\ p.adding \cup p.removing # {} /\ finalIsr # {}
           /\ Cardinality(finalIsr) >= required /\ needed \subseteq finalIsr
        THEN [p EXCEPT !.replicas = final, !.isr = finalIsr, !.adding = {}, !.removing = {}]
        ELSE p

WithinReplicas(p) ==
    IF elr_within_replicas = "off" THEN p
    ELSE [p EXCEPT !.elr = @ \cap p.replicas, !.lastKnownElr = @ \cap p.replicas,
                   !.lastKnownLeader = IF @ \in p.replicas THEN @ ELSE None]

(* ELR and last known ELR once the ISR is that of p; unclean are those     *)
(* that restarted without proof of their logs.                             *)
Remembered(old, p, unclean, size) ==
    LET left == (old.elr \cup old.isr) \ p.isr
        eligible == left \ unclean
    IN  WithinReplicas(
            IF ~HasElr(old)
            THEN IF downgrade_ignores_elr = "on" THEN [p EXCEPT !.elr = {}, !.lastKnownElr = {}, !.lastKnownLeader = None]
                 ELSE p
            ELSE IF Cardinality(p.isr) >= size THEN [p EXCEPT !.elr = {}, !.lastKnownElr = {}]
            ELSE [p EXCEPT !.elr = eligible,
                           !.lastKnownElr = IF last_known = "leader" THEN @
                                            ELSE (@ \cup (left \cap unclean)) \ (p.isr \cup eligible)])

(* Who would lead p without a loss, of those that may lead.                *)
Clean(old, p, acceptable) ==
    (IF p.isr # {} THEN p.isr ELSE p.elr) \cap acceptable \cap (p.replicas \cup {old.leader})

(* Who may win an election. A topic's strategy may want no leader rather   *)
(* than the last known one.                                                *)
Winners(old, p, acceptable, isUnclean) ==
    LET clean == Clean(old, p, acceptable)
        lastKnown == IF HasElr(old) /\ p.isr = {} /\ p.elr = {} THEN {p.lastKnownLeader} \cap acceptable ELSE {}
        anybody == IF isUnclean THEN p.replicas \cap acceptable ELSE {}
    IN  IF clean # {} THEN IF old.leader \in clean THEN {old.leader} ELSE clean
        ELSE IF lastKnown \cup anybody # {} THEN lastKnown \cup anybody \cup (IF isUnclean THEN {} ELSE {None})
        ELSE {None}

(* What of p is written when b wins.                                       *)
Led(old, p, acceptable, size, b) ==
    LET isElected == b # old.leader
        isUnclean == isElected /\ b # None /\ b \notin Clean(old, p, acceptable)
        isOfElr == isElected /\ b # None /\ ~isUnclean /\ b \notin p.isr
        alone == IF isUnclean THEN [p EXCEPT !.isr = {b}]
                 ELSE IF ~isOfElr THEN p
                 ELSE IF clear_elr_on_min_isr_change = "satisfied" /\ size <= 1
                 THEN [p EXCEPT !.isr = {b}, !.elr = {}, !.lastKnownElr = {}]
                 ELSE [p EXCEPT !.isr = {b}, !.elr = @ \ {b}]
        kept == IF alone.isr = {} /\ ~HasElr(old) THEN [alone EXCEPT !.isr = old.isr] ELSE alone
        forgotten == IF ~isUnclean /\ HasElr(old) THEN kept
                     ELSE [kept EXCEPT !.elr = {},
                              !.lastKnownElr = IF \/ ~HasElr(old) \/ last_known = "leader"
                                                  \/ Cardinality(kept.isr) >= size
                                               THEN {} ELSE @ \ kept.isr]
        isBumped == isElected \/ ~(old.replicas \subseteq p.replicas)
        bumped == [forgotten EXCEPT !.leader = b, !.leaderEpoch = @ + 1]
    IN  IF ~isBumped THEN forgotten
        ELSE IF ~HasElr(old) THEN bumped
        ELSE WithinReplicas([bumped EXCEPT !.lastKnownLeader =
                                 IF b # None THEN None ELSE IF @ = None THEN old.leader ELSE @])

(* Every change of a partition: target names ISR and replicas as they      *)
(* should be (Kafka's PartitionChangeBuilder).                             *)
Changes(old, target, unclean, acceptable, isUnclean) ==
    LET ended == Completed(target)
        By(size) ==
            LET completed == Remembered(old, ended, unclean, size)
                winners == Winners(old, completed, acceptable, isUnclean)
                inside == IF reassignment_requires_min_isr = "off" THEN winners
                          ELSE winners \cap (completed.isr \cup {None})
            IN  {Led(old, completed, acceptable, size, b) : b \in inside}
        \* Who is elected from outside the ISR ends no reassignment.
        OpenBy(size) ==
            LET open == Remembered(old, target, unclean, size)
                completed == Remembered(old, ended, unclean, size)
            IN  IF Winners(old, completed, acceptable, isUnclean) \subseteq completed.isr \cup {None} THEN {}
                ELSE {Led(old, open, acceptable, size, b) : b \in Winners(old, open, acceptable, isUnclean)}
    IN  (UNION {By(size) : size \in Sizes(ended)})
        \cup (IF reassignment_requires_min_isr = "off" THEN {} ELSE UNION {OpenBy(size) : size \in Sizes(target)})

(* The partition without a broker in its ISR, and the elections that       *)
(* follow.                                                                 *)
Left(old, b, unclean, states, isUnclean) ==
    IF b \in old.isr \/ (b \in old.elr \cap unclean /\ HasElr(old))
    THEN Changes(old, [old EXCEPT !.isr = @ \ {b}], unclean, Unfenced(states) \ {b}, isUnclean)
    ELSE {old}

(* A leader for a partition that has none.                                 *)
Elections(p, states, isUnclean) ==
    IF p.leader # None THEN {p} ELSE Changes(p, p, {}, Unfenced(states), isUnclean)

(* An election that an administrator or a search asks for.                 *)
AskedElections(p, b, states) ==
    IF b \in (IF p.isr # {} THEN p.isr ELSE p.elr) \cap Unfenced(states)
    THEN {Led(p, p, {b}, size, b) : size \in Sizes(p)} ELSE {}

(* An unclean one: only the winner counts.                                 *)
UncleanElections(p, b, states) ==
    IF b \in p.replicas \cap Unfenced(states) THEN Changes(p, p, {}, {b}, TRUE) ELSE {}

(* A reassignment begins, or another takes its place.                      *)
Reassigned(old, targets, states) ==
    LET added == targets \ old.replicas
        removed == old.replicas \ targets
        target == [old EXCEPT !.replicas = targets \cup @,
                              !.adding = IF added = {} THEN @ ELSE added,
                              !.removing = IF removed = {} THEN @ ELSE removed]
    IN  Changes(old, target, {}, Unfenced(states), FALSE)

(* It is called off.                                                       *)
Cancelled(old, states, isUnclean) ==
    LET rest == old.replicas \ old.adding
        restIsr == old.isr \ old.adding
        isEnough == restIsr # {} /\ (cancel_requires_min_isr = "on"
                                      => Cardinality(restIsr) >= Smaller(old.minIsr, Cardinality(rest)))
        To(members) == Changes(old, [old EXCEPT !.replicas = rest, !.isr = members, !.adding = {}, !.removing = {}],
                               {}, Unfenced(states), isUnclean)
    IN  IF old.adding \cup old.removing = {} THEN {}
        ELSE IF isEnough THEN To(restIsr)
        ELSE IF cancel_requires_min_isr = "on" THEN {}
        ELSE UNION {To({b}) : b \in rest}

(* Another min ISR; who was eligible by the one before may not be.         *)
WithMinIsr(old, size) ==
    LET p == [old EXCEPT !.minIsr = size] IN
    IF ~HasElr(old) \/ clear_elr_on_min_isr_change = "off" THEN p
    ELSE IF clear_elr_on_min_isr_change = "always"
    THEN [p EXCEPT !.elr = {}, !.lastKnownElr = {}, !.lastKnownLeader = None]
    ELSE IF Cardinality(p.isr) >= Effective(p) THEN [p EXCEPT !.elr = {}, !.lastKnownElr = {}]
    ELSE p

(* The feature goes, or comes back.                                        *)
WithFeature(old, hasElr) ==
    LET p == [old EXCEPT !.hasElr = hasElr] IN
    IF hasElr /\ downgrade_ignores_elr = "on" /\ p.elr \cup p.lastKnownElr # {}
    THEN [p EXCEPT !.elr = {}, !.lastKnownElr = {}, !.lastKnownLeader = None] ELSE p

Commit(p) ==
    /\ p.leaderEpoch <= MaxLeaderEpoch
    /\ IF p = partition THEN partition' = p
       ELSE /\ partition.partitionEpoch < MaxPartitionEpoch
            /\ partition' = [p EXCEPT !.partitionEpoch = partition.partitionEpoch + 1]

(* BrokerFenced: a broker's session is over.                               *)
Fence(b) ==
    /\ fences < MaxFences /\ fences' = fences + 1
    /\ registered[b].unfenced
    /\ LET states == [registered EXCEPT ![b].unfenced = FALSE] IN
       /\ registered' = states
       /\ \E p \in Left(partition, b, {}, states, FALSE) : Commit(p)
    /\ UNCHANGED <<brokerEpochs, process, storage, requests, committed, appended, elections, uncleanShutdowns, stops,
                   administration>>

(* PartitionChanged: an administrator, or the balancing of leaders, moves  *)
(* the leadership to another member of the ISR.                            *)
ElectLeader(b) ==
    /\ elections < MaxElections /\ elections' = elections + 1
    /\ b \in partition.isr \ {partition.leader}
    /\ registered[b].unfenced
    /\ Commit([partition EXCEPT !.leader = b, !.leaderEpoch = @ + 1])
    /\ UNCHANGED <<registered, brokerEpochs, process, storage, requests, committed, appended, fences, uncleanShutdowns,
                   stops, administration>>

(* BrokerRegistered: a process starts, and is given its broker epoch.      *)
Register(b) ==
    /\ epoch[b] = 0
    /\ up' = [up EXCEPT ![b] = TRUE]
    /\ ~registered[b].unfenced  \* KAFKA-19130: another incarnation waits until the session is over.
    /\ LET isClean == proof[b] = registered[b].epoch
           states == [registered EXCEPT ![b] = [epoch |-> brokerEpochs + 1, unfenced |-> FALSE]]
           unclean == IF isClean \/ unclean_detection = "off" THEN {} ELSE {b}
       IN
       /\ registered' = states
       /\ \E p \in Left(partition, b, unclean, states, FALSE) : Commit(p)
    /\ brokerEpochs' = brokerEpochs + 1
    /\ epoch' = [epoch EXCEPT ![b] = brokerEpochs + 1]
    /\ proof' = [proof EXCEPT ![b] = 0]
    /\ UNCHANGED <<view, progress, epochStart, pending, log, hw, requests, committed, appended, bounds>>

(* BrokerUnfenced: a broker's heartbeat arrives.                           *)
Unfence(b) ==
    /\ up[b] /\ epoch[b] # 0 /\ epoch[b] = registered[b].epoch /\ ~registered[b].unfenced
    /\ LET states == [registered EXCEPT ![b].unfenced = TRUE] IN
       /\ registered' = states
       /\ \E p \in Elections(partition, states, FALSE) : Commit(p)
    /\ UNCHANGED <<brokerEpochs, process, storage, requests, committed, appended, bounds>>

IsEligible(b, memberEpoch) ==
    /\ registered[b].unfenced
    /\ ap_broker_epoch_check = "on" => memberEpoch = registered[b].epoch

(* Epochs only grow, so that a request that is not current never is again. *)
IsCurrent(request) ==
    /\ request.leaderEpoch = partition.leaderEpoch
    /\ ap_partition_epoch_check = "on" => request.partitionEpoch = partition.partitionEpoch

(* AlterPartitionDecided and the answer, which the leader may read late.   *)
Decide(request) ==
    /\ IsCurrent(request)
    /\ LET isEligible == \A b \in DOMAIN request.isr : IsEligible(b, request.isr[b])
           members == DOMAIN request.isr
       IN
       /\ IF isEligible
          THEN /\ members \subseteq partition.replicas
               /\ \E p \in Changes(partition, [partition EXCEPT !.isr = members], {}, Unfenced(registered), FALSE) :
                    Commit(p)
               /\ requests' = requests \ {request}
               /\ pending' = pending
          ELSE /\ IF refusals_are_final = "on"
                  THEN /\ partition.partitionEpoch < MaxPartitionEpoch
                       /\ partition' = [partition EXCEPT !.partitionEpoch = @ + 1]
                       /\ requests' = requests \ {request}
                  ELSE /\ partition' = partition
                       /\ requests' = requests
               \* The leader goes back to its committed ISR (KIP-841).
               /\ pending' = IF /\ up[request.leader]
                                /\ pending[request.leader] # None
                                /\ view[request.leader].leaderEpoch = request.leaderEpoch
                             THEN [pending EXCEPT ![request.leader] = None]
                             ELSE pending
               /\ pending' # pending \/ refusals_are_final = "on"
    /\ UNCHANGED <<registered, brokerEpochs, up, epoch, view, progress, epochStart, storage, committed, appended,
                   bounds>>

(* ConfigChanged: another min ISR.                                         *)
ChangeMinIsr ==
    /\ minIsrChanges < MaxMinIsrChanges
    /\ minIsrChanges' = minIsrChanges + 1
    /\ \E size \in 1..Cardinality(Brokers) : size # partition.minIsr /\ partition' = WithMinIsr(partition, size)
    /\ UNCHANGED <<registered, brokerEpochs, process, storage, requests, committed, appended, fences, elections,
                   uncleanShutdowns, stops, excused, reassignments, uncleanElections, featureChanges>>

(* PartitionChanged: an administrator moves the partition, or calls that   *)
(* off.                                                                    *)
Reassign ==
    /\ reassignments < MaxReassignments
    /\ reassignments' = reassignments + 1
    /\ \/ \E targets \in SUBSET Brokers :
            /\ Cardinality(targets) = Cardinality(partition.replicas \ partition.adding)
            /\ \E p \in Reassigned(partition, targets, registered) : p # partition /\ Commit(p)
       \/ \E p \in Cancelled(partition, registered, FALSE) : Commit(p)
    /\ UNCHANGED <<registered, brokerEpochs, process, storage, requests, committed, appended, fences, elections,
                   uncleanShutdowns, stops, excused, minIsrChanges, uncleanElections, featureChanges>>

(* UncleanLeaderElected: what the winner lacks is promised no more.        *)
ElectUnclean(b) ==
    /\ uncleanElections < MaxUncleanElections
    /\ uncleanElections' = uncleanElections + 1
    /\ partition.leader = None
    /\ \E p \in UncleanElections(partition, b, registered) : Commit(p)
    /\ excused' = excused \cup (committed \ Entries(log[b], 1, Len(log[b])))
    /\ UNCHANGED <<registered, brokerEpochs, process, storage, requests, committed, appended, fences, elections,
                   uncleanShutdowns, stops, minIsrChanges, reassignments, featureChanges>>

(* FeatureChanged: eligible leader replicas are switched off, or on.       *)
ChangeFeature ==
    /\ featureChanges < MaxFeatureChanges
    /\ featureChanges' = featureChanges + 1
    /\ elr = "on"
    /\ partition' = WithFeature(partition, ~partition.hasElr)
    /\ UNCHANGED <<registered, brokerEpochs, process, storage, requests, committed, appended, fences, elections,
                   uncleanShutdowns, stops, excused, minIsrChanges, reassignments, uncleanElections>>

-----------------------------------------------------------------------------
\* Brokers.

Leads(b) == up[b] /\ view[b] # None /\ view[b].leader = b
Follows(f, l) == up[f] /\ view[f] # None /\ view[f].leader = l /\ f # l /\ f \in view[f].replicas

MaximalIsr(isr, proposed) ==
    CASE proposed = None -> isr
      [] maximal_isr = "on" -> isr \cup proposed
      [] maximal_isr = "proposed" -> proposed
      [] OTHER -> isr

(* HighWatermarkAdvanced, in the turn of whatever allowed it, and with it  *)
(* the answers to producers.                                               *)
AdvanceHighWatermark(l, known, proposed, reported, logs, watermarks) ==
    LET others == MaximalIsr(known.isr, proposed) \ {l}
        mayAdvance ==
            /\ hw_requires_min_isr = "on" => Cardinality(known.isr) >= Effective(known)
            /\ \A b \in others : reported[b].isKnown
        new == Min({reported[b].offset : b \in others} \cup {Len(logs[l])})
    IN  IF mayAdvance /\ new > watermarks[l]
        THEN /\ hw' = [watermarks EXCEPT ![l] = new]
             /\ committed' = committed \cup Entries(logs[l], 1, new)
        ELSE /\ hw' = watermarks
             /\ committed' = committed

(* AlterPartitionAnswered: the answer overtakes the metadata.              *)
TakeAnswer(l) ==
    /\ answers_await_metadata = "off"
    /\ Leads(l)
    /\ view[l].leaderEpoch = partition.leaderEpoch
    /\ view[l].partitionEpoch < partition.partitionEpoch
    /\ pending[l] = partition.isr
    /\ LET known == [Known(partition) EXCEPT !.minIsr = view[l].minIsr] IN
       /\ view' = [view EXCEPT ![l] = known]
       /\ pending' = [pending EXCEPT ![l] = None]
       /\ AdvanceHighWatermark(l, known, None, progress[l], log, hw)
    /\ UNCHANGED <<controller, up, epoch, progress, epochStart, log, proof, requests, appended, bounds>>

(* BecameLeader and BecameFollower: a process applies the metadata.  It    *)
(* applies all that is committed; what it knows may be old at any time.    *)
Apply(b) ==
    /\ up[b]
    /\ roles_after_registration = "on" => epoch[b] # 0
    /\ view[b] # Known(partition)
    /\ LET old == view[b]
           isNewTerm == old = None \/ old.leaderEpoch < partition.leaderEpoch
           ledBefore == old # None /\ old.leader = b
           keeps == ledBefore /\ (progress_of_this_term = "off" \/ old.leaderEpoch + 1 = partition.leaderEpoch)
       IN
       /\ view' = [view EXCEPT ![b] = Known(partition)]
       /\ pending' = [pending EXCEPT ![b] = None]
       /\ IF partition.leader = b
          THEN LET known == IF isNewTerm /\ ~keeps THEN NoProgress ELSE progress[b] IN
               /\ progress' = [progress EXCEPT ![b] = known]
               /\ epochStart' = IF isNewTerm THEN [epochStart EXCEPT ![b] = Len(log[b])] ELSE epochStart
               /\ log' = log
               /\ AdvanceHighWatermark(b, Known(partition), None, known, log, hw)
          ELSE /\ IF b \notin partition.replicas
                  THEN /\ log' = [log EXCEPT ![b] = <<>>]     \* LogDeleted
                       /\ hw' = [hw EXCEPT ![b] = 0]
                  ELSE /\ hw' = hw
                       /\ log' = IF isNewTerm /\ truncation = "high_watermark" /\ partition.leader # None
                                 THEN [log EXCEPT ![b] = SubSeq(@, 1, hw[b])] ELSE log
               /\ progress' = IF progress_of_this_term = "on" THEN [progress EXCEPT ![b] = NoProgress] ELSE progress
               /\ epochStart' = [epochStart EXCEPT ![b] = 0]
               /\ UNCHANGED committed
    /\ UNCHANGED <<controller, up, epoch, proof, requests, appended, bounds>>

(* BatchAppended by a leader: a producer sends a record with acks=all.     *)
Produce(l) ==
    /\ Leads(l)
    /\ Cardinality(view[l].isr) >= Effective(view[l])
    /\ appended < MaxRecords
    /\ appended' = appended + 1
    /\ log' = [log EXCEPT ![l] = Append(@, [epoch |-> view[l].leaderEpoch, record |-> appended + 1])]
    /\ AdvanceHighWatermark(l, view[l], pending[l], progress[l], log', hw)
    /\ UNCHANGED <<controller, process, proof, requests, bounds>>

(* How much of a follower's log may agree with the leader's, as far as one *)
(* answer tells: DivergingEpoch of KIP-595.  What differs within an epoch  *)
(* is not seen, and another fetch may find more.                           *)
AgreeUpTo(own, leaders) ==
    LET UpTo(records, term) == Cardinality({o \in 1..Len(records) : records[o].epoch <= term})
        last == own[Len(own)].epoch
        common == Max({0} \cup {leaders[o].epoch : o \in 1..UpTo(leaders, last)})
    IN  IF own = <<>> THEN 0 ELSE Smaller(UpTo(own, common), UpTo(leaders, common))

HasDiverged(f, l) == truncation = "leader_epoch" /\ AgreeUpTo(log[f], log[l]) < Len(log[f])

(* A fetch, and its answer: LogTruncated, or BatchAppended by a follower,  *)
(* and FollowerHighWatermarkUpdated.                                       *)
Fetch(f, l) ==
    /\ Follows(f, l) /\ Leads(l)
    /\ view[f].leaderEpoch = view[l].leaderEpoch
    /\ IF HasDiverged(f, l)
       THEN LET end == AgreeUpTo(log[f], log[l])
                leaderHw == Smaller(hw[l], Len(log[f]))
            IN
            /\ log' = [log EXCEPT ![f] = SubSeq(@, 1, end)]
            /\ hw' = [hw EXCEPT ![f] = Smaller(IF truncate_before_hw = "on" THEN @ ELSE leaderHw, end)]
            /\ UNCHANGED <<progress, committed>>
       ELSE LET offset == Len(log[f])
                end == Smaller(offset + 1, Len(log[l]))
                reported == [progress[l] EXCEPT ![f] = [offset |-> offset, epoch |-> epoch[f], isKnown |-> TRUE]]
                fetched == IF offset < end THEN [log EXCEPT ![f] = Append(@, log[l][end])] ELSE log
            IN
            /\ log' = fetched
            /\ progress' = [progress EXCEPT ![l] = reported]
            /\ AdvanceHighWatermark(l, view[l], pending[l], reported, log, [hw EXCEPT ![f] = Smaller(hw[l], end)])
    /\ <<log', hw', progress'>> # <<log, hw, progress>>
    /\ UNCHANGED <<controller, up, epoch, view, epochStart, pending, proof, requests, appended, bounds>>

(* AlterPartitionProposed, for who joins when it fetches.  That a leader   *)
(* hears late who is unfenced, is the same here as a request that is late. *)
Propose(l) ==
    /\ Leads(l)
    /\ pending[l] = None
    /\ Cardinality({request \in requests : IsCurrent(request)}) < MaxRequests
    /\ \E b \in view[l].replicas \ {l} :
        LET isCaughtUp == progress[l][b].isKnown /\ progress[l][b].offset >= hw[l]
                          /\ progress[l][b].offset >= epochStart[l]
                          /\ registered[b] = [epoch |-> progress[l][b].epoch, unfenced |-> TRUE]
                          /\ Follows(b, l)
            proposed == IF b \in view[l].isr THEN view[l].isr \ {b} ELSE view[l].isr \cup {b}
        IN
        /\ IF b \in view[l].isr THEN ~progress[l][b].isKnown \/ progress[l][b].offset < Len(log[l]) ELSE isCaughtUp
        /\ pending' = [pending EXCEPT ![l] = proposed]
        /\ requests' = requests \cup
            {[leader |-> l, leaderEpoch |-> view[l].leaderEpoch, partitionEpoch |-> view[l].partitionEpoch,
              isr |-> [m \in proposed |-> IF m = l THEN epoch[l]
                                          ELSE IF progress[l][m].isKnown THEN progress[l][m].epoch
                                          ELSE registered[m].epoch]]}
    /\ UNCHANGED <<controller, up, epoch, view, progress, epochStart, storage, committed, appended, bounds>>

-----------------------------------------------------------------------------
\* Processes end and begin.

End(b) ==
    /\ up[b]
    /\ up' = [up EXCEPT ![b] = FALSE]
    /\ epoch' = [epoch EXCEPT ![b] = 0]
    /\ view' = [view EXCEPT ![b] = None]
    /\ pending' = [pending EXCEPT ![b] = None]
    /\ progress' = [progress EXCEPT ![b] = NoProgress]
    /\ epochStart' = [epochStart EXCEPT ![b] = 0]
    /\ UNCHANGED <<controller, requests, committed, appended>>

(* A loss of power takes what was not synced, and Kafka syncs nothing that *)
(* it promises; SIGKILL is the one that takes nothing.                     *)
UncleanShutdown(b) ==
    /\ uncleanShutdowns < MaxUncleanShutdowns /\ uncleanShutdowns' = uncleanShutdowns + 1
    /\ End(b)
    /\ \E end \in 0..Len(log[b]) :
        /\ log' = [log EXCEPT ![b] = SubSeq(@, 1, end)]
        /\ hw' = [hw EXCEPT ![b] = Smaller(@, end)]
    /\ UNCHANGED <<proof, fences, elections, stops, administration>>

(* In order: everything is synced, and the proof of it written.            *)
Stop(b) ==
    /\ stops < MaxStops /\ stops' = stops + 1
    /\ epoch[b] # 0
    /\ End(b)
    /\ proof' = IF view[b] # None \/ untouched_logs_stay_proven = "on" THEN [proof EXCEPT ![b] = epoch[b]] ELSE proof
    /\ UNCHANGED <<log, hw, fences, elections, uncleanShutdowns, administration>>

(* A process that takes roles before it is registered.                     *)
Start(b) ==
    /\ ~up[b] /\ roles_after_registration = "off"
    /\ up' = [up EXCEPT ![b] = TRUE]
    /\ UNCHANGED <<controller, epoch, view, progress, epochStart, pending, storage, requests, committed, appended,
                   bounds>>

-----------------------------------------------------------------------------

Init ==
    /\ \E replicas \in SUBSET Brokers :
        /\ Cardinality(replicas) = Cardinality(Brokers) - Spares
        /\ \E l \in replicas :
            partition = [leader |-> l, leaderEpoch |-> 1, partitionEpoch |-> 1, isr |-> replicas, elr |-> {},
                         lastKnownElr |-> {}, lastKnownLeader |-> None, minIsr |-> MinIsr, hasElr |-> TRUE,
                         replicas |-> replicas, adding |-> {}, removing |-> {}]
    /\ registered = [b \in Brokers |-> [epoch |-> 1, unfenced |-> TRUE]]
    /\ brokerEpochs = 1
    /\ up = [b \in Brokers |-> TRUE]
    /\ epoch = [b \in Brokers |-> 1]
    /\ view = [b \in Brokers |-> Known(partition)]
    /\ log = [b \in Brokers |-> <<>>]
    /\ hw = [b \in Brokers |-> 0]
    /\ proof = [b \in Brokers |-> 0]
    /\ progress = [b \in Brokers |-> IF b = partition.leader
                                     THEN [m \in Brokers |-> IF m \in partition.replicas
                                                             THEN [offset |-> 0, epoch |-> 1, isKnown |-> TRUE]
                                                             ELSE Unknown]
                                     ELSE NoProgress]
    /\ epochStart = [b \in Brokers |-> 0]
    /\ pending = [b \in Brokers |-> None]
    /\ requests = {}
    /\ committed = {}
    /\ appended = 0
    /\ fences = 0 /\ elections = 0 /\ uncleanShutdowns = 0 /\ stops = 0 /\ minIsrChanges = 0
    /\ excused = {} /\ reassignments = 0 /\ uncleanElections = 0 /\ featureChanges = 0

Next ==
    \/ \E b \in Brokers :
        \/ Fence(b) \/ ElectLeader(b) \/ ElectUnclean(b) \/ Register(b) \/ Unfence(b) \/ Apply(b)
        \/ Produce(b) \/ Propose(b) \/ TakeAnswer(b)
        \/ UncleanShutdown(b) \/ Stop(b) \/ Start(b)
        \/ \E l \in Brokers : Fetch(b, l)
    \/ \E request \in requests : Decide(request)
    \/ ChangeMinIsr \/ Reassign \/ ChangeFeature

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* What must hold.

WellFormed ==
    /\ partition.isr \cap partition.elr = {}
    /\ partition.leader # None => partition.leader \in partition.isr

(* No committed record is missing from the log of who leads by the newest *)
(* metadata, and serves; but for what an unclean election gave up.         *)
NoLoss ==
    \A b \in Brokers :
        (Leads(b) /\ partition.leader = b /\ view[b].leaderEpoch = partition.leaderEpoch)
            => committed \ excused \subseteq Entries(log[b], 1, Len(log[b]))

(* No replica shows a reader what was never committed.                     *)
ReadsAreCommitted ==
    \A b \in Brokers : up[b] => Entries(log[b], 1, hw[b]) \subseteq committed

\* For the model checker: what tells two states apart.
StateView ==
    <<controller, process, storage, {request \in requests : IsCurrent(request)}, committed, appended, bounds>>

=============================================================================
