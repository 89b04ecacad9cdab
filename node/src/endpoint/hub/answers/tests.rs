//! Who is answered when, over members that are quick, slow, or hang. Time stands still but for what is waited for.

use std::sync::Arc;

use futures::stream::{self, FuturesUnordered};
use holdfast_locktable::ids::SessionId;
use tokio::sync::{Semaphore, oneshot};

use super::*;

const PATIENCE: Duration = Duration::from_secs(1);
const EPOCH: MapEpoch = MapEpoch(3);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A group that renews everybody, with these TTLs in milliseconds; 0 stands for a session that it does not know.
fn renewing(group: u32, ttls: &[u64]) -> Answer {
    let line = |ttl_ms: &u64| match *ttl_ms {
        0 => Renewal { state: LeaseState::Unknown, ttl_ms: 0, epoch: EPOCH },
        ttl_ms => Renewal { state: LeaseState::Renewed, ttl_ms, epoch: EPOCH },
    };
    vec![(GroupId(group), ttls.iter().map(line).collect())]
}

/// What each caller heard: the groups that renewed or did not know its session, and when; and which groups were heard in the end.
type Heard = (Vec<(Vec<u32>, Duration)>, Vec<u32>);

/// Sends a batch of callers with one session each to members that answer after so long, and have answered nothing since the batch
/// was sent. Groups 1 to 3 are there.
async fn heard(callers: usize, answers: Vec<(Duration, Answer)>) -> Heard {
    let sent = Instant::now();
    heard_from(callers, answers, move |_| Some(sent)).await
}

