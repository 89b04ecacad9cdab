//! What `/metrics` shows once everything was recorded: names, units, attributes, nothing twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use holdfast_locktable::{
    command::SessionEndReason,
    event::{Removal, WaitEnd},
    ids::Revision,
};
use holdfast_partitioner::GroupId;

use super::{
    Build,
    exporter::{Identity, Metrics},
    figures::{Figures, GroupFigures, LeaderFigures, PrefixFigures, ReplicaRole, SnapshotFigures},
    lock::WaitOutcome,
    raft::{ElectionResult, LeaderChange, ProposalFailure},
    service::{HttpEnd, Redirect, Refusal},
    snapshot::{SnapshotKind, SnapshotStage},
};
use crate::{log::stats::LogSpace, snapshot::store::StoreCause};

const G: GroupId = GroupId(1);
const TOOK: Duration = Duration::from_millis(3);

/// Every metric by its Prometheus name, with its type: what dashboards and rules may refer to.
const NAMES: &str = "\
holdfast_admission_rejections_total counter
holdfast_audit_events_total counter
holdfast_build_info gauge
holdfast_group_replica gauge
holdfast_lock_contended gauge
holdfast_lock_handoff_duration_seconds histogram
holdfast_lock_held gauge
holdfast_lock_hold_duration_seconds histogram
holdfast_lock_hold_oldest_seconds gauge
holdfast_lock_queue_longest gauge
holdfast_lock_wait_duration_seconds histogram
holdfast_lock_wait_oldest_seconds gauge
holdfast_lock_waiting gauge
holdfast_log_file_free_bytes gauge
holdfast_log_file_size_bytes gauge
holdfast_log_wal_size_bytes gauge
holdfast_raft_apply_duration_seconds histogram
holdfast_raft_apply_lag gauge
holdfast_raft_confirm_duration_seconds histogram
holdfast_raft_elections_total counter
holdfast_raft_has_leader gauge
holdfast_raft_is_leader gauge
holdfast_raft_leader_changes_total counter
holdfast_raft_leaderless_duration_seconds histogram
holdfast_raft_log_append_duration_seconds histogram
holdfast_raft_log_fsync_duration_seconds histogram
holdfast_raft_proposal_duration_seconds histogram
holdfast_raft_proposal_failures_total counter
holdfast_raft_proposal_pending gauge
holdfast_raft_quorum_ack_age_seconds gauge
holdfast_raft_replication_lag gauge
holdfast_raft_term gauge
holdfast_routing_redirects_total counter
holdfast_session_active gauge
holdfast_session_closed_total counter
holdfast_session_expiry_delay_seconds histogram
holdfast_session_keepalive_duration_seconds histogram
holdfast_session_opened_total counter
holdfast_snapshot_duration_seconds histogram
holdfast_snapshot_failures_total counter
holdfast_snapshot_last_success_timestamp_seconds gauge
holdfast_snapshot_size_bytes gauge
holdfast_snapshot_upload_bytes_total counter
holdfast_snapshot_uploads_total counter
http_server_request_duration_seconds histogram
process_cpu_time_seconds_total counter
process_file_descriptor_limit gauge
process_file_descriptor_open gauge
process_memory_usage_bytes gauge
target_info gauge";

pub(crate) fn metrics() -> Metrics {
    let build = Build { version: "0.1.0".into(), revision: "abc123".into() };
    Metrics::start(&Identity { cluster: "test".into(), member: 7, build }).unwrap()
}

fn leading() -> Figures {
    let prefix = PrefixFigures {
        prefix: "jobs/".into(),
        held: 4,
        waiting: 9,
        oldest_wait: Some(Duration::from_millis(2_500)),
        oldest_hold: Some(Duration::from_secs(60)),
    };
    let leader = LeaderFigures {
        sessions: 5,
        contended: 2,
        longest_queue: 8,
        quorum_ack_age: Duration::from_millis(40),
        prefixes: vec![prefix],
        replication_lag: vec![(2, 0), (3, 17)],
    };
    Figures {
        groups: vec![GroupFigures {
            group: G,
            role: ReplicaRole::Leader,
            has_leader: true,
            term: 3,
            apply_lag: 1,
            proposals_pending: 6,
            snapshot: Some(SnapshotFigures { size_bytes: 4_096, taken_at_ms: 1_700_000_000_500 }),
            leader: Some(leader),
        }],
        log: Some(LogSpace { file_bytes: 40_960, free_bytes: 8_192, wal_bytes: 4_096 }),
    }
}

fn record_everything(metrics: &Metrics) {
    let all = &metrics.instruments;
    all.lock.wait_ended(G, "jobs/", WaitOutcome::Acquired, TOOK);
    all.lock.hold_ended(G, "jobs/", Removal::SessionEnded(SessionEndReason::Expired), TOOK);
    all.lock.handed_over(G, TOOK);
    all.session.opened(G);
    all.session.ended(G, SessionEndReason::Closed);
    all.session.keepalive_answered(G, true, TOOK);
    all.session.expired_late(G, TOOK);
    all.raft.election_ended(G, ElectionResult::Won);
    all.raft.leader_changed(G, LeaderChange::Election);
    all.raft.leader_found(G, TOOK);
    all.raft.proposal_ended(G, Ok(()), TOOK);
    all.raft.proposal_ended(G, Err(ProposalFailure::Timeout), TOOK);
    all.raft.log_synced(Duration::from_micros(70));
    all.raft.log_appended(TOOK);
    all.raft.applied(G, TOOK);
    all.raft.confirmed(G, true, TOOK);
    all.snapshot.step_ended(SnapshotKind::Upload, true, TOOK);
    all.snapshot.failed(SnapshotStage::Verify);
    all.snapshot.uploaded(1_024);
    all.snapshot.upload_failed(StoreCause::Space);
    all.service.http_ended("POST", Some("/v1/locks/acquire".into()), HttpEnd::Status(200), TOOK);
    all.service.http_ended("POST", Some("/v1/locks/acquire".into()), HttpEnd::Disconnected, TOOK);
    all.service.redirected(Redirect::Moved);
    all.service.refused(Refusal::Overload);
    all.service.audited("force_release", "ok");
    all.read_figures_from(Arc::new(leading));
}

