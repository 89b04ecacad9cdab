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
///
/// # Errors
/// What was seen.
pub(crate) fn never_two_owners(stories: &[Story], ttl: Duration) -> Result<(), String> {
    let mut tenures = BTreeMap::<u64, Vec<Tenure<'_>>>::new();
    for story in stories {
        for (partition, tenure) in tenures_of(story, ttl) {
            tenures.entry(partition).or_default().push(tenure);
        }
    }
    if tenures.is_empty() {
        return Err("nobody had anything".into());
    }
    for (partition, mut tenures) in tenures {
        tenures.sort_by_key(|tenure| (tenure.token, tenure.from_ms));
        for pair in tenures.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let who = format!("partition {partition}, sessions {} and {}", before.session, after.session);
            if before.token == after.token {
                return Err(format!("one token, two owners: {who}: {pair:?}"));
            }
            if before.until_ms > after.from_ms {
                return Err(format!("two owners at one time: {who}: {pair:?}"));
            }
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TTL: Duration = Duration::from_secs(3);

    /// A worker that had partition 7 with this token from then on, and its last word.
    fn story(session: &str, token: u64, from_ms: u64, last: Option<(&str, u64)>) -> Story {
        let mut said = vec![
            json!({ "event": "joined", "at_ms": from_ms }),
            json!({ "event": "assigned", "partition": 7, "token": token, "at_ms": from_ms }),
        ];
        said.extend(last.map(|(event, at_ms)| json!({ "event": event, "partition": 7, "at_ms": at_ms })));
        Story { session: session.into(), said, struck: None }
    }

    fn found(stories: &[Story]) -> String {
        never_two_owners(stories, TTL).expect_err("nothing was found")
    }

    #[test]
    fn one_after_the_other_is_well() {
        let stories = [story("a", 1, 100, Some(("revoked", 200))), story("b", 5, 200, Some(("ended", 900)))];
        assert_eq!(never_two_owners(&stories, TTL), Ok(()));
    }

    #[test]
    fn two_at_one_time_and_one_token_twice_are_found() {
        let late = [story("a", 1, 100, Some(("revoked", 201))), story("b", 5, 200, Some(("ended", 900)))];
        assert!(found(&late).starts_with("two owners at one time"));
        let same = [story("a", 5, 100, Some(("revoked", 150))), story("b", 5, 200, Some(("ended", 900)))];
        assert!(found(&same).starts_with("one token, two owners"));
        let older = [story("a", 5, 100, Some(("ended", 150))), story("b", 1, 200, Some(("ended", 900)))];
        assert!(found(&older).starts_with("two owners at one time"), "a lower token came later");
    }

    #[test]
    fn who_dies_has_what_it_had_for_half_its_ttl_at_least() {
        let mut dead = story("a", 1, 100, None);
        dead.struck = Some((Fate::Killed, 1_000));
        assert!(found(&[dead, story("b", 5, 2_499, Some(("ended", 9_000)))]).starts_with("two owners"));
        let mut dead = story("a", 1, 100, None);
        dead.struck = Some((Fate::Killed, 1_000));
        assert_eq!(never_two_owners(&[dead, story("b", 5, 2_500, Some(("ended", 9_000)))], TTL), Ok(()));
    }

    #[test]
    fn moves_are_counted_against_the_fewest_that_balance() {
        let names = |text: &str| -> Vec<String> { text.chars().map(String::from).collect() };
        assert_eq!(fewest_moves(&names("aaaaaa"), &names("ab")), 3);
        assert_eq!(fewest_moves(&names("aaabbb"), &names("abc")), 2);
        assert_eq!(fewest_moves(&names("aabbcc"), &names("ab")), 2, "only what the dead one had");
        assert_eq!(fewest_moves(&names("aabbcc"), &names("abc")), 0);
    }
}
