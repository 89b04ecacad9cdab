//! The event log of a run: every line that matters, and a digest over all that happened, parcels included.
//!
//! Two runs of one seed have the same digest. Judges nothing.

use std::{fmt::Write as _, sync::Arc};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::network::Node;

#[derive(Default)]
struct Inner {
    digest: Sha256,
    lines: Vec<(u64, String)>,
    aloud: bool,
}

/// The event log of a run. Clones are the same log.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Inner>>);

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trace({} lines)", self.0.lock().lines.len())
    }
}

impl Trace {
    /// An empty log; `aloud` prints every line as it comes.
    #[must_use]
    pub fn new(aloud: bool) -> Self {
        let trace = Self::default();
        trace.0.lock().aloud = aloud;
        trace
    }

    /// Something happened that people may want to read.
    pub fn line(&self, at_ms: u64, text: impl Into<String>) {
        let text = text.into();
        let mut inner = self.0.lock();
        inner.digest.update(at_ms.to_le_bytes());
        inner.digest.update(text.as_bytes());
        if inner.aloud {
            println!("{}", shown(at_ms, &text));
        }
        inner.lines.push((at_ms, text));
    }

    /// A parcel arrived, or was lost on its way.
    pub fn parcel(&self, at_ms: u64, kind: &str, (from, to): (Node, Node), arrived: bool) {
        let mut inner = self.0.lock();
        inner.digest.update(at_ms.to_le_bytes());
        inner.digest.update(kind.as_bytes());
        inner.digest.update([from as u8, to as u8, u8::from(arrived)]);
    }

    /// The digest over everything so far, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        let bytes = self.0.lock().digest.clone().finalize();
        bytes.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().lines.len()
    }

    /// Whether nothing happened yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lines of the time before a moment that satisfy `wanted`, the last `most` of them, ready to be shown.
    #[must_use]
    pub fn before(&self, at_ms: u64, most: usize, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let inner = self.0.lock();
        let lines = inner.lines.iter().filter(|(at, text)| *at <= at_ms && wanted(text));
        let mut found: Vec<String> = lines.map(|(at, text)| shown(*at, text)).collect();
        found.drain(..found.len().saturating_sub(most));
        found
    }
}

fn shown(at_ms: u64, text: &str) -> String {
    format!("{:>4}.{:03} {text}", at_ms / 1_000, at_ms % 1_000)
}