#[test]
fn every_metric_has_its_name_type_and_help_once() {
    let metrics = metrics();
    record_everything(&metrics);
    let text = metrics.render().unwrap();
    let types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(types.join("\n"), NAMES);
    let helps: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '))
        .filter(|(_, help)| !help.is_empty())
        .collect();
    assert_eq!(helps.len(), types.len(), "each metric has one help text");
    let series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series))
        .collect();
    assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len(), "no series twice");
    assert!(!text.contains("otel_scope"), "no scope labels");
}

#[test]
fn series_carry_the_published_attributes_and_values() {
    let metrics = metrics();
    record_everything(&metrics);
    let text = metrics.render().unwrap();
    for line in [
        r#"holdfast_lock_held{holdfast_group_id="1",holdfast_prefix="jobs/"} 4"#,
        r#"holdfast_lock_wait_oldest_seconds{holdfast_group_id="1",holdfast_prefix="jobs/"} 2.5"#,
        r#"holdfast_lock_wait_duration_seconds_count{holdfast_group_id="1",holdfast_prefix="jobs/",outcome="acquired"} 1"#,
        r#"holdfast_lock_hold_duration_seconds_bucket{end="expired",holdfast_group_id="1",holdfast_prefix="jobs/",le="86400"} 1"#,
        r#"holdfast_raft_log_fsync_duration_seconds_bucket{le="0.00005"} 0"#,
        r#"holdfast_raft_log_fsync_duration_seconds_bucket{le="0.0001"} 1"#,
        r#"holdfast_raft_replication_lag{holdfast_group_id="1",peer="3"} 17"#,
        r#"holdfast_raft_is_leader{holdfast_group_id="1"} 1"#,
        r#"holdfast_raft_proposal_failures_total{holdfast_group_id="1",reason="timeout"} 1"#,
        r#"holdfast_group_replica{holdfast_group_id="1",role="leader"} 1"#,
        r#"holdfast_session_closed_total{holdfast_group_id="1",reason="client"} 1"#,
        r#"holdfast_snapshot_size_bytes{holdfast_group_id="1"} 4096"#,
        r#"holdfast_snapshot_last_success_timestamp_seconds{holdfast_group_id="1"} 1700000000.5"#,
        r#"holdfast_snapshot_failures_total{stage="build"} 0"#,
        r#"holdfast_routing_redirects_total{reason="stale_map"} 0"#,
        r#"holdfast_admission_rejections_total{reason="overload"} 1"#,
        r#"holdfast_admission_rejections_total{reason="queue_full"} 0"#,
        r#"holdfast_audit_events_total{action="force_release",outcome="ok"} 1"#,
        r#"holdfast_build_info{revision="abc123",version="0.1.0"} 1"#,
        r#"http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",http_route="/v1/locks/acquire",url_scheme="http"} 1"#,
        r#"http_server_request_duration_seconds_count{error_type="client_disconnected",http_request_method="POST",http_route="/v1/locks/acquire",url_scheme="http"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_member_that_no_longer_leads_stops_reporting_what_leaders_report() {
    let metrics = metrics();
    metrics.instruments.read_figures_from(Arc::new(leading));
    assert!(metrics.render().unwrap().contains("holdfast_lock_held{"));
    metrics.instruments.read_figures_from(Arc::new(|| {
        let mut figures = leading();
        for group in &mut figures.groups {
            group.role = ReplicaRole::Follower;
            group.leader = None;
        }
        figures
    }));
    let text = metrics.render().unwrap();
    for gone in ["holdfast_lock_held{", "holdfast_session_active{", "holdfast_raft_quorum_ack_age_seconds{"] {
        assert!(!text.contains(gone), "{gone}");
    }
    assert!(text.contains(r#"holdfast_group_replica{holdfast_group_id="1",role="follower"} 1"#));
    assert!(text.contains(r#"holdfast_raft_is_leader{holdfast_group_id="1"} 0"#));
}

#[test]
fn two_members_in_one_process_do_not_share_series() {
    let (one, two) = (metrics(), metrics());
    one.instruments.session.opened(G);
    assert!(one.render().unwrap().contains("holdfast_session_opened_total{"));
    assert!(!two.render().unwrap().contains("holdfast_session_opened_total{"));
}

#[test]
fn ends_of_waits_become_outcomes() {
    let granted = WaitEnd::Granted { token: Revision(9) };
    for (end, outcome) in [
        (granted, WaitOutcome::Acquired),
        (WaitEnd::Removed(Removal::TimedOut), WaitOutcome::Timeout),
        (WaitEnd::Removed(Removal::Abandoned), WaitOutcome::Cancelled),
        (WaitEnd::Removed(Removal::SessionEnded(SessionEndReason::Forced)), WaitOutcome::SessionLost),
        (WaitEnd::Removed(Removal::Deleted), WaitOutcome::Refused),
    ] {
        assert_eq!(WaitOutcome::from(end), outcome, "{end:?}");
    }
}
