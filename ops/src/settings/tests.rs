//! Layers, sources and faults of settings.

use std::{io::Write as _, time::Duration};

use super::*;

const GOOD: &str = r#"
cluster = "prod"
member = 1
data_dir = "/var/lib/holdfast"

[raft]
heartbeat_interval = "150ms"

[[members]]
id = 1
http = "http://10.0.0.1:7610"
grpc = "http://10.0.0.1:7611"
peer = "10.0.0.1:7612"
"#;

fn load(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Settings {
    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(file.as_bytes()).unwrap();
    let args = SettingsArgs {
        config: Some(on_disk.path().to_owned()),
        set: set.iter().map(|text| assignment(text).unwrap()).collect(),
    };
    Settings::load_with(&args, environment.iter().map(|(k, v)| ((*k).into(), (*v).into())))
}

fn fault_keys(settings: &Settings) -> Vec<&str> {
    settings.faults.iter().map(|fault| fault.key.as_str()).collect()
}

#[test]
fn later_layers_win_and_every_value_knows_its_source() {
    let settings = load(
        GOOD,
        &[
            ("HOLDFAST__RAFT__HEARTBEAT_INTERVAL", "120ms"),
            ("HOLDFAST__CLUSTER", "staging"),
            ("HOLDFAST__MEMBERS__0__PEER", "db:7612"),
            ("HOLDFAST_ENDPOINTS", "http://elsewhere:1"),
            ("HOME", "/root"),
        ],
        &["cluster=test", "groups.lock_groups=8", "listen.insecure=true"],
    );
    assert_eq!(settings.faults, []);
    assert_eq!(settings.config.cluster, "test");
    assert_eq!(settings.config.groups.lock_groups, 8);
    assert!(settings.config.listen.insecure);
    assert_eq!(settings.config.raft.heartbeat_interval, Duration::from_millis(120));
    assert_eq!(settings.config.members[0].peer, "db:7612");
    let explained = settings.explain();
    let source =
        |key: &str| explained.iter().find(|(k, _, _)| k == key).map(|(_, v, s)| (v.clone(), s.to_string()));
    assert_eq!(source("cluster"), Some(("test".into(), "flag --set".into())));
    assert_eq!(
        source("members[0].peer"),
        Some(("db:7612".into(), "environment HOLDFAST__MEMBERS__0__PEER".into()))
    );
    assert_eq!(source("log.level"), Some(("info".into(), "default".into())));
    assert!(source("data_dir").unwrap().1.starts_with("file /"));
}

#[test]
fn everything_wrong_in_all_layers_is_reported_at_once() {
    let settings = load(
        &GOOD.replace("[raft]", "[raft]\nelection_timeout = \"1s\"\nelection_timeout_max = 7"),
        &[("HOLDFAST__GROUPS__LOCK_GROUPS", "many"), ("HOLDFAST__RAFFT__X", "1")],
        &["snapshots.keep=0", "raft=fast", "listen.http=0.0.0.0:80"],
    );
    assert_eq!(
        fault_keys(&settings),
        [
            "raft.election_timeout",
            "raft.election_timeout_max",
            "groups.lock_groups",
            "rafft.x",
            "raft",
            "listen.http",
            "snapshots.keep",
        ]
    );
    assert!(settings.is_refused());
    let text = settings.faults[0].to_string();
    assert!(text.contains("did you mean raft.election_timeout_m"), "{text}");
    let text = settings.faults[2].to_string();
    assert!(text.contains("HOLDFAST__GROUPS__LOCK_GROUPS") && text.contains("many"), "{text}");
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_named() {
    let args = SettingsArgs { config: Some("/nonexistent/h.toml".into()), set: Vec::new() };
    let settings = Settings::load_with(&args, std::iter::empty());
    assert_eq!(settings.faults[0].key, "/nonexistent/h.toml");
    assert!(load("cluster = ", &[], &[]).is_refused());
}

#[test]
fn numbers_in_the_environment_stay_text_where_text_is_wanted() {
    let settings = load(GOOD, &[("HOLDFAST__CLUSTER", "7"), ("HOLDFAST__MEMBER", "1")], &[]);
    assert_eq!(settings.faults, []);
    assert_eq!(settings.config.cluster, "7");
}
