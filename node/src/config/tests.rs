//! Bounds and relations of the configuration, one fault at a time and all at once.

use super::*;

fn three_members() -> MemberConfig {
    let entry = |id: MemberId| MemberEntry {
        id,
        http: format!("http://10.0.0.{id}:7610"),
        grpc: format!("http://10.0.0.{id}:7611"),
        peer: format!("10.0.0.{id}:7612"),
    };
    MemberConfig {
        member: 2,
        data_dir: "/var/lib/holdfast".into(),
        members: (1..=3).map(entry).collect(),
        ..MemberConfig::default()
    }
}

fn keys(config: &MemberConfig) -> Vec<String> {
    config.validate().into_iter().map(|fault| fault.key).collect()
}

#[test]
fn three_members_on_loopback_are_fine() {
    assert_eq!(three_members().validate(), []);
}

#[test]
fn an_empty_file_names_everything_that_is_not_set() {
    assert_eq!(keys(&MemberConfig::default()), ["member", "data_dir", "members"]);
}

#[test]
fn all_faults_are_reported_at_once() {
    let mut config = three_members();
    config.cluster = "Two Words".into();
    config.member = 9;
    config.listen.http = ([0, 0, 0, 0], 7610).into();
    config.listen.peer = config.listen.grpc;
    config.members[1].id = 1;
    config.members[2].http = "10.0.0.3:7610".into();
    config.members[2].peer = "10.0.0.2:7612".into();
    config.groups.lock_groups = 33;
    config.raft.heartbeat_interval = Duration::from_millis(200);
    config.raft.election_timeout_max = config.raft.election_timeout_min;
    config.raft.snapshot_entries = 999;
    config.raft.keep_entries = 10_000_001;
    config.snapshots.interval = Duration::from_secs(1);
    config.snapshots.keep = 0;
    assert_eq!(
        keys(&config),
        [
            "cluster",
            "member",
            "listen.http",
            "listen.peer",
            "members[1].id",
            "members[2].http",
            "members[2].peer",
            "groups.lock_groups",
            "raft.election_timeout_min",
            "raft.election_timeout_max",
            "raft.snapshot_entries",
            "raft.keep_entries",
            "snapshots.interval",
            "snapshots.keep",
        ]
    );
    assert!(config.validate().iter().all(Fault::is_error));
}

#[test]
fn an_even_number_of_voters_is_a_warning() {
    let mut config = three_members();
    config.members.pop();
    let faults = config.validate();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].severity, Severity::Warning);
    assert!(faults[0].message.contains("2 members survive no more failures than 1"), "{}", faults[0]);
}

#[test]
fn listening_beyond_loopback_needs_to_be_called_insecure() {
    let mut config = three_members();
    config.listen.grpc = ([10, 0, 0, 2], 7611).into();
    let faults = config.validate();
    assert_eq!(keys(&config), ["listen.grpc"]);
    assert!(faults[0].message.contains("listen.insecure = true"), "{}", faults[0]);
    config.listen.insecure = true;
    assert_eq!(config.validate(), []);
}

#[test]
fn addresses_need_a_host_and_a_port() {
    for good in ["localhost:1", "[::1]:7612", "node-1.holdfast:7612"] {
        let mut config = three_members();
        config.members[0].peer = good.into();
        assert_eq!(config.validate(), [], "{good}");
    }
    for bad in ["", "localhost", ":7612", "a:0", "a:65536", "::1:7612", "http://a:1", "a b:1"] {
        let mut config = three_members();
        config.members[0].peer = bad.into();
        assert_eq!(keys(&config), ["members[0].peer"], "{bad}");
    }
}

#[test]
fn a_slow_election_is_a_warning_and_an_endless_one_refused() {
    let mut config = three_members();
    config.raft.election_timeout_max = Duration::from_secs(5);
    assert_eq!(config.validate()[0].severity, Severity::Warning);
    config.raft.election_timeout_max = Duration::from_secs(61);
    assert!(config.validate()[0].is_error());
}

