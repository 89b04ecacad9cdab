//! The folders of a new cluster, as its members will find them.

use std::collections::BTreeMap;

use super::*;
use crate::{
    config::MemberEntry,
    log::identity::ClusterId,
    restore::rebuild::{Group, Rebuilt},
};
use holdfast_partitioner::GroupId;

fn prepared() -> Prepared {
    let group = Group { state: "state".into(), index: 500, voters: [1, 2].into(), members: [1, 2].into() };
    let groups = BTreeMap::from([
        (GroupId(0), group.clone()),
        (GroupId(1), Group { voters: [1].into(), members: [1].into(), ..group }),
    ]);
    let rebuilt = Rebuilt { groups, lock_groups: 1, replicas: 2, pause_ms: None, map_epoch: 1 };
    let member = |id| MemberEntry { id, peer: format!("127.0.0.1:{id}"), ..MemberEntry::default() };
    Prepared {
        cluster: "prod-r1".parse().unwrap(),
        incarnation: 1,
        members: vec![member(1), member(2)],
        rebuilt,
    }
}

#[tokio::test]
async fn each_member_has_its_groups_and_a_log_that_begins_behind_them() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("new");
    let prepared = prepared();
    let mut at = None;
    write(&prepared, &to, |path| {
        at = Some(path.to_owned());
        fs::write(path.join("more"), "x")
    })
    .await
    .unwrap();
    assert!(to.join("more").is_file() && at.is_some_and(|at| !at.exists()));
    for (member, groups) in [(1, vec![0, 1]), (2, vec![0])] {
        let cluster: ClusterId = "prod-r1".parse().unwrap();
        let options = LogOptions {
            folder: data_folder(&to, member),
            identity: LogIdentity { cluster, member },
            size_limit_bytes: None,
            on_commit: None,
        };
        let opener = LogActor::open(options).unwrap().opener();
        for group in [0, 1] {
            let number = GroupNumber::new(group).unwrap();
            let purged = opener.open_group(number).await.unwrap().purged();
            let snapshots = RaftSnapshots::in_folder(&data_folder(&to, member), number);
            let has = snapshots.load().await.unwrap();
            assert_eq!(purged.map(|id| id.index), groups.contains(&group).then_some(500));
            assert_eq!(has.map(|(_, state)| state), groups.contains(&group).then_some("state".into()));
        }
    }
}

#[tokio::test]
async fn a_folder_with_something_in_it_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "x").unwrap();
    let refused = write(&prepared(), folder.path(), |_| Ok(())).await.unwrap_err();
    assert!(matches!(refused, WriteError::NotEmpty { .. }), "{refused}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("new");
    let full = || io::Error::other("no space");
    let failed = write(&prepared(), &to, |_| Err(full())).await.unwrap_err();
    assert!(failed.to_string().contains("no space"), "{failed}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
