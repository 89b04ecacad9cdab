//! Renewing sessions in the groups that this member leads, none of which waits for one that hangs for long.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use holdfast_locktable::ids::SessionId;
use holdfast_partitioner::GroupId;
use tokio::time::{Instant, timeout_at};

use super::Router;
use crate::group::{keepalive::Renewal, proposer::GroupError};

/// Who has answered nothing for so long hangs. It is more than two proofs of leadership take where heartbeats fail under load, so
/// that a busy group is not left out beside an idle one.
pub(in crate::endpoint) const HANGS: Duration = Duration::from_millis(550);

/// How long others are still waited for where even the first came late.
pub(in crate::endpoint) const MOMENT: Duration = Duration::from_millis(20);

/// What a group that this member leads says of sessions: one renewal for each, in order.
pub type Said = (GroupId, Result<Vec<Renewal>, GroupError>);

/// Groups that are saying so.
pub(in crate::endpoint) type Saying = FuturesUnordered<BoxFuture<'static, Said>>;

impl Router {
    /// Renews sessions in every group that this member leads, each for itself. Which those are, and what they will say.
    pub(in crate::endpoint) fn keepalives_here(
        &self,
        sessions: &Arc<[SessionId]>,
    ) -> (BTreeSet<GroupId>, Saying) {
        let led: Vec<_> = self.groups().into_iter().filter(|group| group.leads().is_some()).collect();
        let ids = led.iter().map(crate::group::Group::id).collect();
        let renewals = led.into_iter().map(|group| {
            let (sessions, asked) = (sessions.clone(), self.inner.silences.ask(group.id()));
            async move {
                let said = group.keepalive(sessions).await;
                asked.answered();
                (group.id(), said)
            }
            .boxed()
        });
        (ids, renewals.collect())
    }

    /// Since when a group that this member leads has answered nothing of what it was asked to renew.
    pub(in crate::endpoint) fn silent_since(&self, group: GroupId) -> Option<Instant> {
        self.inner.silences.since(group)
    }

    /// Renews sessions in all groups that this member leads. Groups that hang are left out, if any other has answered: they may
    /// have lost their quorum just now.
    pub async fn keepalive_here(&self, sessions: Arc<[SessionId]>) -> Vec<Said> {
        let (groups, saying) = self.keepalives_here(&sessions);
        in_time(groups, saying, |group| self.silent_since(group)).await
    }
}

/// All that is said, or what has been said when all the others hang, if that is worth anything.
async fn in_time(
    mut missing: BTreeSet<GroupId>,
    said: impl Stream<Item = Said>,
    silent_since: impl Fn(GroupId) -> Option<Instant>,
) -> Vec<Said> {
    let mut said = pin!(said);
    let (mut first, mut heard) = (None, Vec::new());
    loop {
        let hang = missing.iter().filter_map(|group| silent_since(*group)).max().map(|since| since + HANGS);
        let next = match (first, hang) {
            (Some(first), Some(hang)) => timeout_at(hang.max(first), said.next()).await,
            (None, _) | (_, None) => Ok(said.next().await),
        };
        match next {
            Ok(Some((group, renewals))) => {
                if renewals.is_ok() {
                    first.get_or_insert(Instant::now() + MOMENT);
                }
                missing.remove(&group);
                heard.push((group, renewals));
            }
            Ok(None) => return heard,
            // One of them may have answered another question meanwhile.
            Err(_) if missing.iter().all(|group| hangs(silent_since(*group))) => return heard,
            Err(_) => {}
        }
    }
}

/// Whether somebody hangs who has been silent since then.
fn hangs(since: Option<Instant>) -> bool {
    since.is_none_or(|since| since.elapsed() >= HANGS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::router::silence::Silences;

    type Renewed = Result<Vec<Renewal>, GroupError>;

    const RENEWED: Renewed = Ok(Vec::new());
    const REFUSED: Renewed = Err(GroupError::NotLeader { leader: None });

    /// Groups 1, 2 and so on answer so, after so many milliseconds each: which are in the answer, and after how many it comes.
    async fn answer(silences: &Silences<GroupId>, groups: &[(u64, Renewed)]) -> (Vec<u32>, u128) {
        let started = Instant::now();
        let saying = groups.iter().zip(1..).map(|((after, renewed), group)| {
            let asked = silences.ask(GroupId(group));
            async move {
                tokio::time::sleep(Duration::from_millis(*after)).await;
                asked.answered();
                (GroupId(group), renewed.clone())
            }
        });
        let asked = (1..).take(groups.len()).map(GroupId).collect();
        let saying = saying.collect::<FuturesUnordered<_>>();
        let said = in_time(asked, saying, |group| silences.since(group)).await;
        (said.into_iter().map(|(group, _)| group.0).collect(), started.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn groups_that_are_all_quick_are_answered_for_at_once() {
        let silences = Silences::default();
        assert_eq!(answer(&silences, &[(20, RENEWED), (10, REFUSED)]).await, (vec![2, 1], 20));
        assert_eq!(answer(&silences, &[]).await, (vec![], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_without_quorum_is_left_out_and_a_busy_one_is_not() {
        let groups = [(10, RENEWED), (2_500, REFUSED), (520, RENEWED)];
        assert_eq!(answer(&Silences::default(), &groups).await, (vec![1, 3], 550));
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_answers_other_questions_is_slow_and_does_not_hang() {
        let silences = Silences::default();
        let other = silences.ask(GroupId(2));
        let answered = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            other.answered();
        };
        let groups = [(10, RENEWED), (800, RENEWED)];
        let ((), answer) = futures::future::join(answered, answer(&silences, &groups)).await;
        assert_eq!(answer, (vec![1, 2], 800));
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_has_hung_for_a_while_holds_up_nobody() {
        let silences = Silences::default();
        let hung = silences.ask(GroupId(2));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(answer(&silences, &[(10, RENEWED), (2_500, REFUSED)]).await, (vec![1], 30));
        drop(hung);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_alone_is_no_answer_yet() {
        let groups = [(10, REFUSED), (900, RENEWED), (2_500, RENEWED)];
        assert_eq!(answer(&Silences::default(), &groups).await, (vec![1, 2], 920));
    }
}
