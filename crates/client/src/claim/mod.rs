//! Claims: partitions that sessions share. What a member has, and how it hears of changes.
//!
//! - [`books`]: what this member has, pure. [`follow`]: the task that asks and gives back. [`events`]: changes as a stream.
//! - [`error`]: how joining fails, and how a claim ends. [`slots`]: one part per session and claim.
//!
//! Deadlines are those of the session: a claim counts as one hold in its group (see `session::ledger`), so that everything of
//! it is lost together, before the server could give any of it to others.

mod books;
mod error;
mod events;
mod follow;
mod slots;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::watch;

use self::books::Books;
pub(crate) use self::slots::Slots;
pub use self::{
    books::Partition,
    error::{ClaimEnd, ClaimError},
    events::{ClaimEvent, ClaimEvents},
};
use crate::{
    session::{Session, Shared},
    state::HoldState,
};

/// A claim to be joined by one session, made by [`Session::claim`].
///
/// ```no_run
/// # async fn example(session: holdfast_client::Session) -> Result<(), Box<dyn std::error::Error>> {
/// use futures::StreamExt;
/// use holdfast_client::ClaimEvent;
///
/// let claim = session.claim("ingest", 64).weight(2).join().await?;
/// let mut events = claim.events();
/// while let Some(event) = events.next().await {
///     match event {
///         ClaimEvent::Assigned(partition) => start(partition.number, partition.token.get()),
///         ClaimEvent::Revoked(partition) => {
///             stop(partition.number).await;
///             claim.give_back([partition.number]).await?;
///         }
///         ClaimEvent::Ended(why) => eprintln!("stop everything: {why}"),
///     }
/// }
/// # Ok(())
/// # }
/// # fn start(_: u32, _: u64) {}
/// # async fn stop(_: u32) {}
/// ```
#[derive(Clone, Debug)]
pub struct JoinClaim {
    session: Session,
    name: Arc<str>,
    partitions: u32,
    weight: u32,
    metadata: BTreeMap<String, String>,
}

impl JoinClaim {
    pub(crate) const fn new(session: Session, name: Arc<str>, partitions: u32) -> Self {
        Self { session, name, partitions, weight: 1, metadata: BTreeMap::new() }
    }

    /// The member's share against the others', 1 to 1,000; 1 by default.
    #[must_use]
    pub const fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Adds to what operators see with the member.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Takes part. Partitions that others are to give up come later, when they have.
    ///
    /// # Errors
    /// Every way to end without taking part, told apart.
    pub async fn join(self) -> Result<Claim, ClaimError> {
        follow::join(self).await
    }
}

/// A session's part in a claim. Cheap to clone; clones are the same part.
///
/// [`Claim::leave`] ends it; so does dropping the last handle, in the background.
#[derive(Clone, Debug)]
pub struct Claim {
    inner: Arc<Inner>,
}

/// What handles and the task share.
#[derive(Debug)]
struct Inner {
    session: Session,
    name: Arc<str>,
    /// Its number in the session's books of deadlines.
    hold: u64,
    group: u32,
    books: watch::Sender<Books>,
}

impl Inner {
    fn shared(&self) -> &Arc<Shared> {
        self.session.shared()
    }

    /// How safe it is now, by the local clock.
    fn state(&self) -> HoldState {
        match self.books.borrow().end() {
            Some(ClaimEnd::Left) => HoldState::Released,
            Some(ClaimEnd::Removed | ClaimEnd::Lost(_)) => HoldState::Lost,
            None => self.shared().core().ledger().hold_state(self.hold, self.shared().now()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.books.send_modify(Books::leave);
    }
}

impl Claim {
    /// The claim's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How many partitions the claim has.
    pub fn size(&self) -> u32 {
        self.inner.books.borrow().size()
    }

    /// The group that owns the claim.
    pub fn group(&self) -> u32 {
        self.inner.group
    }

    /// What this member has now, by number: nothing once it is over. What is being revoked is among it until it was given
    /// back.
    pub fn partitions(&self) -> Vec<Partition> {
        if self.state().ended() { Vec::new() } else { self.inner.books.borrow().partitions() }
    }

    /// How safe all of it is now, by the local clock: read afresh on each call, also after the process was suspended.
    pub fn state(&self) -> HoldState {
        self.inner.state()
    }

    /// How long all of it is still this session's if nothing more is heard from the server.
    pub fn remaining(&self) -> Duration {
        let shared = self.inner.shared();
        shared.core().ledger().hold_remaining(self.inner.hold, shared.now())
    }

    /// What changes, beginning with what there is now. Each stream tells everything by itself.
    pub fn events(&self) -> ClaimEvents {
        ClaimEvents::new(self.inner.books.subscribe())
    }

    /// Says that this member uses these partitions no more, which it was to give back. They are not its any more from the
    /// call on; others may have them once the service knows. Numbers that are not being revoked are passed over. Dropping the
    /// future changes nothing: the service is told all the same.
    ///
    /// # Errors
    /// The claim is over.
    pub async fn give_back(&self, partitions: impl IntoIterator<Item = u32>) -> Result<(), ClaimEnd> {
        let mut given = Vec::new();
        self.inner.books.send_modify(|books| given = books.give_back(partitions));
        let mut books = self.inner.books.subscribe();
        let told = books.wait_for(|books| books.end().is_some() || !books.is_giving(&given)).await;
        match told.map(|books| books.end().cloned()) {
            Ok(None) => Ok(()),
            Ok(Some(end)) => Err(end),
            // The sender lives as long as this handle does.
            Err(_) => Err(ClaimEnd::Left),
        }
    }

    /// Takes part no more. Stop using its partitions first: they are free at once. Waits until the service knows, or the
    /// session is over.
    pub async fn leave(&self) {
        self.inner.books.send_modify(Books::leave);
        let mut books = self.inner.books.subscribe();
        // The sender lives as long as this handle does.
        let _ = books.wait_for(Books::is_over).await;
    }
}
