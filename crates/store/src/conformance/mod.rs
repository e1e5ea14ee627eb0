//! One suite for all store backends: every promise of the traits, once.
//!
//! A backend's test file names a function that makes a fresh store and gets one test per case:
//!
//! ```text
//! async fn fresh() -> bench_store::conformance::Fresh { … }
//! bench_store::store_conformance!(crate::fresh);
//! ```

mod calls;
mod checkpoints;
mod contention;
mod counted;
mod fixtures;
mod forks;
mod incarnations;
mod money;
mod outages;
mod pace;
mod plan;
mod probes;
mod results;
mod retry;
mod runs;
mod segments;
mod tasks;
mod traces;

use std::{any::Any, sync::Arc};

pub use self::{
    calls::*, checkpoints::*, contention::*, counted::Counted, fixtures::*, forks::*, incarnations::*, money::*,
    outages::*, pace::*, plan::*, probes::*, results::*, retry::*, runs::*, segments::*, tasks::*, traces::*,
};
use crate::Store;

/// A store without any run in it.
pub struct Fresh {
    /// The store, open and migrated.
    pub store: Arc<dyn Store>,
    /// Its URL, to open it a second time as another process would.
    pub url: String,
    /// Whatever must live as long as the store (a folder, a server).
    pub keep: Box<dyn Any + Send + Sync>,
}

