//! The verbs about who the members are.

use holdfast_partitioner::GroupId;

use super::{
    Answer, ApiError, Endpoint,
    sessions::check_reason,
    types::cluster::{MemberChangeView, MemberChangesView},
};
use crate::{
    config::MemberEntry,
    meta::{
        group::{MetaAnswer, MetaCall},
        roster::{MemberChange, MemberChangeKind, PastMemberChange},
        roster_asks::{RosterAsk, RosterNow, entry, record},
    },
    raft::types::MemberId,
};

/// A change of the members, as somebody asks for it: one more, one less, or both at once for one in the place of another.
#[derive(Clone, Debug, Default)]
pub struct MembersWanted {
    /// The new member; id 0 for the next free one. In the place of another it is reached as that one was where it says nothing.
    pub add: Option<MemberEntry>,
    /// The member that goes.
    pub remove: Option<MemberId>,
    /// A number of whoever asks, so that a repeat begins nothing again.
    pub request: Option<u64>,
    /// Whether it is only to be tried.
    pub dry_run: bool,
}

impl Endpoint {
    /// Begins a change of the members, which goes on by itself, or says only what it would be; recorded in the audit log. There is
    /// one at a time, and it is refused where groups could lose their majority by it.
    pub async fn change_members(
        &self,
        wanted: MembersWanted,
        reason: String,
        actor: String,
    ) -> Answer<MemberChangeView> {
        check_reason(&reason)?;
        let kind = self.member_change(&wanted)?;
        let (target, dry_run) = (kind.words(), wanted.dry_run);
        let request = wanted.request.unwrap_or_else(rand::random);
        let change = || async {
            let reachable = self.parts.router.reachable().await;
            let (actor, reason) = (actor.clone(), reason.clone());
            let ask = RosterAsk::Change { kind, actor, reason, request, reachable, dry_run };
            match self.meta_call(MetaCall::Roster(ask)).await? {
                MetaAnswer::MemberChange(change) => Ok(*change),
                _ => Err(ApiError::no_leader(GroupId::META)),
            }
        };
        let change = match dry_run {
            true => change().await?,
            false => self.audited("change_members", &target, &reason, &actor, change).await?,
        };
        Ok(view(&change))
    }

    fn member_change(&self, wanted: &MembersWanted) -> Answer<MemberChangeKind> {
        let mut add = wanted.add.clone();
        if let (Some(new), Some(old)) = (&mut add, wanted.remove) {
            let members = self.parts.router.members();
            let old = members.iter().find(|entry| entry.id == old);
            for (mine, theirs) in [
                (&mut new.http, old.map(|old| &old.http)),
                (&mut new.grpc, old.map(|old| &old.grpc)),
                (&mut new.peer, old.map(|old| &old.peer)),
            ] {
                if let Some(theirs) = theirs.filter(|_| mine.is_empty()) {
                    mine.clone_from(theirs);
                }
            }
        }
        if let Some(Err(why)) = add.as_ref().map(MemberEntry::check) {
            return Err(ApiError::invalid(why));
        }
        match (add, wanted.remove) {
            (Some(new), None) => Ok(MemberChangeKind::Add(record(&new))),
            (None, Some(member)) => Ok(MemberChangeKind::Remove { member }),
            (Some(new), Some(old)) => Ok(MemberChangeKind::Replace { old, new: record(&new) }),
            (None, None) => Err(ApiError::invalid("say which member to add, to remove, or both")),
        }
    }

    /// Stops a change of the members: a new member that has not come stays out, one that was to go stays. Recorded in the audit log.
    pub async fn cancel_member_change(&self, change: u64, reason: String, actor: String) -> Answer<()> {
        check_reason(&reason)?;
        let target = format!("member change {change}");
        let ask = RosterAsk::Cancel { change, reason: reason.clone() };
        let cancel = || async { self.meta_call(MetaCall::Roster(ask)).await.map(drop) };
        self.audited("cancel_member_change", &target, &reason, &actor, cancel).await
    }

    /// The changes of the members, under way and over.
    pub async fn member_changes(&self) -> Answer<MemberChangesView> {
        match self.meta_call(MetaCall::Roster(RosterAsk::Show)).await? {
            MetaAnswer::Roster(now) => {
                let RosterNow { under_way, doing, past } = *now;
                let under_way = under_way.map(|change| MemberChangeView { doing, ..view(&change) });
                Ok(MemberChangesView { under_way, past: past.iter().map(past_view).collect() })
            }
            _ => Err(ApiError::no_leader(GroupId::META)),
        }
    }
}

fn view(change: &MemberChange) -> MemberChangeView {
    let kind = &change.asked.kind;
    let comes = match kind {
        MemberChangeKind::Add(new) | MemberChangeKind::Replace { new, .. } => Some(entry(new)),
        MemberChangeKind::Remove { .. } => None,
    };
    MemberChangeView {
        number: change.number,
        what: kind.words(),
        comes,
        goes: kind.goes(),
        actor: change.asked.actor.clone(),
        reason: change.asked.reason.clone(),
        since_ms: change.asked.at_ms,
        doing: None,
        ended_ms: None,
        stopped: None,
    }
}

fn past_view(past: &PastMemberChange) -> MemberChangeView {
    MemberChangeView { ended_ms: Some(past.at_ms), stopped: past.stopped.clone(), ..view(&past.change) }
}
