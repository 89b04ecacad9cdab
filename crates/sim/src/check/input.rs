//! P9: what must be refused is refused, with an error that says what is wrong with the request and not that the service is
//! broken.

use holdfast_node::endpoint::ErrorCode;

use super::Findings;
use crate::workload::vandal::Refused;

/// Judges the answer to something that must be refused.
pub fn judge(now: u64, what: &str, answer: &Refused, findings: &Findings) {
    let right = match answer {
        Refused::Done(()) => false,
        Refused::No(error) => error.code != ErrorCode::Internal && !error.message.is_empty(),
        Refused::Unknown => true,
    };
    if !right {
        findings.add("P9", now, format!("{what} was answered with {answer:?}"));
    }
}