/// As [`heard`], where members have been silent since then; the first member is number 1.
async fn heard_from(
    callers: usize,
    answers: Vec<(Duration, Answer)>,
    silent_since: impl Fn(Source) -> Option<Instant>,
) -> Heard {
    let started = Instant::now();
    let room = Arc::new(Semaphore::new(callers));
    let (mut batch, mut waiting) = (Vec::new(), Vec::new());
    for id in (1..).take(callers) {
        let (caller, answer) = oneshot::channel();
        let sessions = [SessionId::new(id).unwrap()].into();
        batch.push(Keepalives { sessions, caller, _room: room.clone().try_acquire_owned().unwrap() });
        waiting.push(async move {
            let renewals = answer.await.unwrap().remove(0);
            let said = renewals.groups.iter().filter(|line| line.state != LeaseState::Unavailable);
            (said.map(|line| line.group.0).collect::<Vec<_>>(), started.elapsed())
        });
    }
    let asked = (1..).take(answers.len()).map(Source::Member).collect();
    let answers: FuturesUnordered<_> = answers
        .into_iter()
        .zip((1..).map(Source::Member))
        .map(|((after, answer), source)| async move {
            tokio::time::sleep(after).await;
            (source, answer)
        })
        .collect();
    let groups = || vec![GroupId(1), GroupId(2), GroupId(3)];
    let asking = answer_callers(batch, Asking { asked, answers, silent_since }, groups, PATIENCE);
    let (groups, callers) = futures::future::join(asking, futures::future::join_all(waiting)).await;
    assert_eq!(room.available_permits(), callers.len(), "all room is given back");
    (callers, groups.into_iter().map(|group| group.0).collect())
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hangs_delays_a_short_ttl_by_a_part_of_it_only() {
    let answers =
        vec![(ms(5), renewing(1, &[1_000])), (ms(9), renewing(2, &[0])), (ms(60_000), renewing(3, &[1_000]))];
    let (callers, groups) = heard(1, answers).await;
    assert_eq!(callers, [(vec![1, 2], HANGS + WAY)]);
    assert_eq!(groups, [1, 2], "the silent group is told from the others");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_has_hung_for_a_while_delays_by_a_part_of_the_ttl_only() {
    let answers =
        vec![(ms(5), renewing(1, &[1_200])), (ms(9), renewing(2, &[0])), (ms(60_000), renewing(3, &[1_200]))];
    let sent = Instant::now();
    tokio::time::advance(ms(2_000)).await;
    let (callers, _) = heard_from(1, answers, move |_| Some(sent)).await;
    assert_eq!(callers, [(vec![1, 2], ms(200))]);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_slow_is_heard_all_the_same() {
    let answers = vec![(ms(10), renewing(1, &[2_000])), (ms(400), renewing(2, &[2_000]))];
    let (callers, _) = heard(1, answers).await;
    assert_eq!(callers, [(vec![1, 2], ms(400))]);
    // One that answers others all the time is not silent, however long it takes.
    let answers = vec![(ms(10), renewing(1, &[1_000])), (ms(800), renewing(2, &[1_000]))];
    let (callers, _) = heard_from(1, answers, |_| Some(Instant::now())).await;
    assert_eq!(callers, [(vec![1, 2], ms(800))]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_a_long_ttl_waits_on_where_another_of_its_batch_cannot() {
    let ttls = [1_000, 10_000];
    let answers =
        vec![(ms(5), renewing(1, &ttls)), (ms(700), renewing(2, &ttls)), (ms(60_000), renewing(3, &ttls))];
    let (callers, groups) = heard(2, answers).await;
    assert_eq!(callers[0], (vec![1], HANGS + WAY));
    assert_eq!(callers[1], (vec![1, 2], PATIENCE));
    assert_eq!(groups, [1, 2], "what is too late for one caller is still heard");
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_all_callers_were_answered_is_heard_within_the_patience() {
    let answers = vec![
        (ms(5), renewing(1, &[1_000])),
        (ms(700), renewing(2, &[1_000])),
        (ms(1_100), renewing(3, &[1_000])),
    ];
    let (callers, groups) = heard(1, answers).await;
    assert_eq!(callers[0].0, [1]);
    assert_eq!(groups, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_ttl_nobody_says_waits_for_all() {
    let answers =
        vec![(ms(5), renewing(1, &[0])), (ms(900), renewing(2, &[0])), (ms(60_000), renewing(3, &[1_000]))];
    let (callers, _) = heard(1, answers).await;
    assert_eq!(callers, [(vec![1, 2], PATIENCE)]);
}

#[tokio::test(start_paused = true)]
async fn who_has_everybodys_answer_waits_for_no_timer() {
    let answers = vec![
        (ms(5), renewing(1, &[1_000, 0])),
        (ms(30), [renewing(2, &[1_000, 0]), renewing(3, &[0, 0])].concat()),
    ];
    let (callers, groups) = heard(2, answers).await;
    assert_eq!(callers, vec![(vec![1, 2, 3], ms(30)); 2]);
    assert_eq!(groups, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn where_all_are_slow_the_first_answer_is_not_the_only_one() {
    let answers = vec![
        (ms(260), renewing(1, &[1_000])),
        (ms(270), renewing(2, &[1_000])),
        (ms(60_000), renewing(3, &[1_000])),
    ];
    let sent = Instant::now();
    tokio::time::advance(ms(2_000)).await;
    let (callers, _) = heard_from(1, answers, move |_| Some(sent)).await;
    assert_eq!(callers, [(vec![1, 2], ms(260) + MOMENT)]);
}

#[tokio::test(start_paused = true)]
async fn the_shortest_ttl_of_a_caller_decides_and_lines_stay_with_their_sessions() {
    let (caller, answer) = oneshot::channel();
    let sessions: Arc<[SessionId]> = [1, 2].map(|id| SessionId::new(id).unwrap()).into();
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let started = Instant::now();
    let first = async { (Source::Member(1), renewing(1, &[10_000, 2_000])) };
    let answers = stream::once(first).chain(stream::pending()).boxed();
    let batch = vec![Keepalives { sessions, caller, _room: room }];
    let asked = [1, 2].map(Source::Member).into();
    let asking = Asking { asked, answers, silent_since: |_| None };
    let asking = answer_callers(batch, asking, || vec![GroupId(1)], PATIENCE);
    let answered = async { (answer.await.unwrap(), started.elapsed()) };
    let (_, (renewals, after)) = futures::future::join(asking, answered).await;
    assert!((ms(300)..ms(350)).contains(&after), "a sixth of the shorter TTL, not {after:?}");
    assert_eq!([renewals[0].ttl_ms, renewals[1].ttl_ms], [Some(10_000), Some(2_000)]);
}

#[test]
fn a_group_that_did_not_answer_is_unavailable_and_renews_nothing() {
    let renewed = Renewal { state: LeaseState::Renewed, ttl_ms: 9_000, epoch: EPOCH };
    let unknown = Renewal { state: LeaseState::Unknown, ttl_ms: 0, epoch: EPOCH };
    let answers = BTreeMap::from([(GroupId(1), vec![unknown, renewed])]);
    let groups = [GroupId(1), GroupId(2)];
    let second = renewals(1, &groups, &answers);
    assert_eq!(second.ttl_ms, Some(9_000));
    let line = |group, state, epoch| GroupLease { group: GroupId(group), state, epoch: MapEpoch(epoch) };
    let expected = [line(1, LeaseState::Renewed, 3), line(2, LeaseState::Unavailable, 0)];
    assert_eq!(second.groups, expected);
    assert_eq!(renewals(0, &groups, &answers).ttl_ms, None);
}
