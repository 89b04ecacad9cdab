//! The product's client watches all changes of locks, over connections that come and go.

use std::time::Duration;

use futures::StreamExt;
use holdfast_client::{Client, WatchError, WatchEvent};
use holdfast_locktable::ids::{Revision, SessionId};
use holdfast_node::endpoint::types;
use holdfast_partitioner::GroupId;
use tokio::time::timeout;

use crate::workload::{Setting, pause};

/// How often it is looked whether the run comes to an end.
const LOOK: Duration = Duration::from_millis(200);

/// Watches until the run comes to an end; what it is given is compared with the log.
pub async fn watch(client: Client, setting: Setting, number: u32) {
    while !setting.stopping() {
        let watched = setting.watches.begin(number);
        let mut changes = client.watch("", None);
        while !setting.stopping() {
            match timeout(LOOK, changes.next()).await {
                Ok(Some(Ok(change))) => setting.watches.given(watched, &as_members_have_it(change)),
                // Only an error says that something was left out.
                Ok(Some(Err(WatchError::Compacted { .. } | WatchError::Interrupted)) | None) => break,
                Ok(Some(Err(WatchError::Refused(error)))) => {
                    let sentence = format!("client {number} watches and was told {}: {error}", error.code);
                    setting.findings.add("native", setting.world.now(), sentence);
                    return;
                }
                Err(_) => {}
            }
        }
        pause(1).await;
    }
}

fn as_members_have_it(change: WatchEvent) -> types::WatchEvent {
    types::WatchEvent {
        group: GroupId(change.group),
        revision: Revision(change.revision),
        at_ms: change.at_ms,
        what: change.what,
        name: change.name,
        session: change.session.and_then(|session| SessionId::new(session.get())),
        token: Revision(change.token),
        value: change.value,
        cursor: change.cursor,
    }
}