#[test]
fn a_configuration_survives_being_written_to_a_file() {
    let mut config = three_members();
    config.snapshots.store = Some("s3://backups/prod".into());
    config.snapshots.max_age = Some(Duration::from_secs(86_400));
    let text = toml::to_string(&config).unwrap();
    assert!(text.contains("heartbeat_interval = \"100ms\""), "{text}");
    assert_eq!(toml::from_str::<MemberConfig>(&text).unwrap(), config);
}

#[test]
fn unknown_keys_are_refused_by_name() {
    for (text, key) in [
        ("memberr = 1", "memberr"),
        ("[raft]\nelection = \"1s\"", "election"),
        ("[[members]]\nid = 1\naddress = \"x\"", "address"),
    ] {
        let error = toml::from_str::<MemberConfig>(text).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown field `{key}`")), "{error}");
    }
}

#[test]
fn replicas_are_odd_and_at_most_one_per_member() {
    let mut config = three_members();
    assert_eq!((config.replicas(), config.spreads()), (3, false));
    config.groups.replicas = 5;
    assert_eq!(keys(&config), ["groups.replicas"]);
    config.groups.replicas = 0;
    assert_eq!(keys(&config), ["groups.replicas"]);
    config.groups.replicas = 1;
    assert_eq!((keys(&config), config.spreads()), (vec![], true));
    config.groups.replicas = 2;
    assert_eq!(keys(&config), ["groups.replicas"]);
    let mut alone = three_members();
    alone.members.retain(|member| member.id == 2);
    assert_eq!((keys(&alone), alone.replicas()), (vec![], 1));
}

#[test]
fn the_place_of_snapshots_is_a_folder_or_a_bucket() {
    let place = |text: &str| {
        let mut config = three_members();
        config.snapshots.store = Some(text.into());
        config.snapshot_place()
    };
    for (text, bucket, prefix) in [
        ("s3://backups", "backups", ""),
        ("s3://backups/", "backups", ""),
        ("s3://my.backups-1/a/b/", "my.backups-1", "a/b"),
    ] {
        let Ok(StorePlace::Bucket(options)) = place(text) else { panic!("{text}") };
        assert_eq!((options.bucket.as_str(), options.prefix.as_str()), (bucket, prefix));
    }
    for folder in ["/mnt/snapshots", "snapshots"] {
        assert_eq!(place(folder), Ok(StorePlace::Folder(folder.into())));
    }
    for bad in ["", "s3://", "s3:///a", "s3://Backups", "s3://backups//a", "s3://backups/a b", "gs://backups"]
    {
        assert!(place(bad).is_err(), "{bad}");
    }
    let default = three_members();
    assert_eq!(default.snapshot_place(), Ok(StorePlace::Folder(default.data_dir.join("snapshots"))));
}

#[test]
fn settings_of_a_bucket_are_checked_together() {
    let mut config = three_members();
    config.snapshots.store = Some("s3://backups".into());
    config.snapshots.endpoint = Some("localhost:8333".into());
    config.snapshots.sse_kms_key = Some("alias/backups".into());
    config.snapshots.timeout = Duration::from_millis(10);
    config.snapshots.max_age = Some(Duration::from_secs(1));
    let expected = ["snapshots.timeout", "snapshots.max_age", "snapshots.endpoint", "snapshots.sse_kms_key"];
    assert_eq!(keys(&config), expected);
    assert!(config.validate().iter().all(Fault::is_error));

    let mut folder = three_members();
    folder.snapshots.region = Some("eu-central-1".into());
    folder.snapshots.sse = Sse::Aes256;
    assert_eq!(keys(&folder), ["snapshots.region", "snapshots.sse"]);
    assert!(!folder.validate().iter().any(Fault::is_error), "they do nothing, and harm nothing");
}
