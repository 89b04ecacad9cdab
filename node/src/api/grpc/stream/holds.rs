//! Tells a client of holds that end without its doing: forced, deleted, or with the session (promise P8).
//!
//! A hold is followed only once it has lasted a while, so that short ones cost nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use holdfast_locktable::{command::SessionEndReason, event::Removal, name::NameKind};
use holdfast_partitioner::MapEpoch;
use holdfast_proto::v1::{self, session_response::Body as Answer};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    endpoint::Endpoint,
    group::read::removal_text,
    watch::holds::{Hold, HoldNews, Listener},
};

/// How long a hold lasts before it is followed. Well below the second within which its end is told.
const QUIET: Duration = Duration::from_millis(500);
/// Pause before a hold is followed that could not be: its range is on its way as a rule, and there in a moment.
const RETRY: Duration = Duration::from_millis(200);
/// Most holds of one stream that are followed; the ends of more show only in keepalives.
const MAX_FOLLOWED: usize = 131_072;

/// What is known of one hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// The time from which on it is followed.
    at: Instant,
    /// The last map epoch under which it stood somewhere.
    epoch: MapEpoch,
}

/// The holds of one stream's sessions. Dropping it ends the interest in them.
pub(super) struct Holds {
    endpoint: Endpoint,
    listener: Listener,
    news: UnboundedReceiver<HoldNews>,
    known: BTreeMap<Hold, Known>,
    /// Holds that are not followed yet, about in the order of their time. Those that have ended since are still in it.
    young: VecDeque<(Instant, Hold)>,
    tasks: JoinSet<()>,
}

impl Holds {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let (listener, news) = unbounded_channel();
        let (known, young) = (BTreeMap::new(), VecDeque::new());
        Self { endpoint, listener, news, known, young, tasks: JoinSet::new() }
    }

    /// A hold began now, under this map epoch or a later one: it is followed once it has lasted for [`QUIET`].
    pub(super) fn began(&mut self, hold: Hold, epoch: MapEpoch) {
        let at = Instant::now() + QUIET;
        if self.learn(&hold, Known { at, epoch }) {
            self.young.push_back((at, hold));
        }
    }

    /// A hold goes on that stood somewhere under this map epoch: it is followed from now on.
    pub(super) fn resumed(&mut self, hold: Hold, epoch: MapEpoch) {
        let at = Instant::now();
        if self.learn(&hold, Known { at, epoch }) {
            self.young.push_front((at, hold));
        }
    }

    /// The session has ended the hold itself.
    pub(super) fn forget(&mut self, hold: &Hold) {
        self.known.remove(hold);
    }

    fn learn(&mut self, hold: &Hold, known: Known) -> bool {
        let new = self.known.len() < MAX_FOLLOWED && !self.known.contains_key(hold);
        if new {
            self.known.insert(hold.clone(), known);
        }
        new
    }

    /// Waits for a hold that ends, and follows those whose time has come meanwhile. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self) -> (Hold, Removal) {
        loop {
            let next = self.young.front().map(|(at, _)| *at);
            tokio::select! {
                biased;
                Some(news) = self.news.recv() => match news {
                    HoldNews::Ended { hold, reason } if self.known.remove(&hold).is_some() => return (hold, reason),
                    HoldNews::Ended { .. } => {}
                    HoldNews::LookAgain { hold, epoch } => {
                        if let Some(known) = self.known.remove(&hold) {
                            self.resumed(hold, known.epoch.max(epoch));
                        }
                    }
                },
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => self.follow_grown(),
            }
        }
    }

    fn follow_grown(&mut self) {
        let now = Instant::now();
        let mut grown = Vec::new();
        while let Some((at, hold)) = self.young.pop_front_if(|(at, _)| *at <= now) {
            // One that has ended, or was released and taken anew, is none of this entry's business.
            if let Some(known) = self.known.get(&hold).filter(|known| known.at == at) {
                grown.push((hold, known.epoch));
            }
        }
        if self.young.is_empty() {
            // After very many at once it would keep their room.
            self.young = VecDeque::new();
        }
        // Those that are over leave their results behind; they are swept with every new one.
        while self.tasks.try_join_next().is_some() {}
        if !grown.is_empty() {
            self.tasks.spawn(follow(self.endpoint.clone(), grown, self.listener.clone()));
        }
    }
}

async fn follow(endpoint: Endpoint, mut holds: Vec<(Hold, MapEpoch)>, listener: Listener) {
    loop {
        let mut again = Vec::new();
        for (hold, epoch) in holds {
            if let Err(error) = endpoint.follow_hold(&hold, epoch, &listener).await {
                tracing::debug!(name = ?hold.name, %error, "a hold is followed later");
                again.push((hold, epoch));
            }
        }
        if again.is_empty() {
            return;
        }
        sleep(RETRY).await;
        holds = again;
    }
}

/// The end of a hold in the words of the protocol.
pub(super) fn ended(hold: &Hold, reason: Removal) -> Answer {
    let what = removal_text(reason).to_owned();
    match reason {
        // These end the session everywhere; an expiry in one group need not.
        Removal::SessionEnded(SessionEndReason::Closed | SessionEndReason::Forced) => {
            let message = format!("session {} has ended ({what}); its locks are free", hold.session);
            Answer::SessionLost(v1::SessionLost { message })
        }
        Removal::SessionEnded(SessionEndReason::Expired)
        | Removal::Released
        | Removal::TimedOut
        | Removal::Cancelled
        | Removal::Abandoned
        | Removal::ForceReleased
        | Removal::Deleted => {
            let election = hold.name.kind() == NameKind::Election;
            let name = v1::Name { text: hold.name.text().to_owned(), election };
            Answer::HoldEnded(v1::HoldEnded { name: Some(name), token: hold.token.0, what })
        }
    }
}
