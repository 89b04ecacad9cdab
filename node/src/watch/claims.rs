//! Calls that wait until what a session has of a claim changes: plain state, one look-up per change.
//!
//! Knows that something changed, not what: who is told looks at the table.

use std::collections::BTreeMap;

use holdfast_locktable::{ids::SessionId, name::Name};
use holdfast_partitioner::Range;
use tokio::sync::oneshot;

/// Most calls that wait for one member of one claim. A further one sends the oldest back to its caller, unchanged as the
/// assignment is: it may ask again.
const MOST_CALLS: usize = 16;

/// The waiting calls of one group.
#[derive(Debug, Default)]
pub struct Looks {
    by_member: BTreeMap<(Name, SessionId), Vec<oneshot::Sender<()>>>,
}

impl Looks {
    /// A call waits.
    pub fn add(&mut self, name: Name, session: SessionId, tell: oneshot::Sender<()>) {
        let calls = self.by_member.entry((name, session)).or_default();
        calls.retain(|call| !call.is_closed());
        if calls.len() >= MOST_CALLS {
            // A call that went away need not hear.
            let _ = calls.remove(0).send(());
        }
        calls.push(tell);
    }

    /// What a session has of a claim has changed.
    pub fn changed(&mut self, name: &Name, session: SessionId) {
        for call in self.by_member.remove(&(name.clone(), session)).into_iter().flatten() {
            // As above.
            let _ = call.send(());
        }
    }

    /// A range has another owner, which is asked from now on.
    pub fn left(&mut self, range: &Range) {
        let gone = self.by_member.extract_if(.., |(name, _), _| range.contains(name.internal()));
        for call in gone.flat_map(|(_, calls)| calls) {
            // As above.
            let _ = call.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_partitioner::Part;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn add(looks: &mut Looks, name: &str, session: u64) -> oneshot::Receiver<()> {
        let (tell, hears) = oneshot::channel();
        looks.add(Name::claim(name).unwrap(), SessionId::new(session).unwrap(), tell);
        hears
    }

    #[test]
    fn a_change_is_told_to_those_who_wait_for_it() {
        let mut looks = Looks::default();
        let mut first = add(&mut looks, "a", 1);
        let mut second = add(&mut looks, "a", 1);
        let mut others = [add(&mut looks, "a", 2), add(&mut looks, "b", 1)];
        looks.changed(&Name::claim("a").unwrap(), SessionId::new(1).unwrap());
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(()), Ok(())));
        assert!(others.iter_mut().all(|other| other.try_recv() == Err(TryRecvError::Empty)));
        looks.left(&Range::new("b", [], Part::All));
        assert_eq!(others[1].try_recv(), Ok(()));
        looks = Looks::default();
        assert_eq!(others[0].try_recv(), Err(TryRecvError::Closed), "it leads no more");
        drop(looks);
    }

    #[test]
    fn calls_that_are_gone_or_too_many_do_not_stay() {
        let mut looks = Looks::default();
        for _ in 0..100 {
            drop(add(&mut looks, "a", 1));
        }
        let mut calls: Vec<_> = (0..=MOST_CALLS).map(|_| add(&mut looks, "a", 1)).collect();
        assert_eq!(looks.by_member.values().map(Vec::len).sum::<usize>(), MOST_CALLS);
        assert_eq!(calls[0].try_recv(), Ok(()), "the oldest goes");
        assert_eq!(calls[1].try_recv(), Err(TryRecvError::Empty));
    }
}
