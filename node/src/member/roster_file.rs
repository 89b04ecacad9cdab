//! Where a member keeps who the members are, so that it finds them after a restart before it has read its log.
//!
//! A hint, as its configuration is: the roster in the meta group decides.

use std::{fs, path::Path};

use crate::{config::MemberEntry, log::disk_id::replace_file};

/// Name of the file within the member's folder.
const FILE: &str = "members.json";

/// The members as they were noted last; none where they never were, or the note makes no sense.
pub(super) fn read(folder: &Path) -> Option<Vec<MemberEntry>> {
    let text = fs::read(folder.join(FILE)).ok()?;
    serde_json::from_slice(&text)
        .inspect_err(
            |error| tracing::warn!(%error, "{FILE} in the data folder makes no sense, and is left aside"),
        )
        .ok()
}

/// Notes the members.
pub(super) fn write(folder: &Path, members: &[MemberEntry]) {
    let text = serde_json::to_vec(members).map_err(std::io::Error::from);
    if let Err(error) = text.and_then(|text| replace_file(folder, FILE, &text)) {
        tracing::warn!(%error, "the members could not be noted in the data folder; its log has them");
    }
}
