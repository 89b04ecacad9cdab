//! The layout rules of this workspace, checked by an ordinary test (`tests/workspace.rs`).
//!
//! * [`manifests`]: every version stands in the root manifest, every crate inherits the lints.
//! * [`directions`]: who may depend on whom, and who may use which outside crate.
//! * [`sources`]: what every source file must begin with and must not contain.
//! * [`views`]: code and comments of a source file told apart, so that no rule trips over a string.
//!
//! Checkers take text and return findings; only [`check_workspace`] reads files. It knows nothing of compiling: it
//! runs before anything else of the workspace is built.

pub mod directions;
pub mod manifests;
pub mod sources;
pub mod views;

use std::fmt;
use std::path::Path;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the workspace, with forward slashes.
    pub path: String,
    /// The line, from 1; the first where the whole file is meant.
    pub line: usize,
    /// What is wrong, and what to do instead.
    pub message: String,
}

impl Finding {
    /// A finding about a place in a file.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Names of the packages read.
    pub packages: Vec<String>,
    /// Source files read.
    pub source_files: usize,
    /// Broken rules, sorted.
    pub findings: Vec<Finding>,
}

/// Checks every manifest and source file below the folder of the root manifest.
///
/// # Errors
/// A file that cannot be read or a manifest that cannot be understood, with its path.
pub fn check_workspace(root: &Path) -> Result<Report, String> {
    let workspace = manifests::Workspace::read(root)?;
    let files = sources::read_all(root)?;
    let mut findings = manifests::check(&workspace);
    findings.extend(directions::check(&workspace, &files));
    findings.extend(files.iter().flat_map(sources::check));
    findings.sort();
    let packages = workspace.members.iter().map(|member| member.package.clone()).collect();
    Ok(Report { packages, source_files: files.len(), findings })
}
