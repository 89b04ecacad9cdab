//! Makes this member known to the others: a new disk asks whether it may take part before it answers any vote, every disk is
//! noted on the roster, and a member that was taken off it hears so.
//!
//! A disk that was emptied under a member has forgotten its votes and what it acknowledged. It takes part only once the
//! cluster has welcomed it, or a majority of the members is as new as it is: then a cluster is being founded. Members
//! that are not new are a majority without it, or there is nobody who could tell. Knows no group.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::Notify;

use super::{carried::Fatal, roster_file};
use crate::{
    config::{MemberConfig, MemberEntry},
    endpoint::router::{Greeting, MemberAnswer, MemberCall, Router},
    log::disk_id::DiskIdentity,
    meta::group::MetaGroup,
    peer::PeerService,
    raft::types::MemberId,
};

/// Pause between two rounds of questions while this member is not known.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Pause between two looks whether this member is still on the roster.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Rounds of questions without an answer that is enough, until that is told again.
const TELL_AGAIN: u32 = 100;
/// How long a member may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// What is needed to be known.
pub(super) struct Acquaintance {
    pub(super) config: Arc<MemberConfig>,
    /// Where this member can be reached.
    pub(super) at: MemberEntry,
    pub(super) router: Router,
    pub(super) service: PeerService,
    pub(super) folder: PathBuf,
    pub(super) identity: DiskIdentity,
    pub(super) fatal: Fatal,
}

impl Acquaintance {
    /// Runs until the member stops, or may not go on.
    pub(super) async fn run(mut self) {
        let mut answered = BTreeMap::new();
        let (mut known, mut rounds) = (false, 0_u32);
        loop {
            let greetings = self.ask_all().await;
            let refused = greetings.iter().find_map(|(_, greeting)| match greeting {
                Greeting::Refused { why } => Some(why.clone()),
                Greeting::Welcome(_) | Greeting::Unknown | Greeting::Fresh => None,
            });
            if let Some(why) = refused {
                self.fatal.send_replace(Some(why));
                return;
            }
            let welcome = greetings.iter().find_map(|(_, greeting)| match greeting {
                Greeting::Welcome(members) => Some(members.clone()),
                Greeting::Unknown | Greeting::Fresh | Greeting::Refused { .. } => None,
            });
            answered.extend(greetings.iter().map(|(member, said)| (*member, *said == Greeting::Fresh)));
            if !self.identity.admitted && self.may_take_part(&answered, welcome.as_deref()) {
                self.take_part(welcome.clone());
            }
            if greetings.is_empty() {
                self.look_elsewhere(rounds.is_multiple_of(2));
            }
            rounds = rounds.wrapping_add(1);
            if !self.identity.admitted && rounds.is_multiple_of(TELL_AGAIN) {
                tracing::warn!(
                    disk = %self.identity.id,
                    answered = ?answered.keys().collect::<Vec<_>>(),
                    "this member's disk is new, and too few others answer to tell whether it may take part: start \
                     them, and see that their addresses in the configuration are right"
                );
            }
            if welcome.is_some() && !known {
                known = true;
                tracing::info!(disk = %self.identity.id, "the cluster knows this member and its disk");
            }
            tokio::time::sleep(if welcome.is_some() { LOOK_AGAIN } else { ASK_AGAIN }).await;
        }
    }

    /// All others are asked at once. Where there is no other, this member asks itself.
    async fn ask_all(&self) -> Vec<(MemberId, Greeting)> {
        let mut others = self.router.peers();
        if others.is_empty() {
            others.push(self.config.member);
        }
        let call = &MemberCall::Hello { at: self.at.clone(), disk: self.identity.id };
        let asked = others.into_iter().map(|member| async move { (member, self.ask(member, call).await) });
        let answers = futures::future::join_all(asked).await;
        answers.into_iter().filter_map(|(member, answer)| Some((member, answer?))).collect()
    }

    async fn ask(&self, member: MemberId, call: &MemberCall) -> Option<Greeting> {
        if member == self.config.member {
            return Some(self.router.greet(self.at.clone(), self.identity.id).await);
        }
        match tokio::time::timeout(ANSWER, self.router.ask(member, call)).await {
            Ok(Ok(MemberAnswer::Greeting(greeting))) => Some(greeting),
            Ok(_) | Err(_) => None,
        }
    }

    /// Where nobody answers all may have moved at once: then they are where the configuration says, and no roster knows it yet.
    fn look_elsewhere(&self, as_configured: bool) {
        if as_configured {
            self.router.try_at(&self.config.members);
        } else {
            self.router.try_at(&self.router.members());
        }
    }

    fn may_take_part(&self, answered: &BTreeMap<MemberId, bool>, welcome: Option<&[MemberEntry]>) -> bool {
        let founders = &self.config.members;
        let others = founders.iter().filter(|entry| entry.id != self.config.member);
        let new_others = others.filter(|entry| answered.get(&entry.id) == Some(&true)).count();
        welcome.is_some() || (!self.config.join && is_founded(founders.len(), new_others))
    }

    fn take_part(&mut self, welcome: Option<Vec<MemberEntry>>) {
        match self.identity.admit(&self.folder) {
            Ok(admitted) => self.identity = admitted,
            Err(error) => {
                self.fatal.send_replace(Some(format!("the data folder cannot be written: {error}")));
                return;
            }
        }
        if let Some(members) = welcome.filter(|_| self.config.join) {
            roster_file::write(&self.folder, &members);
            self.router.learn(members);
        }
        tracing::info!(disk = %self.identity.id, "this member takes part from now on");
        self.service.admit(true);
    }
}

/// Keeps the members that this one knows as the roster has them.
pub(super) async fn follow_members(meta: MetaGroup, router: Router, folder: PathBuf, news: Arc<Notify>) {
    loop {
        if let Some(members) = meta.entries()
            // A member that catches up has read older rosters first, and knows more from its welcome.
            && members.iter().any(|entry| entry.id == router.member())
            && members != **router.members()
        {
            roster_file::write(&folder, &members);
            router.learn(members);
        }
        news.notified().await;
    }
}

/// Whether a majority of the members that a cluster begins with is new: this one, and so many others.
const fn is_founded(founders: usize, new_others: usize) -> bool {
    new_others + 1 > founders / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_of_new_disks_founds_a_cluster() {
        assert!(is_founded(1, 0));
        assert!(!is_founded(3, 0) && is_founded(3, 1));
        assert!(!is_founded(4, 1) && is_founded(4, 2));
        assert!(!is_founded(5, 1) && is_founded(5, 2));
    }
}
