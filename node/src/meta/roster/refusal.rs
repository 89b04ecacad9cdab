//! Why a command for the roster was refused, in words for people.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{MAX_MEMBERS, MemberChange};
use crate::{log::disk_id::DiskId, raft::types::MemberId};

/// A command that was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RosterRefusal {
    /// There is no roster, or no placement, yet.
    #[error("the cluster has no roster of its members yet; try again in a moment")]
    None,
    /// There is one change at a time.
    #[error(
        "member change {} is under way: {}, asked for by {} since {}; wait for it (`holdfast members changes`), or stop it \
         (`holdfast members cancel {}`)", .0.number, .0.asked.kind.words(), .0.asked.actor, shown(.0.asked.at_ms), .0.number
    )]
    UnderWay(Box<MemberChange>),
    /// The change is over, or never was.
    #[error("member change {change} is not under way")]
    NoSuchChange {
        /// The number asked for.
        change: u64,
    },
    /// The change needs more.
    #[error("member change {change} is not done yet")]
    NotDone {
        /// Its number.
        change: u64,
    },
    /// A change that is as good as done.
    #[error(
        "member {member} has come already and stays; take it away with `holdfast members remove {member}`"
    )]
    HasCome {
        /// The new member.
        member: MemberId,
    },
    /// No such member.
    #[error("there is no member {member}; `holdfast members list` shows those there are")]
    NoSuchMember {
        /// The member asked for.
        member: MemberId,
    },
    /// The id is in use.
    #[error("there is a member {member} already; leave the id out, and the next free one is taken")]
    Exists {
        /// The id.
        member: MemberId,
    },
    /// The id was in use.
    #[error(
        "member {member} was taken off the roster; its id is never used again, give the new member another one"
    )]
    Removed {
        /// The id.
        member: MemberId,
    },
    /// Somebody else is there.
    #[error("{address} is where member {member} is reached; give the new member addresses of its own")]
    AddressInUse {
        /// The address.
        address: String,
        /// Whose it is.
        member: MemberId,
    },
    /// As many as can be.
    #[error("the cluster has {MAX_MEMBERS} members, and there can be no more")]
    TooMany,
    /// A hello of nobody that is known.
    #[error(
        "member {member} is not on the roster of this cluster; make a place for it with `holdfast members add`, and start it \
         with the id that this answers"
    )]
    NotOnRoster {
        /// Who said hello.
        member: MemberId,
    },
    /// A hello from another disk.
    #[error(
        "this member's disk is not the one the cluster knows: member {member} runs on disk {known}, and this is {came}. A member \
         that lost its disk has forgotten what it promised, and must not come back under its id; run `holdfast members replace \
         {member}` and start it with the new id that this answers"
    )]
    OtherDisk {
        /// Who said hello.
        member: MemberId,
        /// The disk on the roster.
        known: DiskId,
        /// The disk that came.
        came: DiskId,
    },
    /// Groups would not find enough members.
    #[error(
        "member {member} cannot be removed: {left} members would be left for groups of {replicas} replicas; add another member \
         first (`holdfast members add`), take a drained one back (`holdfast members undrain`), or replace this one (`holdfast \
         members replace {member}`)"
    )]
    TooFewLeft {
        /// The member.
        member: MemberId,
        /// Members that would be left.
        left: usize,
        /// Replicas of a group.
        replicas: usize,
    },
}

fn shown(at_ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(at_ms.min(253_402_300_799_000)))
        .to_string()
}
