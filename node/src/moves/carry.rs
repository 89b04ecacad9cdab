//! The steps of one move, each at the leader of the group that it concerns.
//!
//! Up to the decision anything may fail and the range stays where it is. After it, nothing may be given up: the steps are
//! repeated until they are done.

use std::{collections::BTreeMap, time::Duration};

use holdfast_locktable::{
    codec::Digest,
    command::{Activate, DropRange, Import, LearnedEnd},
    ids::{MoveNumber, SessionEpoch, SessionId},
    moved::{Cursor, Moved as Piece},
    mutant,
};
use holdfast_partitioner::{GroupId, MapEpoch, PartitionMap, Range, change::Moved};
use tokio::time::Instant;

use super::{LONGEST_SEAL, Mover, READY, Tried};
use crate::{
    group::{
        call::{GroupAnswer, GroupCall},
        moves::{MoveAnswer, MoveCall},
        proposer::GroupError,
    },
    meta::MetaCommand,
};

/// Size of one part of an export in bytes: its entry holds up the log of the destination for a few milliseconds.
const PART_BYTES: u32 = 128 << 10;
/// Most sessions in one entry of a home.
const ATTACH_AT_ONCE: usize = 5_000;

/// Sessions that go along, with their epochs.
type Goers = Vec<(SessionId, SessionEpoch)>;

impl Mover {
    /// Carries a move up to its decision, or says why it must be given up.
    pub(super) async fn carry(
        &self,
        number: MoveNumber,
        moved: &Moved,
        attempt: u64,
    ) -> Result<Tried, GroupError> {
        // Rule R19: nothing is sealed for a move that nobody could decide, or nobody could take in.
        if !mutant!("two-drivers") {
            self.meta.confirm().await?;
        }
        let ready = async {
            self.step(moved.to, MoveCall::Ready { move_number: number }).await?;
            self.step(moved.from, MoveCall::Ready { move_number: number }).await
        };
        match within(READY, "the groups were not ready", ready).await {
            Ok(_) => {}
            Err(why) => return Ok(Tried::GiveUp(why)),
        }
        let began = Instant::now();
        let digest =
            match within(LONGEST_SEAL, "the range was sealed", self.copy(number, moved, attempt)).await {
                Ok(digest) => digest,
                Err(why) => return Ok(Tried::GiveUp(why)),
            };
        if mutant!("activated-without-decision") {
            let epoch = self.map()?.epoch();
            self.hand_over(number, moved, digest, epoch).await?;
        }
        self.meta.ask(MetaCommand::Decide { move_number: number, digest }).await?;
        let took_ms = began.elapsed().as_millis() as u64;
        tracing::info!(number = number.0, from = %moved.from, to = %moved.to, took_ms, "a move is decided");
        Ok(Tried::Decided)
    }

