//! Which commands of the lock table a run has seen answered, and how.

use std::collections::BTreeMap;

use holdfast_locktable::{
    command::Command,
    outcome::{Outcome, Rejection},
};
use serde::{Deserialize, Serialize};

/// All commands that a lock table takes.
const COMMANDS: [&str; 30] = [
    "own",
    "open",
    "attach",
    "end",
    "expire",
    "learn-ends",
    "ack-end",
    "forget-ends",
    "acquire",
    "cancel",
    "release",
    "force-release",
    "proclaim",
    "txn",
    "checkpoint",
    "compact",
    "attach-txn",
    "attach-cancel",
    "seal",
    "unseal",
    "import",
    "activate",
    "discard",
    "drop",
    "attach-all",
    "join-claim",
    "leave-claim",
    "drain-claim",
    "ack-revoked",
    "resume-grants",
];

/// Counts of commands and their answers. As text a list, since a pair is no key there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Counted>", into = "Vec<Counted>")]
pub struct Coverage(BTreeMap<(String, String), u64>);

/// A command, its answer, and how often that came.
type Counted = ((String, String), u64);

impl From<Vec<Counted>> for Coverage {
    fn from(counted: Vec<Counted>) -> Self {
        Self(counted.into_iter().collect())
    }
}

impl From<Coverage> for Vec<Counted> {
    fn from(coverage: Coverage) -> Self {
        coverage.0.into_iter().collect()
    }
}

impl Coverage {
    /// A command was answered.
    pub fn count(&mut self, command: &Command, result: &Result<Outcome, Rejection>) {
        let answer = match result {
            Ok(outcome) => word(&format!("{outcome:?}")).to_owned(),
            Err(rejection) => format!("!{}", word(&format!("{rejection:?}"))),
        };
        *self.0.entry((kind(command).to_owned(), answer)).or_default() += 1;
    }

    /// Adds what another run has seen.
    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    /// How many pairs of command and answer were seen.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.0.len()
    }

    /// A line per command: its answers with their numbers, refusals with a `!`; at last the commands that never came.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut never = Vec::new();
        for command in COMMANDS {
            let answers: Vec<String> = (self.0.iter())
                .filter(|((kind, _), _)| *kind == command)
                .map(|((_, answer), count)| format!("{answer} {count}"))
                .collect();
            if answers.is_empty() {
                never.push(command);
            } else {
                lines.push(format!("{command}: {}", answers.join(", ")));
            }
        }
        if !never.is_empty() {
            lines.push(format!("never: {}", never.join(", ")));
        }
        lines
    }
}

/// The variant's name in the text of a value, with the one inside where it only wraps that.
fn word(text: &str) -> &str {
    let end = |c: char| !c.is_alphanumeric() && c != '(';
    text.split(end).next().unwrap_or(text).trim_end_matches('(')
}

fn kind(command: &Command) -> &'static str {
    match command {
        Command::Own(_) => "own",
        Command::OpenSession(_) => "open",
        Command::AttachSession { .. } => "attach",
        Command::EndSession { .. } => "end",
        Command::ExpireSessions { .. } => "expire",
        Command::LearnEnds { .. } => "learn-ends",
        Command::AckEnd { .. } => "ack-end",
        Command::ForgetEnds { .. } => "forget-ends",
        Command::Acquire(_) => "acquire",
        Command::Cancel(_) => "cancel",
        Command::Release { .. } => "release",
        Command::ForceRelease { .. } => "force-release",
        Command::Proclaim { .. } => "proclaim",
        Command::Txn(_) => "txn",
        Command::Checkpoint { .. } => "checkpoint",
        Command::Compact { .. } => "compact",
        Command::AttachTxn { .. } => "attach-txn",
        Command::AttachCancel { .. } => "attach-cancel",
        Command::Seal(_) => "seal",
        Command::Unseal { .. } => "unseal",
        Command::Import(_) => "import",
        Command::Activate(_) => "activate",
        Command::Discard { .. } => "discard",
        Command::Drop(_) => "drop",
        Command::AttachSessions { .. } => "attach-all",
        Command::JoinClaim(_) => "join-claim",
        Command::LeaveClaim { .. } => "leave-claim",
        Command::DrainClaim { .. } => "drain-claim",
        Command::AckRevoked(_) => "ack-revoked",
        Command::ResumeGrants(_) => "resume-grants",
    }
}
