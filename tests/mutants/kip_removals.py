"""The sentences of the KIPs that are built: for each an edit that takes it away, and the test that fails then.

The documents ``docs/kip-*.md`` name the tests, sentence by sentence. Those of a declaration, which has no function that
could be edited for a while, are in ``BY_HAND``: they were seen to fail with the source edited. ``python -m
tests.mutants.kip_removals`` tries all, or those of the documents that are named.
"""

import sys
from typing import Final

from tests.mutants.removals import Removal, main

KIP_REMOVALS: Final = (
    Removal(
        row="kip-966",
        place="core/controller/features.py::_update_problem",
        code="if not broker.supports(name, level):",
        instead="if False:",
        test="tests/unit/core/controller/test_admin_requests.py::test_a_feature_that_a_registered_broker_lacks_stays_off",
    ),
    Removal(
        row="kip-966",
        place="core/release.py::highest_level",
        code="{ELR_VERSION: supported_elr_level(switches), ",
        instead="{ELR_VERSION: 1, ",
        test="tests/unit/simulator/test_mixed_eras.py::test_a_broker_that_lacks_a_finalized_feature_is_not_let_in",
    ),
    Removal(
        row="kip-966",
        place="core/release.py::supported_elr_level",
        code="1 if switches.elr else 0",
        instead="1",
        test="tests/unit/simulator/test_mixed_eras.py::test_a_controller_does_not_start_on_a_log_with_a_level_that_its_release_lacks",
    ),
    Removal(
        row="kip-966",
        place="core/release.py::lacking_level",
        code="if level > highest:",
        instead="if False:",
        test="tests/unit/simulator/test_mixed_eras.py::test_a_controller_does_not_start_on_a_log_with_a_level_that_its_release_lacks",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/partition.py::Partition._apply_recovery_state",
        code="if self._config.switches.recovering_gate:",
        instead="if True:",
        test="tests/unit/simulator/test_mixed_eras.py::test_a_leader_whose_release_does_not_recover_ignores_recovering",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/fetcher.py::FetcherPool._send_to",
        code="broker_epoch if names_broker_epochs(self._config.switches) else None",
        instead="broker_epoch",
        test="tests/unit/simulator/test_mixed_eras.py::test_a_follower_from_before_kip_903_names_no_broker_epoch",
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.send_queued",
        code="named = names_broker_epochs(self._config.switches)",
        instead="named = True",
        test=(
            "tests/unit/core/broker/kraft/test_alter_partition_sender.py"
            "::test_a_leader_names_broker_epochs_if_its_release_does"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/controller.py::Controller._answer",
        code="admitted = self._guard.admit(received)",
        instead="admitted = received",
        test="tests/unit/core/controller/test_acls.py::test_a_leader_without_cluster_action_changes_no_isr",
    ),
    Removal(
        row="kip-966",
        place="core/broker/kraft/broker.py::Broker._unseen",
        code="return frozenset() if self._guard is None else self._guard.unseen(incoming, self._image.topics)",
        instead="return frozenset()",
        test=(
            "tests/unit/core/broker/kraft/test_permissions.py::test_topics_are_hidden_from_principals_without_describe"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/authorizer/request_guard.py::refusal",
        code="messages.ReplicaLogInfo(topic_id=topic_id, partition=partition, error=error)",
        instead="messages.ReplicaLogInfo(topic_id=topic_id, partition=partition, error=ErrorCode.NONE)",
        test="tests/unit/core/broker/kraft/test_permissions.py::test_the_end_of_a_log_is_for_those_with_cluster_action",
    ),
    Removal(
        row="kip-966",
        place="core/authorizer/request_guard.py::RequestGuard.admit",
        code="return received if is_met else Refused(refusal(request, _CLUSTER_DENIED))",
        instead="return received",
        test="tests/unit/core/authorizer/test_request_guard.py::test_a_request_needs_its_permission_and_no_other",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/high_watermark.py::advance_high_watermark",
        code="if committed_isr_size < required_isr_size:",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[high_watermark_waits_for_min_isr]",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="len(self.committed_isr),",
        instead="len(maximal),",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_sent_expansion_does_not_count_towards_min_isr"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/isr.py::maximal_isr",
        code="return state.committed if isinstance(state, PendingShrink) else proposed_isr(state)",
        instead="return committed_isr(state)",
        test="tests/interaction/test_scripts.py::test_script[isr_shrink_and_expand]",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="min_isr if self._config.switches.hw_requires_min_isr else 0",
        instead="0",
        test="tests/unit/core/broker/replicas/test_partition_leader.py::test_the_gate_of_min_isr_is_a_switch",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/delayed_produce.py::ProduceHandler._answer",
        code="if request.acks != Acks.NONE:",
        instead="if True:",
        test=(
            "tests/unit/core/broker/kraft/test_broker_steps.py::test_acks_zero_has_no_answer_and_it"
            "s_failure_closes_the_connection"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/delayed_produce.py::ProduceHandler.append_verified",
        code="if request.acks == Acks.ALL:",
        instead="if True:",
        test="tests/interaction/test_scripts.py::test_script[high_watermark_waits_for_min_isr]",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/produce.py::append_batch",
        code="if acks == Acks.ALL and partition.is_under_min_isr:",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[min_isr_above_replicas_as_configured]",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/produce.py::commit_result",
        code="if partition.log.high_watermark < required_offset:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/kraft/test_broker_steps.py::test_acks_all_waits_for_the_followe"
            "r_and_file_effects_come_first"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/fetch.py::visible_end_offset",
        code="if reader.replica_id is not None:",
        instead="if True:",
        test=(
            "tests/unit/core/broker/replicas/test_delayed_fetch.py::test_a_high_watermark_answers_the_consumers_that_have_enough"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/min_isr.py::MinIsr.effective",
        code="min(self.configured, cap)",
        instead="self.configured",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_min_isr_follows_the_re"
            "plicas_that_a_change_leaves"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/topics.py::create_topic",
        code="decisions.append(Decision(record=record))",
        instead=(
            "if name == MIN_ISR and int(value) > len(placement.assignments[0]): return TopicO"
            "utcome(error=ErrorCode.INVALID_CONFIG)\n        decisions.append(Decision(record="
            "record))"
        ),
        test="tests/interaction/test_scripts.py::test_script[min_isr_above_replicas_capped]",
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="min_isr if self._config.switches.hw_requires_min_isr else 0",
        instead="0",
        test="tests/interaction/test_scripts.py::test_script[high_watermark_waits_for_min_isr]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::next_partition_change",
        code="if not isr and not rules.elr_enabled:",
        instead="if not isr:",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/isr_changes.py::maybe_shrink_isr",
        code="if leaving:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/replicas/test_maintenance.py::test_members_that_lag_are_dropped_at"
            "_every_half_of_the_lag_time"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/fencing.py::leave_isrs",
        code="isr=tuple(member for member in state.isr if member != broker_id)",
        instead="isr=state.isr",
        test="tests/interaction/test_scripts.py::test_script[last_replica_standing_kip_966]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="outside = (set(state.elr) | set(state.isr)) - set(lists.isr)",
        instead="outside = (set(state.elr) | set(state.isr))",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_the_isr_of_a_partition"
            "_is_measured_by_its_own_replicas"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="outside = (set(state.elr) | set(state.isr)) - set(lists.isr)",
        instead="outside = set(lists.replicas) - set(lists.isr)",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_a_leader_from_the_elr_"
            "that_may_commit_alone_has_no_candidate_beside_it"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="outside = (set(state.elr) | set(state.isr)) - set(lists.isr)",
        instead="outside = ((set(state.elr) | set(state.isr)) - set(lists.isr)) & target.acceptable",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="memory = msgspec.structs.replace(memory, elr=(), last_known_elr=())",
        instead="pass",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_the_kip_remembers_the_"
            "last_known_elr_until_the_isr_is_large_enough"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="outside = (set(state.elr) | set(state.isr)) - set(lists.isr)",
        instead="outside = set(state.isr) - set(lists.isr)",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/controller/fencing.py::leave_isrs_and_elrs",
        code=", *view.partitions_in_elr_of(broker_id)]",
        instead="]",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::"
            "test_a_balanced_election_that_would_have_to_wait_is_refused"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/partition.py::Partition.become_leader",
        code="self.isr_state = Committed(state.isr)",
        instead="self.isr_state = Committed((*state.isr, *state.elr))",
        test="tests/interaction/test_scripts.py::test_script[s17_min_isr_changed_elr_kept]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/alter_partition.py::alter_partition",
        code="isr=tuple(member.broker_id for member in data.new_isr)",
        instead="isr=state.isr",
        test="tests/unit/core/controller/test_admin_requests.py::test_a_new_min_isr_and_the_elr",
    ),
    Removal(
        row="kip-966",
        place="core/controller/fencing.py::fence_broker",
        code="decisions = leave_isrs(view, broker_id, reason=ChangeReason.BROKER_FENCED)",
        instead="decisions = []",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/controller/fencing.py::unfence_broker",
        code="for partition, _ in view.leaderless_partitions():",
        instead="for partition, _ in ():",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/controller/registration.py::_register_incarnation",
        code="decisions.append(Decision(record=record, cause=cause))",
        instead="decisions.insert(0, Decision(record=record, cause=cause))",
        test="tests/interaction/test_scripts.py::test_script[kip_966_unclean_recovery_balanced]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="elif len(lists.isr) >= effective_min_isr:",
        instead="elif len(lists.isr) > effective_min_isr:",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_the_isr_of_a_partition"
            "_is_measured_by_its_own_replicas"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="outside = (set(state.elr) | set(state.isr)) - set(lists.isr)",
        instead="outside = set(state.elr) - set(lists.isr)",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_the_isr_of_a_partition"
            "_is_measured_by_its_own_replicas"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::next_partition_change",
        code="if is_bumped:\n        record",
        instead="if True:\n        record",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_in_old_metadata_versio"
            "ns_an_isr_that_shrinks_begins_a_leader_epoch_and_no_other_does"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/configs.py::alter_config",
        code="decisions += _clear_elr(view, topic, changed)",
        instead="pass",
        test="tests/unit/core/controller/test_admin_requests.py::test_a_new_min_isr_and_the_elr",
    ),
    Removal(
        row="kip-966",
        place="core/controller/health.py::controller_health",
        code="len(state.isr) + len(state.elr)",
        instead="len(state.isr)",
        test="tests/unit/core/controller/test_health.py::test_members_of_isr_and_elr_are_electable",
    ),
    Removal(
        row="kip-966",
        place="core/controller/reassignment_lists.py::complete_reassignment",
        code="or not set(needed) <= set(final_isr)",
        instead="",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_by_the_kip_a_reassignm"
            "ent_completes_with_those_that_it_adds_and_min_isr"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/reassignment_lists.py::complete_reassignment",
        code="if len(final_isr) < max(required, 1) or",
        instead="if",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_by_the_kip_a_reassignm"
            "ent_completes_with_those_that_it_adds_and_min_isr"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::next_partition_change",
        code="if result.leader not in (None, *outcome.lists.isr) and rules.reassignment_requires_min_isr:",
        instead="if False:",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_an_unclean_leader_is_too_few_for_a_re"
            "assignment_to_complete"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="return _within_replicas(memory, lists.replicas) if rules.elr_within_replicas else memory",
        instead="return memory",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_an_eligible_broker_tha"
            "t_is_moved_away_is_not_waited_for"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/reassignment.py::cancel_reassignment",
        code=("if view.switches.cancel_requires_min_isr and (reverted.is_unclean or len(reverted.isr) < required):"),
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[kip_966_reassignment]",
    ),
    Removal(
        row="kip-966",
        place="core/describe.py::_describe",
        code="elr=state.elr",
        instead="elr=()",
        test="tests/unit/core/test_describe.py::test_eligible_replicas_and_those_that_were_are_shown",
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="remembered = set(state.last_known_elr) | (outside & target.unclean_replicas)",
        instead="remembered = set(state.last_known_elr)",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_balanced_asks_once_all"
            "_of_the_last_known_elr_are_unfenced"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_still_remembered",
        code="return tuple(broker_id for broker_id in memory.last_known_elr if broker_id not in isr)",
        instead="return ()",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_the_kip_remembers_the_"
            "last_known_elr_until_the_isr_is_large_enough"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_difference",
        code="last_known_elr=UNSET if wanted.last_known_elr == state.last_known_elr else wanted.last_known_elr",
        instead="last_known_elr=UNSET",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_balanced_asks_once_all"
            "_of_the_last_known_elr_are_unfenced"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_remember_leader",
        code="remembered = state.leader if memory.last_known_leader is None else memory.last_known_leader",
        instead="remembered = memory.last_known_leader",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_without_the_manager_no"
            "thing_makes_none_take_the_last_known_leader"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_remember_leader",
        code="return msgspec.structs.replace(memory, last_known_leader=None)",
        instead="return memory",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_a_leader_ends_the_memo"
            "ry_of_the_last_one_and_not_that_of_the_elr"
        ),
    ),
    Removal(
        row="kip-966",
        place="storage/log_directory.py::LogDirectory.close_logs",
        code="for log in self._logs.values():\n            log.close()",
        instead=(
            "for log in self._logs.values():\n            clean_shutdown.write(self._filesyste"
            "m, self.path, broker_epoch); log.close()"
        ),
        test=(
            "tests/unit/storage/test_log_directory.py::test_a_directory_whose_logs_could_not_be_flushed_has_no_proof"
        ),
    ),
    Removal(
        row="kip-966",
        place="storage/clean_shutdown.py::write",
        code="broker_epoch is None",
        instead="True",
        test="tests/unit/storage/test_small_files.py::test_clean_shutdown_file_neither_vanishes_nor_comes_back",
    ),
    Removal(
        row="kip-966",
        place="storage/clean_shutdown.py::write",
        code="_NO_EPOCH if broker_epoch is None else broker_epoch",
        instead="broker_epoch",
        test="tests/unit/storage/test_small_files.py::test_a_broker_that_never_had_an_epoch_writes_minus_one",
    ),
    Removal(
        row="kip-966",
        place="storage/log_directory.py::LogDirectory.renew_clean_shutdown",
        code="clean_shutdown.write(self._filesystem, self.path, broker_epoch)",
        instead="pass",
        test=(
            "tests/unit/storage/test_log_directory.py::test_an_epoch_that_is_renewed_before_load_survives_a_power_loss"
        ),
    ),
    Removal(
        row="kip-966",
        place="storage/clean_shutdown.py::previous_broker_epoch",
        code="None if seen == _NO_EPOCH else BrokerEpoch(seen)",
        instead="None",
        test="tests/unit/storage/test_small_files.py::test_previous_broker_epoch",
    ),
    Removal(
        row="kip-966",
        place="core/controller/registration.py::judge_shutdown",
        code=("return Shutdown.CLEAN if request.previous_broker_epoch == stored_broker_epoch else Shutdown.UNCLEAN"),
        instead="return Shutdown.CLEAN",
        test=(
            "tests/unit/core/controller/test_registration.py::test_a_clean_shutdown_is_proved"
            "_by_the_epoch_from_its_metadata_version_on"
        ),
    ),
    Removal(
        row="kip-966",
        place="storage/log_directory.py::LogDirectory.load_logs",
        code="clean_shutdown.delete(self._filesystem, self.path)\n",
        instead="\n",
        test="tests/unit/storage/test_log_directory.py::test_logs_that_are_open_have_no_proof",
    ),
    Removal(
        row="kip-966",
        place="core/controller/registration.py::judge_shutdown",
        code="if metadata_level < CLEAN_SHUTDOWN_PROOF or",
        instead="if",
        test=(
            "tests/unit/core/controller/test_registration.py::test_a_clean_shutdown_is_proved"
            "_by_the_epoch_from_its_metadata_version_on"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/registration.py::judge_shutdown",
        code=" or request.api_version < _PREVIOUS_EPOCH_SINCE",
        instead="",
        test=(
            "tests/unit/core/controller/test_registration.py::test_a_clean_shutdown_is_proved"
            "_by_the_epoch_from_its_metadata_version_on"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/election.py::Candidates.is_valid",
        code="broker_id in self.isr or (not",
        instead="(not",
        test="tests/unit/core/controller/test_election.py::test_every_mode_takes_a_clean_candidate_first",
    ),
    Removal(
        row="kip-966",
        place="core/controller/election.py::Candidates.is_valid",
        code="broker_id in self.isr or (not self.isr and broker_id in self.elr)",
        instead="broker_id in self.isr",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/controller/election.py::_electable_last_known_leader",
        code="candidates.isr or candidates.elr or",
        instead="candidates.isr or",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/controller/view.py::ClusterView.election_type",
        code="return ElectionType.UNCLEAN",
        instead="return ElectionType.ONLINE",
        test=(
            "tests/unit/core/controller/test_admin_requests.py::test_the_search_for_unclean_l"
            "eaders_mends_every_partition_whose_topic_allows_it"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/election.py::elect_leader",
        code="if mode is ElectionType.UNCLEAN and candidates.unclean:",
        instead="if False:",
        test="tests/unit/core/controller/test_election.py::test_nobody_eligible_is_left",
    ),
    Removal(
        row="kip-966",
        place="core/controller/election.py::elect_leader",
        code="last_known_leader = _electable_last_known_leader(candidates)",
        instead="last_known_leader = None",
        test="tests/unit/core/controller/test_election.py::test_nobody_eligible_is_left",
    ),
    Removal(
        row="kip-966",
        place="core/controller/election.py::elect_leader",
        code="drawn = candidates.unclean[candidates.draw % len(candidates.unclean)]",
        instead="drawn = candidates.unclean[0]",
        test="tests/unit/core/controller/test_election.py::test_a_draw_picks_among_those_who_live",
    ),
    Removal(
        row="kip-966",
        place="core/controller/view.py::ClusterView.election_type",
        code="if self.properties.unclean_recovery_manager_enabled:",
        instead="if False:",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_aggressive_chooses_among_replicas_that_answered_by_the_timeout"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/recovery.py::decide_recovery",
        code="return RecoveryDecision(action=RecoveryAction.UNCLEAN_RECOVERY)\n",
        instead="return RecoveryDecision(action=RecoveryAction.WAIT_ELR)\n",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_aggressive_chooses_among_replicas_that_answered_by_the_timeout"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/recovery.py::decide_recovery",
        code="if set(remembered) <= active:",
        instead="if True:",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::"
            "test_balanced_begins_anew_when_a_replica_it_needs_goes_away"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._ask",
        code="for broker_id in sorted(self._view.active_brokers() - busy):",
        instead="for broker_id in sorted(self._view.active_brokers() - busy)[:1]:",
        test="tests/unit/core/controller/test_unclean_recovery.py::test_a_request_that_fails_is_sent_again",
    ),
    Removal(
        row="kip-966",
        place="core/controller/recovery.py::log_rank",
        code="return -1 if last_written_leader_epoch is None else last_written_leader_epoch, log_end_offset",
        instead="return 0, log_end_offset",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_the_last_record_s_epoc"
            "h_decides_before_the_log_s_length"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._choose",
        code="waits = self._view.switches.recovery_waits and task.strategy is RecoveryStrategy.BALANCED",
        instead="waits = False",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::"
            "test_balanced_also_waits_for_replicas_that_are_down_by_one_reading_of_the_kip"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._choose",
        code="or not (is_complete or task.is_overdue)",
        instead="",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_aggressive_chooses_among_replicas_that_answered_by_the_timeout"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries.handle_response",
        code="if registration is None or registration.broker_epoch != response.broker_epoch:",
        instead="if registration is None:",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_an_answer_of_an_earlie"
            "r_incarnation_is_dropped_and_asked_for_again"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._note",
        code="if info.current_leader_epoch != self._view.image.partitions[name].leader_epoch:",
        instead="if False:",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_an_answer_of_older_met"
            "adata_is_dropped_and_asked_for_again"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._check_image",
        code="for partition, state in self._view.leaderless_partitions():",
        instead="for partition, state in self._view.leaderless_partitions() if self._seen is None else ():",
        test="tests/interaction/test_scripts.py::test_script[kip_966_controller_failover]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._check_image",
        code="elif state.leader is not None:",
        instead="elif False:",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_a_leader_that_was_desi"
            "gnated_meanwhile_ends_the_recovery"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_recovery.py::UncleanRecoveries._ask",
        code="tuple(wanted[:REQUEST_PARTITIONS_MAX])",
        instead="tuple(wanted)",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_a_request_has_no_more_"
            "partitions_than_the_kip_allows"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/election_handler.py::ElectionHandler.answer",
        code="if not waiting.due:",
        instead="if True:",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_an_administrator_s_rec"
            "overy_is_answered_when_it_has_elected"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_difference",
        code="elr=UNSET if wanted.elr == state.elr else wanted.elr,\n        last",
        instead="elr=UNSET,\n        last",
        test=("tests/unit/core/controller/test_controller.py::test_with_elr_the_partition_waits_for_the_eligible_one"),
    ),
    Removal(
        row="kip-966",
        place="core/describe.py::describe_topic_partitions",
        code="[name for name in names if name not in unauthorized]",
        instead="names",
        test="tests/unit/core/test_describe.py::test_a_topic_that_the_asker_may_not_see_is_hidden_or_refused",
    ),
    Removal(
        row="kip-966",
        place="core/describe.py::_fill",
        code="if end < len(partitions):",
        instead="if False:",
        test=("tests/unit/core/test_describe.py::test_a_page_ends_at_the_smaller_limit_and_names_the_next_partition"),
    ),
    Removal(
        row="kip-966",
        place="core/describe.py::describe_topic_partitions",
        code="max(1, min(partition_limit, request.response_partition_limit))",
        instead="request.response_partition_limit",
        test=("tests/unit/core/test_describe.py::test_a_page_ends_at_the_smaller_limit_and_names_the_next_partition"),
    ),
    Removal(
        row="kip-966",
        place="core/describe.py::_fill",
        code="start = cursor.partition if cursor is not None and cursor.topic == name else 0",
        instead="start = 0",
        test="tests/interaction/test_scripts.py::test_script[kip_966_describe_topic_partitions]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/unclean_config.py::recovery_strategy",
        code="return RecoveryStrategy(strategy)",
        instead="continue",
        test=(
            "tests/unit/core/controller/test_unclean_config.py::test_the_nearest_place_decides_and_there_the_strategy"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/recovery.py::strategy_of_unclean_enable",
        code='RecoveryStrategy.AGGRESSIVE if value.lower() == "true" else RecoveryStrategy.BALANCED',
        instead="RecoveryStrategy.BALANCED",
        test=(
            "tests/unit/core/controller/test_unclean_config.py::test_the_nearest_place_decides_and_there_the_strategy"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/replica_log_info.py::_log_info",
        code="last_written_leader_epoch=found.log.last_written_leader_epoch",
        instead="last_written_leader_epoch=found.leader_epoch",
        test=(
            "tests/unit/core/broker/replicas/test_replica_log_info.py::test_the_log_is_reported_with_the_e"
            "poch_of_its_last_record_and_that_of_the_metadata"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/broker/replicas/replica_log_info.py::replica_log_info",
        code="if index < SERVED_MAX:",
        instead="if True:",
        test=(
            "tests/unit/core/broker/replicas/test_replica_log_info.py::test_what_is_not_there_and_what"
            "_is_too_much_is_refused_in_its_place"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/elect_leaders.py::_elect_designated",
        code="acceptable=frozenset({desired_leader})",
        instead="acceptable=view.active_brokers()",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::test_a_designated_leader_th"
            "at_is_eligible_is_no_unclean_one"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/elect_leaders.py::elect_leaders",
        code="return _elect_longest_log(view, partition, state, RecoveryStrategy.BALANCED)",
        instead="return _elect_longest_log(view, partition, state, RecoveryStrategy.AGGRESSIVE)",
        test=(
            "tests/unit/core/controller/test_unclean_recovery.py::"
            "test_a_balanced_election_that_would_have_to_wait_is_refused"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/election_handler.py::ElectionHandler.answer",
        code="if len(waiting.results) >= ELECT_LIMIT:",
        instead="if False:",
        test="tests/unit/core/controller/test_admin_requests.py::test_a_request_is_served_a_thousand_partitions",
    ),
    Removal(
        row="kip-966",
        place="client/admin.py::AdminClient.describe_topics",
        code="range(0, len(wanted), DESCRIBED_TOPICS_MAX)",
        instead="(0,)",
        test="tests/unit/client/test_admin.py::test_more_topics_than_a_request_may_name_are_asked_for_in_pieces",
    ),
    Removal(
        row="kip-966",
        place="core/controller/health.py::controller_health",
        code="name in under_way or _waits_for_last_known(view, name, state) for name, state in offline",
        instead="name in under_way for name, state in offline",
        test=(
            "tests/unit/core/controller/test_health.py::test_a_partition_that_waits_for_its_l"
            "ast_known_elr_is_under_unclean_recovery"
        ),
    ),
    Removal(
        row="kip-966",
        place="core/controller/features.py::_dependency_problem",
        code="if levels.get(ELR_VERSION, 0) > 0 and levels.get(METADATA_VERSION, 0) < metadata_version.ELR:",
        instead="if False:",
        test="tests/unit/core/controller/test_admin_requests.py::test_features_change_together_or_not_at_all",
    ),
    Removal(
        row="kip-966",
        place="core/controller/features.py::is_elr_enabled",
        code="min(image.feature_level(ELR_VERSION), supported_elr_level(switches)) >= 1",
        instead="True",
        test="tests/interaction/test_scripts.py::test_script[kip_966_feature_upgrade]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/partition_change.py::_target_memory",
        code="memory = none if rules.downgrade_ignores_elr else memory",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[kip_966_feature_downgrade]",
    ),
    Removal(
        row="kip-966",
        place="core/controller/features.py::update_features",
        code="decisions += _forget_left_over(image) if is_left_over_ignored else []",
        instead="pass",
        test=(
            "tests/unit/core/controller/test_admin_requests.py::test_an_elr_that_a_downgrade_"
            "left_is_gone_when_the_feature_returns"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery.check",
        code="self._start(turn, partition)",
        instead="pass",
        test=(
            "tests/unit/core/broker/replicas/test_leader_recovery.py::test_the_log_is_read_under_the_leader_epoch_that_was_won"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery._finish_if_due",
        code="if found.bad_offset is not None:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/replicas/test_leader_recovery.py::test_a_bad_batch_ends_the_log_and_the_epoch_starts_there"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery._finish_if_due",
        code="producer_count = partition.log.rebuild_producers(now_ms=turn.now_ms)",
        instead="producer_count = 0",
        test=(
            "tests/unit/core/broker/replicas/test_leader_recovery.py::test_it_knows_the_producers_of_its_log_and_no_others"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/transactions/recovery.py::LogMender.find_ends",
        code="if not self._switches.recovery_aborts_transactions:",
        instead="if True:",
        test="tests/unit/core/broker/replicas/test_leader_recovery.py::test_a_transaction_whose_end_was_lost_is_aborted",
    ),
    Removal(
        row="kip-704",
        place="core/broker/transactions/inquiry.py::end_of",
        code="result, epoch = decided, transaction.producer_epoch",
        instead="pass",
        test=(
            "tests/unit/core/broker/transactions/test_inquiry.py::"
            "test_decided_transactions_are_written_ongoing_ones_left_and_unknown_ones_aborted"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/transactions/scan.py::OpenTransactionScans.settle",
        code="if not self._is_on or not (self._has_news or turn.turned):",
        instead="if True:",
        test=(
            "tests/unit/simulator/test_recovery_of_coordinators.py::"
            "test_a_transaction_that_its_coordinator_forgot_is_ended_by_the_leader_that_asks"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/transactions/recovery.py::aborts",
        code="if each.state is TransactionState.ONGOING:",
        instead="if False:",
        test=(
            "tests/unit/simulator/test_recovery_of_coordinators.py::"
            "test_a_coordinator_that_fails_in_the_midst_of_its_recovery_begins_again_and_ends"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/transactions/recovery.py::ends_of_sessions",
        code="yield SessionsEnded(transactional_id=each.transactional_id, producer_id=each.producer_id)",
        instead="yield from ()",
        test=(
            "tests/unit/simulator/test_recovery_of_coordinators.py::"
            "test_an_id_that_was_taken_away_stays_so_when_another_coordinator_loads_it"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery._mend",
        code="if not mender.needs_records(name):",
        instead="if True:",
        test=(
            "tests/unit/simulator/test_recovery_of_coordinators.py::"
            "test_a_coordinator_that_fails_in_the_midst_of_its_recovery_begins_again_and_ends"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/groups/position_check.py::_checked",
        code="position.offset <= result.end_offset",
        instead="True",
        test=(
            "tests/unit/core/broker/groups/test_position_check.py::"
            "test_no_position_is_returned_beyond_the_end_of_its_records"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/groups/recovery.py::fences",
        code="generation_id = each.generation_id + GENERATION_JUMP",
        instead="generation_id = each.generation_id",
        test=("tests/unit/core/broker/groups/test_failover.py::test_a_lost_generation_is_not_used_again"),
    ),
    Removal(
        row="kip-704",
        place="core/broker/groups/offsets.py::OffsetTable.replay",
        code="self.held_before = log_offset",
        instead="pass",
        test=(
            "tests/unit/core/broker/groups/test_failover.py::"
            "test_positions_that_may_be_too_old_are_held_until_one_is_committed"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery._finish_if_due",
        code="if turn.now_ms < end_ms:",
        instead="if False:",
        test="tests/unit/core/broker/replicas/test_leader_recovery.py::test_it_takes_its_least_duration",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/isr_changes.py::maybe_expand_isr",
        code="or partition.is_recovering",
        instead="",
        test="tests/unit/core/broker/replicas/test_leader_recovery.py::test_a_refusal_is_answered_by_sending_the_request_again",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/hosted.py::HostedPartitions.find",
        code="or partition.is_recovering",
        instead="",
        test="tests/interaction/test_scripts.py::test_script[kip_704_topic_partition_leader]",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="if self.is_recovering:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/replicas/test_leader_recovery.py::test_the_high_watermark_stands_s"
            "till_and_nobody_joins_until_it_is_committed"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery._report",
        code="propose_recovered(turn, step.partition)",
        instead="pass",
        test=(
            "tests/unit/core/broker/replicas/test_leader_recovery.py::test_the_high_watermark_stands_s"
            "till_and_nobody_joins_until_it_is_committed"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery._report",
        code="self.timers.set(step.partition.name, at_ms=turn.now_ms + RETRY_MS)",
        instead="pass",
        test="tests/unit/core/broker/replicas/test_leader_recovery.py::test_a_refusal_is_answered_by_sending_the_request_again",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/partition.py::Partition.commit_isr",
        code=(
            "if result.leader_recovery_state is LeaderRecoveryState.RECOVERED:\n        self.l"
            "eader_recovery_state = LeaderRecoveryState.RECOVERED"
        ),
        instead="self.leader_recovery_state = result.leader_recovery_state",
        test="tests/unit/core/broker/replicas/test_leader_recovery.py::test_a_state_in_an_answer_starts_no_recovery",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/leader_recovery.py::LeaderRecovery.check",
        code="or step.leader_epoch != partition.leader_epoch",
        instead="",
        test=(
            "tests/unit/core/broker/replicas/test_leader_recovery.py::test_another_leader_epoch_begins"
            "_anew_and_forgets_what_the_earlier_one_read"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/partition.py::Partition.become_follower",
        code="self._apply_recovery_state(state)",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[kip_704_topic_partition_leader]",
    ),
    Removal(
        row="kip-704",
        place="core/broker/replicas/fetcher.py::FetcherPool._backoff_ms",
        code="min(limit_ms, _BACKOFF_INITIAL_MS << min(failures, 16))",
        instead="_BACKOFF_INITIAL_MS << min(failures, 16)",
        test=(
            "tests/unit/core/broker/replicas/test_fetcher.py::test_each_failure_doubles_the_wait_up_to"
            "_the_limit_and_a_success_begins_anew"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/controller/partition_change.py::next_partition_change",
        code="recovery_state = LeaderRecoveryState.RECOVERING",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[kip_704_recovering]",
    ),
    Removal(
        row="kip-704",
        place="core/controller/partition_change.py::_target_lists",
        code="state.leader_recovery_state if recovery_state is UNSET else recovery_state",
        instead="LeaderRecoveryState.RECOVERED if recovery_state is UNSET else recovery_state",
        test="tests/interaction/test_scripts.py::test_script[kip_704_recovering]",
    ),
    Removal(
        row="kip-704",
        place="core/controller/alter_partition.py::_isr_error",
        code="and is_recovery_legal",
        instead="",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-704",
        place="core/controller/alter_partition.py::alter_partition",
        code="data.leader_recovery_state if has_recovery_state else LeaderRecoveryState.RECOVERED",
        instead="data.leader_recovery_state",
        test=(
            "tests/unit/core/controller/test_controller.py::test_a_version_without_recovery_s"
            "tate_says_that_the_leader_has_recovered"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/controller/alter_partition.py::alter_partition_result",
        code="leader_recovery_state=after.leader_recovery_state,",
        instead="",
        test=("tests/unit/core/controller/test_controller.py::test_an_answer_has_the_recovery_state_after_the_change"),
    ),
    Removal(
        row="kip-704",
        place="core/controller/partition_change.py::_difference",
        code=("UNSET if wanted.leader_recovery_state == state.leader_recovery_state else wanted.leader_recovery_state"),
        instead="UNSET",
        test="tests/interaction/test_scripts.py::test_script[kip_704_recovering]",
    ),
    Removal(
        row="kip-704",
        place="core/client/consumer.py::Consumer._failed",
        code="self._want_metadata(now_ms)",
        instead="pass",
        test="tests/unit/client/test_consumer.py::test_a_change_of_leader_keeps_the_position",
    ),
    Removal(
        row="kip-704",
        place="core/client/producer.py::Producer._batch_answered",
        code="case Verdict.RETRY_ELSEWHERE:\n            self._retry(queue, batch, now_ms)",
        instead=(
            "case Verdict.RETRY_ELSEWHERE:\n            self._give_up(flight.partition, batch, answer.error.name)"
        ),
        test="tests/unit/client/test_producer.py::test_a_batch_keeps_its_sequence_over_a_change_of_leader",
    ),
    Removal(
        row="kip-704",
        place="core/zookeeper/nodes/partition_state.py::decode_state",
        code="LeaderRecoveryState.RECOVERED",
        instead="LeaderRecoveryState.RECOVERING",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_recovery_state_kip_704]",
    ),
    Removal(
        row="kip-704",
        place="core/zookeeper/controller/leader_election.py::_elect_offline",
        code="if electorate.recovery_mark is RecoveryMark.RECORDED:",
        instead="if False:",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::test_an_unclean_"
            "election_is_stored_and_sent_to_the_leader"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/zookeeper/controller/leader_election.py::_elect_offline",
        code="if electorate.recovery_mark is RecoveryMark.RECORDED:",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_recovery_state]",
    ),
    Removal(
        row="kip-704",
        place="core/broker/zookeeper/control_requests.py::_state",
        code="leader_recovery_state=wanted.leader_recovery_state,",
        instead="",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_recovery_state_kip_704]",
    ),
    Removal(
        row="kip-704",
        place="core/zookeeper/controller/alter_partition.py::_asked",
        code="data.leader_recovery_state if has_recovery_state else LeaderRecoveryState.RECOVERED",
        instead="data.leader_recovery_state",
        test=("tests/unit/core/zookeeper/controller/test_alter_partition.py::test_version_0_says_nothing_of_recovery"),
    ),
    Removal(
        row="kip-704",
        place="core/zookeeper/controller/alter_partition.py::_recovery_error",
        code="return ErrorCode.INVALID_REQUEST if is_again or len(asked.isr) > 1 else None",
        instead="return None",
        test=(
            "tests/unit/core/zookeeper/controller/test_alter_partition.py::"
            "test_a_recovering_leader_is_informed_of_its_state_and_adds_no_member"
        ),
    ),
    Removal(
        row="kip-704",
        place="core/broker/zookeeper/control_requests.py::ControlRequests._accepts_equal_epoch",
        code="return partition is not None and wanted.partition_epoch > partition.partition_epoch",
        instead="return False",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_recovery_state_kip_704]",
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/metadata_stream.py::MetadataStream.has_reached_end",
        code="and self._image.next_offset >= self._end_offset",
        instead="",
        test=(
            "tests/unit/core/broker/kraft/test_metadata_stream.py::test_the_end_is_that_of_the_log_"
            "when_the_stream_was_opened_last"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/stray.py::stray_reason",
        code="if state is None or state.topic_id != log.topic_id:",
        instead="if state is None:",
        test="tests/unit/core/broker/kraft/test_strays.py::test_what_makes_a_stray",
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/stray.py::stray_reason",
        code="None if broker_id in state.replicas else StrayReason.NOT_A_REPLICA",
        instead="StrayReason.NOT_A_REPLICA",
        test="tests/unit/core/broker/kraft/test_strays.py::test_an_assigned_log_is_never_a_stray_and_every_other_is",
    ),
    Removal(
        row="kip-550",
        place="storage/recovery.py::create_log",
        code="write_topic_id(filesystem, path, topic_id)",
        instead="pass",
        test=("tests/unit/storage/test_log_directory.py::test_strays_are_found_again_and_removed_on_request"),
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/stray_cleanup.py::StrayLogs.handle_stray",
        code="if self._rule is StrayCleanup.OFF:",
        instead="if True:",
        test="tests/interaction/test_scripts.py::test_script[kip_550_released_kafka]",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/stray_cleanup.py::StrayLogs.handle_timer",
        code="turn.write(effects.DeleteStrayLog(partition=stray.partition, topic_id=stray.topic_id))",
        instead="pass",
        test="tests/unit/core/broker/kraft/test_strays.py::test_the_kip_deletes_after_the_grace",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/stray_cleanup.py::StrayLogs.resume",
        code="self.timers.set(stray, at_ms=turn.now_ms + self._delay_ms)",
        instead="pass",
        test="tests/unit/core/broker/kraft/test_strays.py::test_what_an_earlier_process_put_aside_gets_its_grace_too",
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/broker.py::Broker._is_known",
        code="and registration.incarnation_id == self._config.incarnation_id",
        instead="",
        test=(
            "tests/unit/core/broker/kraft/test_broker_steps.py::test_logs_are_opened_and_roles_take"
            "n_once_the_metadata_has_this_very_process"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/controller/topics.py::delete_topic",
        code="if topic_id is None:",
        instead="if topic_id is None or any(broker.fenced for broker in view.image.brokers.values()):",
        test="tests/interaction/test_scripts.py::test_script[kip_550_same_name]",
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/assignment.py::Assignment._apply_partition",
        code=" or state.topic_id != partition.log.topic_id):",
        instead="):",
        test="tests/unit/core/broker/kraft/test_topic_recreated.py::test_the_old_log_goes_before_the_new_one_comes",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/delayed_produce.py::ProduceHandler._is_meant_for_another",
        code="return asked.topic_id != self._hosted.topic_id_of(asked.topic_partition)",
        instead="return False",
        test=(
            "tests/unit/core/broker/kraft/test_topic_recreated.py::test_a_leader_that_is_behind_tak"
            "es_no_records_for_the_next_topic"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/assignment.py::Assignment._remove",
        code="turn.write(effects.DeleteLog(partition=partition.name))",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[kip_550_cancelled_reassignment]",
    ),
    Removal(
        row="kip-550",
        place="storage/retention.py::deletable_segments",
        code="upper_bound > high_watermark or",
        instead="",
        test="tests/unit/storage/test_retention.py::test_rules_in_order",
    ),
    Removal(
        row="kip-550",
        place="core/zookeeper/controller/control_batch.py::ControlBatch.add_stop_replica",
        code="for broker_id in broker_ids:",
        instead="for broker_id in ():",
        test=(
            "tests/unit/core/zookeeper/controller/test_control_batch.py::test_a_replica_is_st"
            "opped_in_an_epoch_since_kip_570_and_its_deletion_sticks"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/zookeeper/control_requests.py::ControlRequests.add_logs",
        code="self.waiting[loaded.partition] = msgspec.structs.replace(loaded, topic_id=topic_id)",
        instead="pass",
        test=(
            "tests/unit/core/broker/zookeeper/test_control_requests.py::test_a_log_that_was_found_keeps"
            "_its_id_where_the_role_names_none"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/zookeeper/full_list.py::names_all_replicas",
        code="return True",
        instead="return False",
        test=(
            "tests/unit/core/broker/zookeeper/test_full_list.py::test_the_field_of_kip_550_is_believed_where_the_rule_is_on"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/zookeeper/controller/replica_states.py::ReplicaStateMachine.start",
        code="self._batch.name_all_replicas_to(self._context.registered)",
        instead="pass",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::"
            "test_with_the_kip_every_broker_gets_its_list_from_a_new_controller"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/zookeeper/full_list.py::strays_of",
        code="log.name not in wanted or",
        instead="",
        test=(
            "tests/unit/core/broker/zookeeper/test_control_requests.py::test_a_complete_list_puts_the_l"
            "og_of_a_replica_aside_that_is_none"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/zookeeper/control_fence.py::ControlFence.error_of",
        code="if self._is_for_former_incarnation(request) and self._rules.control_broker_epoch_check:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/zookeeper/test_control_fence.py::test_what_was_meant_for_a_former_incarnation_is_refused"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/zookeeper/control_fence.py::ControlFence.error_of",
        code="if request.controller_epoch < self.controller_epoch:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/zookeeper/test_control_fence.py::test_a_controller_is_heard_until_a_later_one_has_been"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/zookeeper/full_list.py::_is_other",
        code="log.topic_id is not None and topic_id is not None and log.topic_id != topic_id",
        instead="False",
        test=(
            "tests/unit/core/broker/zookeeper/test_full_list.py::test_a_stray_is_not_listed_or_is_of_another_topic_of_that_name"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/zookeeper/controller/topic_deletion.py::TopicDeletion.take_over",
        code="self._mark_ineligible(ineligible)",
        instead="pass",
        test=(
            "tests/unit/core/zookeeper/controller/test_topic_deletion.py::test_a_new_controll"
            "er_waits_for_a_broker_that_is_down_before_it_begins"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/broker/kraft/lifecycle.py::rack_of",
        code=".replace(NODE_MARK, str(broker_id))",
        instead="",
        test="tests/unit/core/broker/kraft/test_lifecycle.py::test_brokers_take_the_racks_of_a_list_in_turn",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/replica_selector.py::select_in_rack",
        code="if not client_rack or not here or leader.rack == client_rack:",
        instead="if True:",
        test="tests/unit/core/broker/replicas/test_replica_selector.py::test_selection",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/replica_selector.py::preferred_read_replica",
        code="if broker_id in partition.committed_isr\n        and",
        instead="if",
        test="tests/unit/core/broker/replicas/test_replica_selector.py::test_no_consumer_is_sent_to_a_replica_outside_the_isr",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/delayed_fetch.py::FetchHandler._redirection",
        code="return None if replica is None else Redirected(partition, replica)",
        instead="return None",
        test="tests/interaction/test_scripts.py::test_script[kip_392_fetch_from_follower]",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/fetch.py::find_readable",
        code="and not (partition.role is PartitionRole.FOLLOWER and reader.may_read_follower)",
        instead="",
        test="tests/interaction/test_scripts.py::test_script[kip_392_fetch_from_follower]",
    ),
    Removal(
        row="kip-550",
        place="core/broker/replicas/fetcher.py::FetcherPool._handle_answer",
        code="if not self._config.switches.truncate_before_hw and answer",
        instead="if answer",
        test=(
            "tests/unit/core/broker/replicas/test_follower.py::test_a_diverging_answer_cuts_and_says_n"
            "othing_about_the_high_watermark"
        ),
    ),
    Removal(
        row="kip-550",
        place="core/client/consumer.py::Consumer._fetched",
        code="reading.read_replica_until_ms = now_ms + self._settings.metadata_max_age_ms",
        instead="reading.read_replica_until_ms = now_ms + 10**9",
        test="tests/unit/client/test_consumer.py::test_a_follower_is_read_from_until_its_lease_is_over",
    ),
    Removal(
        row="kip-550",
        place="core/client/consumer.py::Consumer._fetched",
        code="and reading.read_replica is None",
        instead="",
        test=("tests/unit/client/test_consumer.py::test_out_of_range_on_a_follower_only_sends_it_back_to_the_leader"),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr_changes.py::_propose",
        code="partition.await_isr(state)",
        instead=(
            "from laststand.emulator.core.broker.replicas.isr import Committed as _C; partition.isr_state = _C(isr)"
        ),
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_sent_shrink_moves_nothing_until_it_is_committed"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/topics.py::initial_isr",
        code="return tuple(broker_id for broker_id in replicas if broker_id in active)",
        instead="return replicas",
        test=(
            "tests/unit/core/controller/test_controller.py::test_fenced_brokers_are_chosen_last_and_stay_out_of_the_isr"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/fencing.py::begin_controlled_shutdown",
        code="decisions + leave_isrs(view, broker_id, reason=ChangeReason.CONTROLLED_SHUTDOWN)",
        instead="decisions",
        test="tests/interaction/test_scripts.py::test_script[controlled_shutdown]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/elect_leaders.py::_elect_by_mode",
        code="decisions = _elect(view, partition, mode)",
        instead="decisions = []",
        test="tests/interaction/test_scripts.py::test_script[kip_966_elect_leaders]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr_changes.py::maybe_expand_isr",
        code="_propose(turn, partition, PendingExpand(state.isr, replica_id))",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[isr_shrink_and_expand]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_epoch_error",
        code=("age = data.partition_epoch - state.partition_epoch if view.switches.ap_partition_epoch_check else 0"),
        instead="age = 0",
        test=(
            "tests/unit/core/controller/test_controller.py::test_an_old_partition_epoch_is_re"
            "fused_unless_the_check_is_off"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/controller.py::Controller._hold",
        code="if held.end_offset <= self.committed_end_offset:",
        instead="if True:",
        test="tests/unit/core/controller/test_controller.py::test_nothing_leaves_before_its_records_are_durable",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_is_eligible",
        code="if registration is None or not registration.is_active:",
        instead="if registration is None:",
        test="tests/interaction/test_scripts.py::test_script[kip_841_inactive_replicas_stay_out]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition._assign_followers",
        code="self._followers.get(broker_id) or FollowerState(broker_id)",
        instead="FollowerState(broker_id)",
        test="tests/interaction/test_scripts.py::test_script[kip_966_reassignment_below_min_isr]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/partition_change.py::_completed",
        code="if completed is None:",
        instead="if True:",
        test=(
            "tests/unit/core/controller/test_partition_change.py::test_a_reassignment_complet"
            "es_with_all_its_targets_in_sync_or_with_those_that_it_adds"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.send_queued",
        code="partition_epoch=proposal.partition_epoch",
        instead="partition_epoch=type(proposal.partition_epoch)(0)",
        test="tests/interaction/test_scripts.py::test_script[kip_497_new_leader_elected]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::alter_partition_result",
        code="isr=after.isr,",
        instead="",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::sender_error",
        code="or registration.broker_epoch != request.broker_epoch",
        instead="",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_epoch_error",
        code="if data.leader_epoch > state.leader_epoch or age > 0:",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_epoch_error",
        code="if data.leader_epoch < state.leader_epoch:",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_isr_error",
        code="is_valid = is_subset and state.leader in isr and",
        instead="is_valid =",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_epoch_error",
        code="ErrorCode.INVALID_UPDATE_VERSION if age < 0 else ErrorCode.NONE",
        instead="ErrorCode.NONE",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_find_partition",
        code="ErrorCode.UNKNOWN_TOPIC_OR_PARTITION",
        instead="ErrorCode.UNKNOWN_TOPIC_ID",
        test="tests/unit/core/controller/test_controller.py::test_topics_are_named_by_id_from_version_two_on",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::alter_partition_result",
        code="if error is ErrorCode.NONE and after is not None and after.leader != request.broker_id:",
        instead="if False:",
        test=(
            "tests/unit/core/controller/test_controller.py::test_a_change_that_moved_the_lead"
            "ership_says_so_from_version_two_on"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/partition_change.py::next_partition_change",
        code="if record == records.PartitionChangeRecord(topic_id=state.topic_id, partition=partition):",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/produce.py::append_batch",
        code="if acks == Acks.ALL and partition.is_under_min_isr:",
        instead=(
            "from laststand.emulator.core.broker.replicas.isr import Committed as _C\n    if not isinstance(parti"
            "tion.isr_state, _C) or acks == Acks.ALL and partition.is_under_min_isr:"
        ),
        test="tests/interaction/test_scripts.py::test_script[s38_min_isr_raised_behind_the_leader]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr.py::maximal_isr",
        code="return state.committed if isinstance(state, PendingShrink) else proposed_isr(state)",
        instead="return proposed_isr(state)",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_sent_shrink_moves_nothing_until_it_is_committed"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr.py::maximal_isr",
        code="return state.committed if isinstance(state, PendingShrink) else proposed_isr(state)",
        instead="return committed_isr(state)",
        test="tests/interaction/test_scripts.py::test_script[isr_shrink_and_expand]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="maximal = self.maximal_isr",
        instead="maximal = self.committed_isr",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_the_eager_shrink_is_what_the_switch_brings_back"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.advance_high_watermark",
        code="committed_isr_size=len(self.committed_isr)",
        instead="committed_isr_size=len(maximal)",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_sent_expansion_does_not_count_towards_min_isr"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.submit",
        code="if proposal.partition in self._queued:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/kraft/test_dispatch.py::test_a_change_that_another_one_is_in_the_way_of_is_taken_back"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr.py::can_expand",
        code="or follower.log_end_offset < epoch_start_offset",
        instead="",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_replica_with_data_of_older_epochs_only_cannot_join"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.send_queued",
        code="proposals = list(self._queued.values())",
        instead="proposals = list(self._queued.values())[:1]",
        test=(
            "tests/unit/core/broker/kraft/test_alter_partition_sender.py::test_a_request_names_topi"
            "cs_by_id_if_it_has_the_ids_of_all"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.send_queued",
        code="if self._is_in_flight or not",
        instead="if not",
        test="tests/unit/core/broker/kraft/test_alter_partition_sender.py::test_a_refusal_does_not_wait",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.commit_isr",
        code="self.isr_state = Committed(result.isr)",
        instead="self.isr_state = Committed(self.committed_isr)",
        test="tests/unit/core/broker/kraft/test_alter_partition_sender.py::test_answers_wait_side_by_side",
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.pop_understood",
        code="if answer.metadata_end_offset <= known_end_offset",
        instead="",
        test=(
            "tests/unit/core/broker/kraft/test_alter_partition_sender.py::test_an_accepted_isr_is_t"
            "aken_with_the_metadata_that_it_was_accepted_by"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.handle_failure",
        code="self._retry_at_ms = turn.now_ms + self._config.properties.alter_partition_retry_backoff_ms",
        instead="self._queued.clear()",
        test="tests/interaction/test_scripts.py::test_script[kip_497_answer_lost]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_outdate_copies",
        code="if not view.switches.refusals_are_final:",
        instead="if True:",
        test=(
            "tests/unit/core/controller/test_controller.py::test_a_copy_of_a_refused_proposal_is_not_carried_out_later"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/alter_partition_sender.py::AlterPartitionSender.handle_response",
        code="asked = {TopicPartition(data.topic, data.partition) for data in request.partitions}",
        instead=(
            "asked = {TopicPartition(data.topic, data.partition) for data in request.partitio"
            "ns}\n    [self._queued.pop(each, None) for each in asked - {TopicPartition(each.t"
            "opic, each.partition) for each in response.partitions}]"
        ),
        test=(
            "tests/unit/core/broker/kraft/test_alter_partition_sender.py::test_a_change_that_the_an"
            "swer_does_not_name_is_sent_again_at_once"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr_answer.py::judge_answer",
        code="if result.error in _REVERTS:",
        instead="if result.error is not ErrorCode.NONE:",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_an_answer_that_leaves_the_"
            "outcome_open_keeps_the_change_pending_without_retry"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.become_leader",
        code="self.isr_state = Committed(state.isr)",
        instead=(
            "self.isr_state = self.isr_state if was_leader and not isinstance(self.isr_state,"
            " Committed) else Committed(state.isr)"
        ),
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_an_answer_to_a_state_that_"
            "metadata_replaced_is_ignored"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr_changes.py::handle_answer",
        code="if partition.isr_state is proposal.state:",
        instead="if True:",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_an_answer_to_a_state_that_"
            "metadata_replaced_is_ignored"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/maintenance.py::Maintenance._shrink_isrs",
        code="maybe_shrink_isr(turn, partition)",
        instead="pass",
        test=(
            "tests/unit/core/broker/replicas/test_maintenance.py::test_members_that_lag_are_dropped_at"
            "_every_half_of_the_lag_time"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::alter_partition_result",
        code="leader_recovery_state=after.leader_recovery_state,",
        instead="",
        test=("tests/unit/core/controller/test_controller.py::test_an_answer_has_the_recovery_state_after_the_change"),
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::alter_partition",
        code="data.leader_recovery_state if has_recovery_state else LeaderRecoveryState.RECOVERED",
        instead="data.leader_recovery_state",
        test=(
            "tests/unit/core/controller/test_controller.py::test_a_version_without_recovery_s"
            "tate_says_that_the_leader_has_recovered"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/view.py::ClusterView.active_brokers",
        code="if broker.is_active",
        instead="if not broker.fenced",
        test="tests/unit/core/controller/test_controller.py::test_a_broker_that_shuts_down_is_not_active",
    ),
    Removal(
        row="kip-497",
        place="core/controller/fencing.py::begin_controlled_shutdown",
        code="decisions.append(Decision(record=record))",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[controlled_shutdown]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/fencing.py::unfence_broker",
        code="if not registration.in_controlled_shutdown:",
        instead="if True:",
        test=(
            "tests/unit/core/controller/test_controller.py::test_a_broker_that_shut_down_lead"
            "s_nothing_when_it_is_unfenced"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr.py::is_isr_eligible",
        code="or not registration.is_active",
        instead="",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_fenced_replica_neither_joins_nor_holds_up_commits"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::alter_partition",
        code="error = ErrorCode.INELIGIBLE_REPLICA if is_named else ErrorCode.OPERATION_NOT_ATTEMPTED",
        instead="error = ErrorCode.INELIGIBLE_REPLICA",
        test="tests/interaction/test_scripts.py::test_script[kip_841_inactive_replicas_stay_out]",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::alter_partition",
        code="for member in data.new_isr):",
        instead="for member in data.new_isr if member.broker_id not in state.isr):",
        test="tests/interaction/test_scripts.py::test_script[kip_497_alter_partition_errors]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.revert_isr",
        code="self.isr_state = Committed(self.committed_isr)",
        instead="pass",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_an_answer_that_asserts_nothing_was_done_reverts"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/fencing.py::unfence_broker",
        code="decisions = [Decision(record=record)]",
        instead=(
            "decisions = [Decision(record=record)]\n    for partition, state in view.image.par"
            "titions.items():\n        if broker_id in state.replicas and state.leader is not "
            "None and broker_id not in state.isr:\n            decisions += view.change_partit"
            "ion(partition, PartitionTarget(acceptable=view.active_brokers(), isr=(*state.isr"
            ", broker_id)), reason=ChangeReason.BROKER_UNFENCED, broker_id=broker_id)"
        ),
        test="tests/unit/core/controller/test_controller.py::test_a_broker_that_is_unfenced_is_put_into_no_isr",
    ),
    Removal(
        row="kip-497",
        place="core/broker/kraft/assignment.py::Assignment._stop_fetching_when_leaving",
        code="if not registration.in_controlled_shutdown:",
        instead="if True:",
        test=(
            "tests/unit/core/broker/kraft/test_assignment.py::test_a_broker_that_may_leave_fetches_"
            "only_for_the_isrs_that_it_is_in"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition._joiners",
        code=(
            "and is_isr_eligible(broker_id, fetch_broker_epoch=follower.broker_epoch, registr"
            "ations=self._registrations)"
        ),
        instead="",
        test="tests/unit/core/broker/kraft/test_joiners.py::test_a_joiner_that_is_fenced_is_not_waited_for",
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_find_partition",
        code="if request.api_version >= _TOPIC_IDS_SINCE:",
        instead="if False:",
        test="tests/unit/core/controller/test_controller.py::test_topics_are_named_by_id_from_version_two_on",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/fetcher.py::FetcherPool._send_to",
        code="replica_epoch=broker_epoch if names_broker_epochs(self._config.switches) else None,",
        instead="replica_epoch=None,",
        test="tests/interaction/test_scripts.py::test_script[kip_497_new_leader_elected]",
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.note_fetch",
        code=("if broker_epoch is not None and registration is not None and broker_epoch < registration.broker_epoch:"),
        instead="if False:",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_fetch_of_an_earlier_inca"
            "rnation_is_refused_and_leaves_no_trace"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/follower_state.py::FollowerState.update",
        code="self.broker_epoch = broker_epoch",
        instead="pass",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_member_is_named_with_the"
            "_incarnation_whose_fetch_came"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/isr.py::is_isr_eligible",
        code="return fetch_broker_epoch is None or fetch_broker_epoch == registration.broker_epoch",
        instead="return True",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_replica_that_restarted_s"
            "ince_its_fetch_does_not_hold_up_commits"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/replicas/partition.py::Partition.isr_member",
        code="None if follower is None else follower.broker_epoch",
        instead="self._registrations[broker_id].broker_epoch",
        test=(
            "tests/unit/core/broker/replicas/test_partition_leader.py::test_a_member_is_named_with_the"
            "_incarnation_whose_fetch_came"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/controller/alter_partition.py::_is_eligible",
        code="return member.broker_epoch is None or member.broker_epoch == registration.broker_epoch",
        instead="return True",
        test=(
            "tests/unit/core/controller/test_controller.py::test_a_member_of_an_earlier_incar"
            "nation_is_refused_unless_the_check_is_off"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/store.py::ControllerStore._encode",
        code="controller_epoch=self._context.controller_epoch",
        instead="controller_epoch=type(self._context.controller_epoch)(0)",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_terms.py::test_another_take"
            "s_over_with_the_next_epoch_when_the_session_ends"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/partition_states.py::PartitionStateMachine._initialise",
        code="if self._context.is_online(replica, name)",
        instead="",
        test=(
            "tests/unit/core/zookeeper/controller/test_broker_changes.py::test_a_partition_wi"
            "thout_a_state_node_is_left_alone"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/controlled_shutdown.py::ControlledShutdown.shut_down",
        code=("yield from self._replicas.enter((Replica(name, broker_id) for name in followed), ReplicaPhase.OFFLINE)"),
        instead="yield from ()",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_controlled_shutdown]",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/leader_election.py::preferred_leader",
        code="return next((head for head in replicas[:1] if head in online and head in isr), None)",
        instead="return None",
        test=(
            "tests/unit/core/zookeeper/controller/test_leader_requests.py::test_of_the_partit"
            "ions_that_need_an_election_only_those_named_are_elected"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/isr_changes.py::ZooKeeperIsrChanges.submit",
        code="if self._leader_writes:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/zookeeper/test_broker.py::test_while_a_leader_writes_an_i"
            "sr_what_is_asked_of_its_partition_waits"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/isr.py::write_isr",
        code="version=expected",
        instead="version=None",
        test=(
            "tests/simulation/test_zookeeper_writers.py::test_an_election_comes_before_the_wr"
            "ite_of_the_leader[kafka-2.6-zk]"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/control_requests.py::_state",
        code="partition_epoch=wanted.partition_epoch",
        instead="partition_epoch=PartitionEpoch(0)",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_control_requests]",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/isr_notifications.py::Notifications.handle_isr_changes",
        code="yield from self.refresh(tuple(sorted(named)))",
        instead="yield from ()",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::test_a_leaders_o"
            "wn_write_is_believed_once_it_is_notified"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/isr_changes.py::ZooKeeperIsrChanges.submit",
        code="if self._leader_writes:",
        instead="if True:",
        test=(
            "tests/unit/core/broker/zookeeper/test_isr_changes.py::test_a_change_that_is_under_way_is_not_asked_twice"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/alter_partition.py::AlterPartition._publish",
        code="self._context.leadership |= read",
        instead="pass",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_alter_partition]",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/alter_partition.py::AlterPartition._judge_3_3",
        code="if not set(asked.isr) <= self._context.live_brokers:",
        instead="if False:",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_controlled_shutdown]",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/reassignment.py::Reassignments.complete_if_in_sync",
        code="if (yield from self._is_complete(name, assignment)):",
        instead="if False:",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::test_a_reassignm"
            "ent_ends_when_its_targets_are_in_sync"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/alter_partition.py::AlterPartition._is_honest",
        code="return asked.leader == current.leader and",
        instead="return",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::test_with_the_ki"
            "p_only_the_leader_may_ask_and_only_for_replicas"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/alter_partition.py::AlterPartition.handle",
        code="if sender is None or sender.broker_epoch != request.broker_epoch:",
        instead="if sender is None:",
        test="tests/conformance/test_conformance.py::test_every_vector_of_a_built_kind_passes",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/alter_partition.py::AlterPartition._handle",
        code=(
            "answer(_answer(judged.results | _accepted(request, judged.wanted)))\n            yie"
            "ld from self._attempt(request, judged)"
        ),
        instead="answer((yield from self._attempt(request, judged)))",
        test=(
            "tests/unit/core/zookeeper/controller/test_alter_partition.py::test_a_change_is_a"
            "nswered_after_the_write_or_before_it_as_the_rule_says"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/control_requests.py::ControlRequests._accepts_equal_epoch",
        code="return partition is not None and wanted.partition_epoch > partition.partition_epoch",
        instead="return False",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_recovery_state_kip_704]",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/alter_partition.py::AlterPartition._publish",
        code="(*updates.written, *(updates.outdated if sends_roles else ()))",
        instead="(*updates.written,)",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::test_with_the_ki"
            "p_a_change_that_could_not_be_written_is_followed_by_roles_with_the_new_version"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/isr_changes.py::ZooKeeperIsrChanges.ask_successor",
        code="if partition.isr_state is acknowledged.proposal.state:",
        instead="if False:",
        test=(
            "tests/unit/core/broker/zookeeper/test_isr_changes.py::test_a_change_that_was_ack"
            "nowledged_and_never_made_is_asked_of_the_next_controller"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/broker/zookeeper/alter_partition.py::ZooKeeperAlterPartition.pop_due",
        code="proposals = tuple(self._queued.values())",
        instead="proposals = tuple(self._queued.values())[:1]",
        test=(
            "tests/unit/core/broker/zookeeper/test_alter_partition.py::test_everything_that_i"
            "s_queued_goes_out_together_and_one_request_at_a_time"
        ),
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/inter_broker_protocol.py::InterBrokerProtocol.isr_change",
        code="_ALTER_ISR",
        instead="_TOPIC_IDS",
        test="tests/interaction/test_scripts.py::test_script[zookeeper_protocol_of_each_broker]",
    ),
    Removal(
        row="kip-497",
        place="core/zookeeper/controller/term.py::_watches_isr_changes",
        code="is_always or config.ibp.isr_change is IsrChange.ZOOKEEPER",
        instead="True",
        test=(
            "tests/unit/core/zookeeper/controller/test_controller_events.py::"
            "test_with_the_kip_a_controller_that_alters_isrs_gets_no_notifications"
        ),
    ),
)
"""By document, in the order of its rows."""

BY_HAND: Final = frozenset(
    {
        ("kip-966", "tests/unit/core/test_image.py::test_a_record_that_names_no_eligible_replicas_has_none"),
        ("kip-966", "tests/unit/core/test_properties.py::test_the_defaults_of_kip_966_hold_where_nothing_is_given"),
    }
)
"""Documents and tests."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], KIP_REMOVALS))
