//! The verbs of elections that locks do not have: proclaim, leader, observe.

use async_stream::try_stream;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    ids::{Revision, SessionId, Token},
    name::Name,
    view::QueueView,
};

use super::{
    Answer, ApiError, Endpoint, ErrorCode, about_name,
    types::{LeaderView, WatchRequest},
};
use crate::group::call::{GroupAnswer, GroupCall};

impl Endpoint {
    /// The leader of an election replaces its value. `NotHolder` when it does not lead.
    pub async fn proclaim(&self, name: Name, session: SessionId, token: Token, value: Bytes) -> Answer<()> {
        let call = GroupCall::Proclaim { name: name.clone(), session, token, value };
        let (group, answer) = self.call_owner(&name, call).await?;
        let about = about_name(group, &name, Some(session));
        match answer {
            Ok(GroupAnswer::Proclaimed(_)) => Ok(()),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

    /// Who leads an election; `NotFound` while nobody does.
    pub async fn leader(&self, name: &Name) -> Answer<LeaderView> {
        let detail = self.lock(name).await?;
        let (candidates, name) = (detail.lock.waiters, detail.lock.name);
        match detail.lock.holder {
            Some(holder) => Ok(LeaderView {
                name,
                session: holder.session,
                token: holder.token,
                value: holder.value,
                leading_ms: holder.held_ms,
                candidates,
            }),
            None => Err(ApiError::new(
                ErrorCode::NotFound,
                format!("nobody leads the election {name:?} right now"),
            )),
        }
    }

    async fn leader_now(&self, name: &Name) -> Answer<Option<LeaderView>> {
        match self.leader(name).await {
            Ok(leader) => Ok(Some(leader)),
            Err(error) if error.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The leader of an election now, and then each change of leader or value; `None` while nobody leads. Values between
    /// two looks may be skipped; a leader that has been succeeded is never shown again.
    pub async fn observe(&self, name: Name) -> Answer<BoxStream<'static, Answer<Option<LeaderView>>>> {
        let (router, map, endpoint) = (self.parts.router.clone(), self.parts.map.clone(), self.clone());
        let request =
            WatchRequest { prefix: name.text().to_owned(), elections: true, exact: true, from: None };
        let mut changes = self.watch(request).await?;
        let first = self.leader_now(&name).await?;
        let clock = self.parts.clock.clone();
        Ok(try_stream! {
            let mut shown = first.as_ref().map(|leader| (leader.token, leader.value.clone()));
            let mut newest = shown.as_ref().map_or(Revision(0), |(token, _)| *token);
            yield first;
            while let Some(change) = changes.next().await {
                let group = change?.group;
                // The change may be older than a move: what counts is what stands where the name is now.
                let owner = map.borrow().as_ref().map_or(group, |map| map.locate(name.internal()));
                let leader = match router.current_group(owner) {
                    Some(replica) => {
                        let queue = replica.locks(|table| table.queue(&name));
                        queue.and_then(|queue| leader_view(queue, clock.wall_ms()))
                    }
                    None => endpoint.leader_now(&name).await?,
                };
                let now = leader.as_ref().map(|leader| (leader.token, leader.value.clone()));
                // This replica may be behind the leader that answered first.
                let older = now.as_ref().is_some_and(|(token, _)| *token < newest);
                if older || now == shown {
                    continue;
                }
                newest = now.as_ref().map_or(newest, |(token, _)| *token);
                shown = now;
                yield leader;
            }
        }
        .boxed())
    }
}

fn leader_view(queue: QueueView, now_ms: u64) -> Option<LeaderView> {
    let candidates = queue.entries.len().saturating_sub(1) as u32;
    let name = queue.name.text().to_owned();
    let leader = queue.entries.into_iter().next()?;
    Some(LeaderView {
        name,
        session: leader.session,
        token: leader.revision,
        value: leader.value,
        leading_ms: now_ms.saturating_sub(leader.granted_at_ms.unwrap_or(leader.queued_at_ms)),
        candidates,
    })
}
