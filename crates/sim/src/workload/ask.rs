//! A client's way to a member: one request over the network, answered or lost. A connection delivers it once; whoever asks
//! twice knows.

use std::sync::Arc;

use futures::future::BoxFuture;
use holdfast_node::endpoint::{ApiError, Endpoint};
use rand::Rng;

use super::Setting;
use crate::{
    entropy::Dice,
    network::{
        Node, Seat,
        exchange::{Handler, Lost, Question},
    },
};

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The member answered.
    Done(T),
    /// The member said no.
    No(ApiError),
    /// There is no answer, or one that says nothing; the request may have been carried out.
    Unknown,
}

/// What a member does for a request.
pub type Verb<T> = Arc<dyn Fn(Endpoint) -> BoxFuture<'static, Result<T, ApiError>> + Send + Sync>;

/// One request to one member.
pub async fn ask<T: Send + 'static>(
    setting: &Setting,
    from: Node,
    to: Node,
    kind: &'static str,
    verb: Verb<T>,
) -> Answer<T> {
    setting.asks();
    let handler: Handler<Result<T, ApiError>> = Arc::new(move |seat: &Seat| verb(seat.endpoint.clone()));
    match setting.network.exchange(Question { from, to, kind, handler, may_double: false }).await {
        Ok(Ok(answer)) => Answer::Done(answer),
        Ok(Err(error)) if error.code.retryable() => Answer::Unknown,
        Ok(Err(error)) => Answer::No(error),
        Err(Lost::Refused | Lost::Broken) => Answer::Unknown,
    }
}

/// Any member.
pub fn any(setting: &Setting, dice: &mut Dice) -> Node {
    let at = dice.random_range(0..setting.members.len());
    setting.members.get(at).copied().unwrap_or_default()
}

/// A pause before a request is repeated.
pub async fn again(dice: &mut Dice) {
    super::pause(dice.random_range(20..200)).await;
}
