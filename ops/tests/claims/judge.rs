//! What may never be seen of partitions, judged from what the workers said.

use std::{collections::BTreeMap, time::Duration};

use super::crew::{Fate, Story};

/// One worker's time with one partition.
#[derive(Debug)]
struct Tenure<'s> {
    session: &'s str,
    token: u64,
    from_ms: u64,
    /// When it had certainly stopped.
    until_ms: u64,
}

/// Tokens of a partition only grow, no two workers have one token, and whoever comes next comes after the one before has
/// stopped. Who was paused cannot say when it has stopped believing, so nobody comes next before half its TTL has passed.
pub(crate) fn never_two_owners(stories: &[Story], ttl: Duration) {
    let mut tenures = BTreeMap::<u64, Vec<Tenure<'_>>>::new();
    for story in stories {
        for (partition, tenure) in tenures_of(story, ttl) {
            tenures.entry(partition).or_default().push(tenure);
        }
    }
    assert!(!tenures.is_empty(), "nobody had anything");
    for (partition, mut tenures) in tenures {
        tenures.sort_by_key(|tenure| (tenure.token, tenure.from_ms));
        for pair in tenures.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let who = format!("partition {partition}, sessions {} and {}", before.session, after.session);
            assert!(before.token < after.token, "BROKEN PROMISE: one token, two owners: {who}: {pair:?}");
            assert!(
                before.until_ms <= after.from_ms,
                "BROKEN PROMISE: two owners at one time: {who}: {pair:?}"
            );
        }
    }
}

fn tenures_of(story: &Story, ttl: Duration) -> Vec<(u64, Tenure<'_>)> {
    let mut open = BTreeMap::new();
    let mut over = Vec::new();
    for line in &story.said {
        let at_ms = line["at_ms"].as_u64().unwrap();
        let partition = line["partition"].as_u64();
        match (line["event"].as_str().unwrap(), partition) {
            ("assigned", Some(partition)) => {
                let token = line["token"].as_u64().unwrap();
                let tenure = Tenure { session: &story.session, token, from_ms: at_ms, until_ms: u64::MAX };
                assert!(open.insert(partition, tenure).is_none(), "told twice: {line}");
            }
            ("revoked", Some(partition)) => {
                let tenure: Tenure<'_> = open.remove(&partition).expect("only what it has is revoked");
                over.push((partition, Tenure { until_ms: at_ms, ..tenure }));
            }
            ("ended", _) => {
                let until_ms = last_of(story, ttl).map_or(at_ms, |last| last.min(at_ms));
                let ended = std::mem::take(&mut open).into_iter();
                over.extend(ended.map(|(partition, tenure)| (partition, Tenure { until_ms, ..tenure })));
            }
            _ => {}
        }
    }
    let killed = last_of(story, ttl);
    over.extend(open.into_iter().map(|(partition, tenure)| {
        (partition, Tenure { until_ms: killed.expect("who still has something was killed"), ..tenure })
    }));
    over
}

/// The last moment at which a worker that was struck without a word can have used anything, at least.
fn last_of(story: &Story, ttl: Duration) -> Option<u64> {
    let (fate, at_ms) = story.struck?;
    match fate {
        Fate::Killed | Fate::Paused => Some(at_ms + ttl.as_millis() as u64 / 2),
        Fate::Told(_) | Fate::Drained => None,
    }
}

/// The fewest partitions that must change hands so that these sessions have everything, in equal shares.
pub(crate) fn fewest_moves(owners: &[String], sessions: &[String]) -> usize {
    let mut has: Vec<usize> =
        sessions.iter().map(|session| owners.iter().filter(|owner| *owner == session).count()).collect();
    has.sort_unstable_by_key(|has| std::cmp::Reverse(*has));
    let (share, spare) = (owners.len() / sessions.len(), owners.len() % sessions.len());
    let kept = has.iter().enumerate().map(|(at, has)| (*has).min(share + usize::from(at < spare)));
    owners.len() - kept.sum::<usize>()
}
