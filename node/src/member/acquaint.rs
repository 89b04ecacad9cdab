//! Makes this member known to the others: a new disk asks whether it may take part before it answers any vote, every disk is
//! noted on the roster, and a member that was taken off it hears so.
//!
//! A disk that was emptied under a member has forgotten its votes. It takes part only once a majority of the members that it was
//! told of has nothing against it, or the cluster has welcomed it. Knows no group.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

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
        let mut answered = BTreeSet::from([self.config.member]);
        let mut known = false;
        loop {
            let greetings = self.ask_all().await;
            let refused = greetings.iter().find_map(|(_, greeting)| match greeting {
                Greeting::Refused { why } => Some(why.clone()),
                Greeting::Welcome(_) | Greeting::Unknown => None,
            });
            if let Some(why) = refused {
                self.fatal.send_replace(Some(why));
                return;
            }
            let welcome = greetings.iter().find_map(|(_, greeting)| match greeting {
                Greeting::Welcome(members) => Some(members.clone()),
                Greeting::Unknown | Greeting::Refused { .. } => None,
            });
            answered.extend(greetings.iter().map(|(member, _)| *member));
            if !self.identity.admitted && self.may_take_part(&answered, welcome.as_deref()) {
                self.take_part(welcome.clone());
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

    fn may_take_part(&self, answered: &BTreeSet<MemberId>, welcome: Option<&[MemberEntry]>) -> bool {
        let founders = &self.config.members;
        let heard = founders.iter().filter(|entry| answered.contains(&entry.id)).count();
        welcome.is_some() || (!self.config.join && heard > founders.len() / 2)
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