    /// Seals the range and brings what is in it to the destination, where it is kept apart. Answers its fingerprint.
    async fn copy(&self, number: MoveNumber, moved: &Moved, attempt: u64) -> Result<Digest, GroupError> {
        let range = &moved.range;
        self.step(moved.from, MoveCall::Seal { move_number: number, range: range.clone() }).await?;
        let (mut after, mut goers) = (Cursor::Start, Goers::new());
        let sealed = Instant::now();
        for part in 0.. {
            let began = Instant::now();
            let export = MoveCall::Export { move_number: number, after, max_bytes: PART_BYTES };
            let MoveAnswer::Part(export) = self.step(moved.from, export).await? else {
                return Err(surprise("an export"));
            };
            goers.extend(export.moved.iter().filter_map(goer));
            after = export.after;
            let last = export.last;
            let complete = self.import(number, moved, attempt, part, export.moved, last).await?;
            // An import that an earlier try has completed says so at once; its sessions are all of them all the same.
            if last.is_some() {
                let digest = complete.ok_or_else(|| surprise("an import"))?;
                let attached = Box::pin(self.attach(&goers, moved.to));
                tokio::try_join!(attached, Box::pin(self.tell_owed(moved.to)))?;
                return Ok(digest);
            }
            // What every group of these members has to share is left to the others for as long, where there is time.
            if sealed.elapsed() < LONGEST_SEAL / 2 {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
        Err(surprise("an export"))
    }

    async fn import(
        &self,
        move_number: MoveNumber,
        moved: &Moved,
        attempt: u64,
        part: u32,
        pieces: Vec<Piece>,
        last: Option<holdfast_locktable::ids::Revision>,
    ) -> Result<Option<Digest>, GroupError> {
        let range: Range = moved.range.clone();
        let import = Import { move_number, attempt, range, part, moved: pieces, last };
        match self.step(moved.to, MoveCall::Import(import)).await? {
            MoveAnswer::Imported { complete } => Ok(complete),
            _ => Err(surprise("an import")),
        }
    }

    /// Rule R4: the homes of all sessions that come along know of the destination before it owns the range, and it knows which
    /// of them have ended. Asked after the export, so that no end falls in between.
    async fn attach(&self, goers: &Goers, to: GroupId) -> Result<(), GroupError> {
        let map = self.map()?;
        let mut by_home: BTreeMap<GroupId, Goers> = BTreeMap::new();
        for goer in goers {
            by_home.entry(map.home_of(goer.0.get())).or_default().push(*goer);
        }
        let batches = by_home
            .iter()
            .flat_map(|(home, goers)| goers.chunks(ATTACH_AT_ONCE).map(|batch| (*home, batch.to_vec())));
        let asked = batches.map(|(home, sessions)| async move {
            match self.step(home, MoveCall::Attach { sessions, group: to }).await? {
                MoveAnswer::Attached { lost } => Ok(lost),
                _ => Err(surprise("an attachment")),
            }
        });
        let lost: Vec<LearnedEnd> =
            futures::future::try_join_all(asked).await?.into_iter().flatten().collect();
        if lost.is_empty() {
            return Ok(());
        }
        self.router.call(to, GroupCall::LearnEnds(lost)).await.map(drop)
    }

    /// Rule R11: a session that had ended before the export has left nothing there that keeps late copies of its requests from being
    /// executed, and the destination may know it and not its end. So it is told now of every end that it has not heard of yet,
    /// whichever home it is from. Sessions that end later have left what they asked for in the export.
    async fn tell_owed(&self, to: GroupId) -> Result<(), GroupError> {
        let homes = self.router.begun_groups().into_iter().filter(|home| *home != to);
        let asked = homes.map(|home| async move {
            match self.step(home, MoveCall::Owed { group: to }).await? {
                MoveAnswer::Owed(ends) => Ok(ends),
                _ => Err(surprise("an account of ends")),
            }
        });
        let owed = futures::future::try_join_all(asked).await?.concat();
        for ends in owed.chunks(ATTACH_AT_ONCE) {
            self.router.call(to, GroupCall::LearnEnds(ends.to_vec())).await?;
        }
        Ok(())
    }

    /// After the decision: the destination owns the range, the source lets go of it.
    pub(super) async fn hand_over(
        &self,
        move_number: MoveNumber,
        moved: &Moved,
        digest: Digest,
        map_epoch: MapEpoch,
    ) -> Result<(), GroupError> {
        let map = self.map()?;
        let ranges = map.ranges_of(moved.to);
        let activate = Activate { move_number, digest, map_epoch, ranges };
        self.step(moved.to, MoveCall::Activate(activate)).await?;
        let dropped = DropRange { move_number, map_epoch, ranges: map.ranges_of(moved.from) };
        self.step(moved.from, MoveCall::Drop(dropped)).await.map(drop)
    }

    /// After a move was given up: the source goes on, the destination forgets.
    pub(super) async fn take_back(&self, move_number: MoveNumber, moved: &Moved) -> Result<(), GroupError> {
        let unsealed = self.step(moved.from, MoveCall::Unseal { move_number });
        let discarded = self.step(moved.to, MoveCall::Discard { move_number });
        let (unsealed, discarded) = tokio::join!(unsealed, discarded);
        unsealed.and(discarded).map(drop)
    }

    async fn step(&self, group: GroupId, call: MoveCall) -> Result<MoveAnswer, GroupError> {
        match self.router.call(group, GroupCall::Move(call)).await? {
            GroupAnswer::Move(answer) => Ok(answer),
            other => Err(surprise(other.kind())),
        }
    }

    fn map(&self) -> Result<PartitionMap, GroupError> {
        self.meta.map().ok_or(GroupError::NotLeader { leader: None })
    }
}

/// Something that has to be done within a time, or not at all.
async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, GroupError>>,
) -> Result<T, String> {
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("{what} for {} ms", limit.as_millis())),
    }
}

fn goer(piece: &Piece) -> Option<(SessionId, SessionEpoch)> {
    match piece {
        Piece::Session(moved) => Some((moved.session, moved.epoch)),
        Piece::Key(_) | Piece::Claim(_) | Piece::Member(_) => None,
    }
}

fn surprise(what: &str) -> GroupError {
    GroupError::Fatal(format!("a step of a move was answered with something else: {what}"))
}
