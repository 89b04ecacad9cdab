//! What is measured in each round, service by service. Knows no process.

use serde::Serialize;

use super::service::Service;
use crate::run::Scenario;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// 256 clients with a lock each.
    Spread,
    /// One client.
    Single,
    /// 32 clients that want one lock.
    Hot,
    /// 1,000 clients that want one lock.
    Crowd,
}

impl Measure {
    pub(crate) const fn scenario(self) -> Scenario {
        match self {
            Self::Spread => Scenario::Spread,
            Self::Single => Scenario::Single,
            Self::Hot | Self::Crowd => Scenario::Hot,
        }
    }

    pub(crate) const fn clients(self) -> u32 {
        match self {
            Self::Spread => 256,
            Self::Single => 1,
            Self::Hot => 32,
            Self::Crowd => 1_000,
        }
    }

    /// Its name in tables.
    pub(crate) fn name(self) -> String {
        format!("{}({})", self.scenario().name(), self.clients())
    }
}

use Measure::{Crowd, Hot, Single, Spread};

/// The turns of a round.
pub(crate) const TURNS: &[(Service, &[Measure])] = &[
    (Service::Holdfast(4), &[Spread, Single, Hot, Crowd]),
    (Service::Etcd, &[Spread, Single, Hot]),
    (Service::RedisAlways, &[Spread, Single, Hot]),
    (Service::RedisMemory, &[Spread, Single, Hot]),
    (Service::Holdfast(1), &[Spread]),
    (Service::Holdfast(16), &[Spread]),
];
