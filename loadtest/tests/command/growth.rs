//! Endless load: the members' data and memory stay as large as they are. The long form is by hand:
//! `holdfast-loadtest growth --minutes 30`.

use serde_json::Value;

use crate::{
    cluster::{PORTS_IN_USE, bases},
    loadtest, told,
};

fn grow(base_port: u16) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = loadtest();
    command
        .args(["growth", "--minutes=3", "--every=20", "--clients=16", "--groups=1", "-o", "json"])
        .arg(format!("--base-port={base_port}"))
        .arg("--dir")
        .arg(folder.path())
        .env("HOLDFAST__RAFT__SNAPSHOT_ENTRIES", "2000")
        .env("HOLDFAST__RAFT__KEEP_ENTRIES", "1000");
    told(&command.output().unwrap())
}

/// Real members whose logs are shortened every few thousand entries. The history of the one group, 32,768 changes, is full within the
/// first minute; without shortening, the log alone would grow by 10 MiB in the last.
#[test]
fn data_and_memory_stay_flat_under_load() {
    let (code, out, err) = bases()
        .map(grow)
        .find(|(_, _, err)| !err.contains(PORTS_IN_USE))
        .unwrap_or_else(|| panic!("no free block of ports"));
    assert_eq!(code, Some(0), "{err}\n{out}");
    let growth: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&growth["data"]["trend"], &growth["memory"]["trend"]), (&"flat".into(), &"flat".into()));
    assert_eq!(growth["violations"], 0);
    let looks = growth["looks"].as_array().unwrap();
    assert_eq!(looks.len(), 9);
    assert!(looks.iter().all(|look| look["data_bytes"].as_u64() > Some(0)), "{growth}");
    assert!(looks.iter().all(|look| look["memory_bytes"].as_u64() > Some(0)), "{growth}");
}
