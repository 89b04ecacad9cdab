//! Who wants which lock. Knows no service.

use std::sync::Arc;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// Clients of a scenario with several, unless told otherwise.
const CLIENTS: u32 = 64;

/// The shape of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scenario {
    /// One client, one lock, nobody else
    Single,
    /// Each client has a lock of its own, on all groups
    Spread,
    /// All clients want one lock
    Hot,
}

impl Scenario {
    /// How many clients take part.
    pub(crate) fn clients(self, asked: Option<u32>) -> Result<u32, Failure> {
        match (self, asked) {
            (Self::Single, None | Some(1)) => Ok(1),
            (Self::Single, Some(_)) => Err(Failure::Usage(
                "single has one client; several with a lock each are the scenario spread".into(),
            )),
            (Self::Spread | Self::Hot, asked) => Ok(asked.unwrap_or(CLIENTS)),
        }
    }

    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Spread => "spread",
            Self::Hot => "hot",
        }
    }
}

/// The names of the locks of one run: new ones each time, so that runs do not meet.
#[derive(Debug)]
pub(crate) struct Names {
    scenario: Scenario,
    run: u32,
}

impl Names {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self { scenario, run: rand::random() }
    }

    /// The lock that a client wants. First segments differ, because they decide which group a name falls on.
    pub(crate) fn of(&self, client: u32) -> Arc<str> {
        let client = match self.scenario {
            Scenario::Single | Scenario::Hot => 0,
            Scenario::Spread => client,
        };
        Arc::from(format!("load-{:08x}-{client}/lock", self.run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_differs_in_the_first_segment_and_hot_does_not_differ() {
        let first = |name: Arc<str>| name.split('/').next().unwrap().to_owned();
        let spread = Names::new(Scenario::Spread);
        assert_ne!(first(spread.of(1)), first(spread.of(2)));
        let hot = Names::new(Scenario::Hot);
        assert_eq!(hot.of(1), hot.of(2));
    }

    #[test]
    fn single_is_alone() {
        assert_eq!(Scenario::Single.clients(None).unwrap(), 1);
        assert_eq!(Scenario::Single.clients(Some(2)).unwrap_err().code(), 2);
        assert_eq!(Scenario::Hot.clients(Some(1_000)).unwrap(), 1_000);
    }
}
