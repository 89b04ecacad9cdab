//! Ending an acquire by its name: a wait that is given up, and a refused try of which a copy may be under way.

use std::sync::Arc;

use holdfast_history::{End, Fact, SessionId as Id};
use holdfast_locktable::outcome::CancelOutcome;
use holdfast_partitioner::GroupId;

use super::{
    acquire::Acquire,
    ask::{self, Answer, Verb},
};
use crate::entropy::Dice;

const NS_PER_MS: u64 = 1_000_000;

impl Acquire<'_> {
    /// The try was refused while a copy of it may be under way: ends it by name, so that no copy is executed later (rule
    /// R11), also by a group that has never met the session.
    pub(super) async fn keep_out(&self, first_sent: u64, dice: &mut Dice) -> End {
        let ended = self.end_by_name(dice).await;
        let (lock, session) = (self.wish.name.text(), Id(self.session.id().get()));
        self.setting.journal.perhaps(lock, session, first_sent * NS_PER_MS);
        if ended.is_some() { End::Busy } else { End::Unknown }
    }

    /// Gives the wait up: only the answer to a cancel says that it is out of the queue.
    pub(super) async fn give_up(&self, call: u64, dice: &mut Dice) -> (End, Option<GroupId>) {
        let (client, session) = (self.who.client, Id(self.session.id().get()));
        let lock = self.wish.name.text().into();
        self.setting.journal.note(Fact::CancelSent { call, client, session, lock });
        match self.end_by_name(dice).await {
            Some(CancelOutcome::Cancelled | CancelOutcome::Granted { .. }) => (End::Cancelled, None),
            // It never came there, or is over in another way.
            Some(CancelOutcome::None) | None => (End::Unknown, None),
        }
    }

    /// Cancels the request until that is answered; `None` where it is refused.
    async fn end_by_name(&self, dice: &mut Dice) -> Option<CancelOutcome> {
        let (name, session, request) = (self.wish.name.clone(), self.session.id(), self.request_id());
        let verb: Verb<CancelOutcome> = Arc::new(move |endpoint| {
            let (name, request) = (name.clone(), request.clone());
            Box::pin(async move { endpoint.abandon(name, session, request).await })
        });
        loop {
            let member = ask::any(self.setting, dice);
            match ask::ask(self.setting, self.who.node, member, "cancel", verb.clone()).await {
                Answer::Done(outcome) => return Some(outcome),
                Answer::No(_) => return None,
                Answer::Unknown => ask::again(dice).await,
            }
        }
    }
}
