//! The list of cases; a case that is not in it is dead code, which the compiler tells.

/// Hands the cases, by area, to [`crate::expand_cases!`].
#[doc(hidden)]
#[macro_export]
macro_rules! each_case {
    ($mode:ident($($factory:expr)?)) => {
        $crate::expand_cases! {
            $mode($($factory)?)
            stores {
                a_new_store_reads_back_as_it_was_answered,
                slugs_of_one_name_are_numbered,
                a_number_that_a_name_has_taken_is_skipped,
                a_long_slug_is_cut_for_its_number,
                a_name_without_letters_or_digits_gives_the_id_as_slug,
                a_slug_survives_renames_and_archiving_and_is_free_after_deletion,
                slugs_are_unique_within_a_workspace_only,
                an_update_changes_what_it_names_and_moves_updated_at,
                an_update_that_changes_nothing_keeps_updated_at,
                metadata_out_of_bounds_is_refused_and_changes_nothing,
                memory_writes_move_changed_at_and_counters_but_not_updated_at,
                archiving_stamps_once_and_for_good,
                an_archived_store_is_read_but_not_written,
                an_archived_store_takes_redactions_deletions_and_its_own,
                a_deleted_store_is_gone_from_every_read_and_write_at_once,
                an_unknown_store_is_nowhere,
                stores_are_listed_newest_first,
                the_last_page_of_stores_says_so,
                a_walk_of_stores_during_writes_shows_the_untouched_once,
                archived_stores_are_listed_when_asked_for,
                filters_of_stores_by_status_origin_and_agent_combine,
                bounds_of_creation_times_are_inclusive,
                the_cap_on_stores_counts_archived_ones_of_the_workspace,
                stores_are_counted_over_all_workspaces,
            }
            records {
                a_record_reads_back_as_it_was_written,
                bodies_of_any_bytes_come_back,
                of_many_writers_of_one_revision_one_wins,
                of_many_makers_of_one_record_one_wins,
                a_key_is_one_records_in_all_workspaces,
                a_conflict_anywhere_leaves_nothing,
                a_write_sees_those_before_it,
                commits_that_cross_each_other_all_end,
                a_deleted_record_is_gone_and_a_stale_deletion_is_a_conflict,
                tags_are_replaced_with_each_write,
                lists_go_both_ways_and_narrow_by_tag_and_time,
                a_walk_during_writes_shows_the_untouched_once,
                the_time_of_creation_never_changes,
                what_is_due_comes_from_all_workspaces_the_longest_due_first,
                many_are_answered_in_the_order_asked_for,
                a_foreign_record_is_as_good_as_unknown,
                what_is_committed_is_announced_and_a_conflict_is_not,
                a_commit_whose_caller_went_away_is_announced,
            }
            search {
                a_search_sees_every_write_that_was_answered,
                a_redaction_leaves_nothing_to_be_found,
                an_index_that_was_dropped_answers_as_before,
                a_budget_too_small_for_an_index_changes_no_answer,
                two_servers_see_each_others_writes,
                searches_beside_writers_see_what_was_answered_before,
                a_foreign_store_is_not_searched,
                a_meaning_is_found_once_its_vector_is_there,
                a_model_that_fails_leaves_the_words,
            }
            logs {
                a_log_reads_back_as_it_was_written,
                entries_go_on_where_the_log_ends_or_not_at_all,
                a_log_is_gapless_whoever_appends,
                entries_go_both_ways_and_narrow_by_kind_and_time,
                a_walk_shows_each_entry_once,
                a_foreign_log_is_as_good_as_unknown,
                a_dropped_log_is_gone_at_once_and_from_the_disk_with_the_sweep,
                appends_are_announced_and_so_is_the_end,
            }
            work {
                events_of_several_servers_are_all_there_in_one_order,
                first_sessions_at_once_make_one_learned_store,
                an_item_goes_to_one_of_many_workers,
                a_lease_that_passes_puts_the_item_back,
                sessions_are_found_by_what_they_carry,
                a_follower_hears_of_events_and_of_the_end,
            }
            schedules {
                sw_07_each_occasion_is_run_once_by_whichever_server,
                an_occasion_that_passed_while_no_server_ran_is_made_up_for_or_missed,
                a_paused_automation_does_not_run_and_forgets_what_passed,
                a_key_counts_once_however_many_servers_it_is_sent_to,
                stores_that_are_gone_are_left_out_and_named,
            }
            memories {
                a_new_memory_reads_back_by_id_and_by_path,
                a_read_brings_as_much_as_was_asked_for,
                bytes_come_back_as_they_were_sent,
                a_change_answers_with_content_where_it_is_asked_for,
                what_changed_decides_the_operation_and_the_id_stays,
                an_update_that_changes_nothing_writes_nothing,
                a_stale_hash_refuses_and_changes_nothing,
                a_deleted_memory_leaves_every_read_and_frees_its_path,
                what_is_not_there_is_missing,
                equal_contents_do_not_hang_together,
                a_known_body_is_asked_for_by_the_current_head_and_returned,
                a_body_of_an_older_head_is_never_returned,
                the_cap_on_memories_is_exact_and_a_deletion_makes_room,
                a_cap_of_the_workspace_counts_instead_of_the_servers,
                caps_on_bytes_and_versions_hold,
            }
            paths {
                a_path_is_occupied_at_above_and_below,
                of_several_in_the_way_the_smallest_path_is_named,
                neighbours_are_not_in_the_way,
                wildcards_of_a_database_mean_nothing_in_a_path,
                the_deepest_and_the_longest_path_work,
                a_rename_onto_a_taken_path_changes_nothing,
                a_rename_below_or_above_its_own_path_moves_away_first,
                a_rename_above_its_own_path_minds_its_siblings,
                two_memories_swap_paths_by_way_of_a_third,
                paths_of_other_stores_are_not_in_the_way,
            }
            lists {
                order_is_by_bytes_whatever_the_locale,
                a_directory_sorts_at_its_own_path_and_appears_once,
                a_directory_counts_what_lies_beneath_it_where_summaries_are_asked_for,
                a_prefix_is_whole_segments_taken_literally,
                an_empty_store_and_an_exact_last_page,
                a_page_that_ends_with_a_directory_knows_whether_more_follows,
                each_detail_brings_as_much_as_was_asked_for,
                lists_show_heads_as_they_are_now,
                a_list_goes_on_where_its_last_memory_was_deleted,
                a_list_goes_on_after_a_directory_that_is_gone_or_grew,
                a_walk_during_writes_shows_each_untouched_entry_once,
                every_full_entry_is_whole_while_writers_write,
                an_archived_store_is_listed_as_before,
            }
            properties {
                every_walk_shows_what_lies_below_its_prefix,
            }
            versions {
                each_change_writes_one_version_that_says_what_who_and_when,
                a_version_reads_by_id_as_it_is_listed,
                unknown_versions_and_those_of_other_stores_are_missing,
                versions_are_listed_newest_first_in_pages,
                filters_by_memory_operation_author_and_time_combine,
                every_kind_of_author_is_recorded_and_found,
                history_outlives_its_memory,
                versions_written_in_one_burst_keep_their_order,
                a_walk_of_versions_during_writes_shows_the_old_ones_once,
                a_refusal_writes_no_version,
            }
            redaction {
                text_hash_and_size_go_who_and_when_stay,
                a_redacted_version_is_found_by_what_it_keeps,
                the_head_of_a_live_memory_is_refused,
                all_versions_of_a_deleted_memory_can_be_redacted,
                a_second_redaction_keeps_the_first_stamps,
                copies_of_a_redacted_text_stay_until_they_are_redacted,
                the_same_text_written_again_is_unaffected,
                versions_of_other_stores_are_not_redacted,
                redacted_words_are_in_no_file_once_it_is_answered,
                redacted_paths_of_many_memories_are_in_no_file,
                words_redacted_after_sweeps_are_in_no_file,
                words_of_a_deleted_store_are_in_no_file_after_a_sweep,
            }
            restoring {
                over_a_live_memory_the_text_comes_back_and_the_path_stays,
                a_restore_records_itself_also_when_the_text_is_the_same,
                a_deleted_memory_comes_back_under_its_id_at_the_versions_path,
                a_memory_goes_and_comes_again_and_again,
                a_taken_path_refuses_and_stays_as_it_is,
                a_path_taken_by_the_memory_itself_is_no_obstacle,
                a_full_store_takes_no_deleted_memory_back,
                what_holds_no_text_is_not_restored,
                large_texts_come_back_whole,
            }
            expiry {
                old_versions_go_and_the_newest_ten_of_the_living_stay,
                a_second_sweep_finds_nothing,
                the_sequence_goes_on_after_a_sweep,
                retention_ends_to_the_microsecond,
                the_head_stays_whatever_its_age_and_the_setting,
                a_head_that_repeats_an_expired_text_keeps_it,
                what_was_deleted_lately_can_still_come_back,
                a_redacted_version_expires_like_others,
                archived_stores_and_every_workspace_are_swept,
                many_versions_and_deleted_stores_go_in_one_sweep,
                a_purge_removes_deleted_stores_and_leaves_old_versions,
                purges_and_sweeps_at_once_count_each_store_once,
                a_sweep_beside_updates_and_restores_loses_no_head,
                two_sweeps_at_once_count_each_version_once,
            }
            feed {
                changes_are_told_oldest_first_and_once_in_pages_of_any_size,
                redaction_and_archiving_are_told_without_a_version,
                a_move_tells_where_the_memory_was,
                a_redaction_takes_paths_and_hashes_out_of_what_was_told,
                a_deletion_is_told_to_who_followed_and_its_mark_outlives_the_store,
                retention_raises_the_floor_to_what_it_removed,
                each_answer_says_the_sequence_that_it_reflects,
                a_snapshot_is_the_tree_of_one_moment,
                many_texts_come_in_order_and_unknown_ones_are_none,
                what_is_committed_wakes_who_waits,
                a_reader_beside_writers_misses_and_repeats_nothing,
            }
            keys {
                a_key_is_found_by_the_hash_of_its_secret_and_no_other,
                every_grant_contract_and_expiry_reads_back,
                keys_are_listed_oldest_first_expired_ones_too,
                a_revoked_key_is_off_the_list_and_known_as_revoked,
                unknown_and_foreign_keys_are_not_revoked,
                keys_of_other_workspaces_are_not_listed,
                of_two_revocations_at_once_one_revokes,
            }
            installation {
                a_fresh_back_end_has_no_installation_and_serves,
                an_installation_has_its_workspace_and_key,
                a_second_install_answers_with_the_first_and_writes_nothing,
                of_many_installs_at_once_all_answer_alike,
                workspaces_are_listed_oldest_first_with_their_keys,
                a_workspace_changes_in_what_a_patch_names,
            }
            isolation {
                a_foreign_store_is_as_good_as_unknown,
                a_workspace_lists_only_its_own_stores,
                stores_of_one_workspace_keep_apart,
            }
            concurrency {
                parallel_creates_all_arrive,
                of_fifty_writers_with_one_precondition_one_wins,
                writers_of_the_same_text_share_one_version,
                a_counter_kept_by_preconditions_loses_nothing,
                the_cap_on_memories_is_exact_under_parallel_creates,
                the_cap_on_stores_is_exact_under_parallel_creates,
                a_file_and_a_directory_race_for_one_name,
                renames_onto_one_path_have_one_winner,
                a_refusal_touches_only_itself,
                of_parallel_deletions_one_deletes,
                of_parallel_restores_of_a_deleted_memory_one_recreates,
                parallel_redactions_keep_one_stamp,
                a_head_is_not_redacted_between_two_writes,
                a_deleted_store_ends_the_writes_that_race_with_it,
                of_parallel_deletions_of_a_store_one_deletes,
                an_archived_store_takes_no_write_that_comes_later,
                one_order_by_time_id_and_sequence_while_the_clock_jumps,
                an_answered_write_is_seen_by_every_read_after_it,
                a_read_never_mixes_two_versions,
                a_caller_that_goes_away_leaves_it_wholly_there_or_absent,
                workspaces_write_side_by_side,
            }
            archives {
                a_history_is_told_whole_in_pages_of_any_size,
                a_store_that_was_put_back_is_the_one_that_was,
                nobody_sees_a_store_before_its_end,
                what_is_given_up_is_purged,
                what_is_there_already_is_refused,
                a_slug_that_is_taken_gives_way,
                a_gap_of_any_size_in_a_history_costs_nothing,
                what_is_left_of_a_deleted_store_is_told_and_goes,
            }
            changesets {
                changes_are_carried_out_in_order,
                a_refusal_leaves_nothing_of_it,
                changes_that_contradict_each_other_are_refused,
                the_cap_counts_each_change,
                a_changeset_may_be_large,
                changesets_and_single_changes_at_once_leave_whole_ones,
                archived_and_foreign_stores_take_none,
            }
            spending {
                calls_are_counted_to_the_workspace_and_the_agent_by_day_and_purpose,
                a_budget_that_has_no_room_stops_a_call_before_it_is_made,
                of_parallel_calls_only_as_many_are_made_as_the_budget_has_room_for,
                a_call_that_nobody_waits_for_counts_what_was_said,
                a_call_that_fails_gives_its_reservation_back,
            }
            console {
                a_console_session_opens_what_its_key_opens_on_every_server,
                what_is_no_working_key_signs_nobody_in,
                revoking_a_key_signs_out_everywhere,
                signing_out_ends_one_console_session_on_every_server,
                a_console_session_ends_with_its_time_and_with_that_of_its_key,
                what_is_written_at_the_console_is_the_persons,
            }
            machine {
                one_writer_gets_what_the_oracle_says,
                whatever_many_writers_do_history_gives_the_present,
            }
        }
    };
}
