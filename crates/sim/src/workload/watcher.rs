//! Somebody who watches all locks, now at this member, now at that, and goes on from its last cursor.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use holdfast_node::endpoint::{
    ErrorCode,
    types::{WatchEvent, WatchRequest},
};
use rand::Rng;
use tokio::time::{Instant, timeout_at};

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{entropy::Dice, network::Node};

/// Watches until the run comes to an end.
pub async fn watch(setting: Setting, number: u32, node: Node, mut dice: Dice) {
    setting.begins();
    let (mut watched, mut cursor) = (setting.watches.begin(number), None);
    while !setting.stopping() {
        let member = ask::any(&setting, &mut dice);
        let verb = some_changes(cursor.clone(), dice.random_range(100..2_000));
        match ask::ask(&setting, node, member, "watch", verb).await {
            Answer::Done(changes) => {
                for change in changes {
                    setting.watches.given(watched, &change);
                    cursor = Some(change.cursor);
                }
            }
            // Only an error says that something was left out.
            Answer::No(error) if error.code == ErrorCode::Compacted => {
                (watched, cursor) = (setting.watches.begin(number), None);
            }
            Answer::No(error) => {
                let sentence =
                    format!("watcher {number} was told {}: {}", error.code.as_str(), error.message);
                setting.findings.add("answers", setting.world.now(), sentence);
            }
            Answer::Unknown => {}
        }
        if dice.random_bool(0.3) {
            pause(dice.random_range(0..1_000)).await;
        } else {
            pause(1).await;
        }
    }
    setting.ends();
}

/// What a watch gives within so many milliseconds. What came before an error counts.
fn some_changes(from: Option<String>, for_ms: u64) -> Verb<Vec<WatchEvent>> {
    Arc::new(move |endpoint| {
        let request =
            WatchRequest { prefix: String::new(), elections: false, exact: false, from: from.clone() };
        Box::pin(async move {
            let until = Instant::now() + Duration::from_millis(for_ms);
            let mut stream = endpoint.watch(request).await?;
            let mut changes = Vec::new();
            while let Ok(Some(change)) = timeout_at(until, stream.next()).await {
                match change {
                    Ok(change) => changes.push(change),
                    Err(error) if changes.is_empty() => return Err(error),
                    Err(_) => break,
                }
            }
            Ok(changes)
        })
    })
}
