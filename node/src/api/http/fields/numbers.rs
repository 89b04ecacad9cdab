//! Whole numbers between two bounds. Fractions, signs, texts and overflow are refused with the bounds in the message.

use std::fmt;

use holdfast_locktable::{
    command::Wait,
    ids::{Revision, Token},
};
use holdfast_partitioner::GroupId;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected, Visitor},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type},
};

use crate::endpoint::types::{
    MAX_TTL_MS, MAX_WAIT_MS, MIN_TTL_MS,
    claims::{MAX_PARTITIONS, MAX_WEIGHT},
};

/// Most entries of one page.
const MAX_PAGE: u64 = 1_000;

struct Whole {
    min: u64,
    max: u64,
}

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        if (self.min..=self.max).contains(&number) {
            return Ok(number);
        }
        Err(E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }
}

macro_rules! whole_number {
    ($(#[doc = $doc:literal])+ $name:ident, $min:expr, $max:expr) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(u64);

        impl $name {
            const MIN: u64 = $min;
            const MAX: u64 = $max;
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_u64(Whole { min: Self::MIN, max: Self::MAX }).map(Self)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                    .minimum(Some(Self::MIN))
                    .maximum(Some(Self::MAX))
                    .description(Some(concat!($($doc),+).trim()))
                    .into()
            }
        }

        impl ToSchema for $name {}
    };
}

whole_number! {
    /// How long a session lives without a keepalive, in milliseconds.
    TtlMs, MIN_TTL_MS, MAX_TTL_MS
}
whole_number! {
    /// How long an acquire is ready to wait, in milliseconds; 0 is a try.
    WaitMs, 0, MAX_WAIT_MS
}
whole_number! {
    /// How long to wait for a change, in milliseconds; 0 answers at once.
    LookMs, 0, MAX_WAIT_MS
}
whole_number! {
    /// How many partitions a claim has.
    PartitionCount, 1, MAX_PARTITIONS as u64
}
whole_number! {
    /// A partition of a claim, counted from 0.
    PartitionNumber, 0, MAX_PARTITIONS as u64 - 1
}
whole_number! {
    /// A member's share of a claim against the others'.
    Weight, 1, MAX_WEIGHT as u64
}
whole_number! {
    /// A fencing token: for one name it only grows, for ever.
    TokenNumber, 1, Revision::LIMIT - 1
}
whole_number! {
    /// A revision of a group.
    RevisionNumber, 1, Revision::LIMIT - 1
}
whole_number! {
    /// Most entries of one page.
    PageLimit, 1, MAX_PAGE
}
whole_number! {
    /// A group; 0 is the meta group.
    GroupNumber, 0, u32::MAX as u64
}

impl TtlMs {
    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

impl WaitMs {
    /// What an acquire with this wait limit, or with none, is ready to do.
    pub(crate) fn wait(limit: Option<Self>) -> Wait {
        match limit {
            None => Wait::Unlimited,
            Some(Self(0)) => Wait::Try,
            Some(Self(ms)) => Wait::AtMost(ms),
        }
    }
}

impl LookMs {
    /// How long to wait; not at all where the request does not say.
    pub(crate) fn of(wait: Option<Self>) -> u64 {
        wait.map_or(0, |wait| wait.0)
    }
}

impl PartitionCount {
    pub(crate) fn get(self) -> u32 {
        // The bound is far below.
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl PartitionNumber {
    pub(crate) fn get(self) -> u32 {
        // As above.
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl From<u32> for PartitionNumber {
    fn from(partition: u32) -> Self {
        Self(u64::from(partition))
    }
}

impl Weight {
    /// The weight of a request; 1 where it does not say.
    pub(crate) fn of(weight: Option<Self>) -> u32 {
        weight.map_or(1, |weight| u32::try_from(weight.0).unwrap_or(u32::MAX))
    }
}

impl TokenNumber {
    pub(crate) const fn token(self) -> Token {
        Revision(self.0)
    }
}

impl From<Token> for TokenNumber {
    fn from(token: Token) -> Self {
        Self(token.0)
    }
}

impl RevisionNumber {
    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

impl PageLimit {
    /// The limit of a request that names none.
    pub(crate) const DEFAULT: u32 = 100;

    /// The limit of a request.
    pub(crate) fn of(limit: Option<Self>) -> u32 {
        limit.map_or(Self::DEFAULT, |limit| u32::try_from(limit.0).unwrap_or(Self::DEFAULT))
    }
}

impl GroupNumber {
    pub(crate) fn group(self) -> GroupId {
        // The bound is that of the type.
        GroupId(u32::try_from(self.0).unwrap_or(u32::MAX))
    }
}

impl From<GroupId> for GroupNumber {
    fn from(group: GroupId) -> Self {
        Self(u64::from(group.0))
    }
}