/// Makes one `#[tokio::test]` per case of the suite; `$fresh` is the path of an `async fn() -> Fresh`.
#[macro_export]
macro_rules! store_conformance {
    ($fresh:path) => {
        $crate::store_conformance! { @cases $fresh;
            runs_are_created_once_and_listed_newest_first,
            run_states_keep_active_time_and_versions,
            a_lost_interval_ends_at_the_last_commit,
            p23_limits_change_alone_and_raise_the_state_version,
            p36_the_first_summary_of_a_version_stays,
            run_events_keep_their_order,
            runs_are_deleted_whole_or_not_at_all,
            p8_u0000_survives_everywhere,
            p16_items_are_shared_and_checked,
            p16_unreferenced_items_are_dropped,
            p28_planning_twice_makes_the_same_rows,
            p28_a_bank_is_proven_ready_before_the_next_is_begun,
            contradictory_banks_are_refused,
            p5_handles_and_generations,
            p33_a_bank_that_was_filled_before_keeps_its_name_until_it_begins_anew,
            p1_claims_need_a_running_run_and_a_due_task,
            p1_a_claim_whose_answer_was_lost_is_found_again,
            p2_published_is_only_a_note,
            p3_events_of_an_old_epoch_change_nothing,
            p11_parking_counts_nothing,
            p4_the_tasks_of_a_dead_session_are_ready_again,
            p12_what_came_back_is_published_again,
            p14_leadership_is_a_row,
            open_tasks_are_counted_by_role,
            p7_a_question_goes_from_retain_to_conclusion,
            p7_a_commit_concludes_what_it_stores_whole,
            p7_votes_are_counted_down,
            p7_the_calls_of_a_vote_are_steps_of_their_own,
            p3_the_first_result_stays,
            p3_late_results_count_while_none_is_stored,
            p3_ended_tasks_ignore_further_records,
            p8_contradictory_records_are_refused,
            p8_calls_of_lost_races_are_paid,
            p6_a_segment_opens_when_all_recalls_of_the_last_are_stored,
            p6_a_given_up_recall_opens_the_next_segment_too,
            p6_several_recalls_hold_the_segment_until_what_they_found_together_is_stored,
            p22_a_failed_bank_fails_its_questions,
            p46_questions_of_a_round_are_asked_when_its_look_is_made,
            p46_what_a_stopped_run_leaves_out_is_asked_when_it_goes_on,
            p5_records_of_an_old_generation_are_refused,
            p5_recalls_of_an_old_generation_are_refused,
            p7_sweeping_changes_nothing_in_a_sound_run,
            p7_the_sweep_finds_what_an_unanswered_commit_left,
            retry_repeats_failed_questions_from_their_stored_recall,
            retry_pauses_a_run_that_has_ended_with_what_it_opens,
            retry_starts_failed_banks_in_a_new_generation,
            retry_repeats_only_the_failed_votes,
            retry_fills_a_bank_anew_that_was_lost,
            retry_reaches_closed_segments_by_a_new_generation,
            facts_and_steps_are_read_in_pages,
            texts_come_back_with_their_questions,
            imported_results_are_results,
            restored_results_are_not_asked_again,
            what_failed_before_it_was_restored_is_repeated,
            forks_begin_where_another_run_ended,
            forks_take_banks_over_whole,
            p20_steps_tell_when_they_were_stored,
            p20_the_slowest_questions_come_first,
            p20_tries_that_stored_nothing_are_noted_once,
            p20_parts_of_a_runs_trace_go_with_one_question,
            p20_the_spread_of_times_is_added_up,
            p20_traces_that_were_decided_and_not_sent_are_found,
            p34_metered_calls_are_booked_apart_and_told_by_bank_stage_and_service,
            p9_calls_are_found_by_lineage_the_oldest_first,
            p9_only_accepted_calls_are_served_again,
            p9_shared_calls_are_those_of_all_runs_the_newest_first,
            p10_every_cap_is_held,
            p10_absurd_amounts_damage_no_sum,
            p10_a_settlement_replaces_its_reservation,
            p10_what_a_dead_session_reserved_is_uncertain_until_released,
            p10_what_is_released_of_a_run_that_has_ended_makes_its_result_another,
            p10_repeats_and_given_up_attempts,
            p10_usage_is_capped_apart_from_dollars,
            p10_what_dropped_calls_left_open_is_uncertain,
            p10_nothing_is_reserved_for_a_run_that_does_not_run,
            p10_the_cap_holds_under_any_interleaving,
            p41_the_runs_of_a_group_share_one_cap,
            p41_the_runs_of_a_group_share_one_cap_on_usage,
            p41_the_cap_of_a_group_holds_under_any_interleaving,
            p41_a_run_that_is_deleted_lifts_no_cap,
            p41_a_control_waits_for_the_measured_run,
            p41_controls_are_created_with_their_run_or_not_at_all,
            p41_repeats_are_created_together_as_equals,
            p41_the_ledger_names_what_was_paid_for,
            p23_a_refused_account_pauses_the_runs_that_use_it,
            p39_one_process_opens_an_outage_and_one_probes_it,
            p39_a_session_that_has_ended_probes_no_more,
            p39_sessions_tell_what_they_know_of_routes,
            p24_processes_share_one_row_of_slots,
            p40_a_resumed_run_waits_for_no_hold,
            p1_each_task_is_claimed_once,
            p25_claims_beyond_the_limit_are_refused,
            p25_a_question_has_one_place_while_its_votes_wait,
            p39_votes_that_wait_for_their_judge_take_no_place,
            p25_a_systems_own_limit_bounds_its_banks_too,
            p43_a_probe_is_opened_once_and_goes_on_from_its_parts,
            p43_a_probe_that_fails_fails_alone,
            p43_a_retry_is_probed_anew,
            p14_two_processes_share_a_store,
            p44_a_session_is_told_what_the_store_knows_of_it,
            p44_an_incarnation_changes_once_for_all_who_notice,
            p44_banks_never_get_a_name_that_was_forgotten,
            p44_leases_go_back_to_who_works_on_them,
            p44_forgotten_money_is_booked_once,
            p44_a_batch_is_committed_again_over_a_later_claim,
            dropped_calls_leave_no_transaction_open,
        }
    };
    (@cases $fresh:path; $($case:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fresh = $fresh().await;
                $crate::conformance::$case(&fresh).await;
                fresh.store.close().await;
            }
        )+
    };
}
