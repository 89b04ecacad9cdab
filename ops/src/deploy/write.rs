//! A plan as files: one folder per member with all that its host needs, and the plan itself beside them.
//!
//! Writes into a new or empty folder only, so that nothing of an earlier plan stays among it.

use std::{
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use super::{plan::Plan, show};
use crate::failure::Failure;

/// The unit that every member runs under.
const UNIT: &str = include_str!("../../deploy/systemd/holdfast.service");

/// Writes everything.
pub(super) fn all(plan: &Plan, folder: &Path) -> Result<(), Failure> {
    let occupied = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => return Err(failed("read", folder, &e)),
    };
    if occupied {
        return Err(Failure::other(format!("{} is not empty; give a new or empty folder", folder.display())));
    }
    for member in &plan.members {
        let own = folder.join(&member.name);
        fs::create_dir_all(&own).map_err(|e| failed("create", &own, &e))?;
        write(&own.join("member.toml"), &member.config_toml)?;
        write(&own.join("holdfast.service"), UNIT)?;
    }
    write(&folder.join("plan.txt"), &(show::text(plan) + "\n"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| failed("write", path, &e))
}

fn failed(act: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::other(format!("cannot {act} {}: {error}", path.display()))
}
