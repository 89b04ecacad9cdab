//! Who may depend on whom. The arrows of the architecture, as tables.

use crate::Finding;
use crate::manifests::{Kind, Member, Workspace};
use crate::sources::SourceFile;

const PARTITIONER: &str = "holdfast-partitioner";
const MUTANTS: &str = "holdfast-mutants";
const LOCKTABLE: &str = "holdfast-locktable";
const PROTO: &str = "holdfast-proto";
const CLIENT: &str = "holdfast-client";
const FENCE: &str = "holdfast-fence";
const FAULTS: &str = "holdfast-faults";
const HISTORY: &str = "holdfast-history";
const NODE: &str = "holdfast-node";
const OPS: &str = "holdfast";
const SIM: &str = "holdfast-sim";
const TIDY: &str = "holdfast-tidy";

/// Crates without clock, randomness, I/O and threads.
const PURE: [&str; 3] = [PARTITIONER, MUTANTS, LOCKTABLE];

/// What of ours a crate may build on, and what its tests may use besides. A crate that is not listed is a program on
/// top: it may use everything but what [`ONLY_IN`] keeps from it.
const MAY_USE: [(&str, &[&str], &[&str]); 10] = [
    (PARTITIONER, &[], &[]),
    (MUTANTS, &[], &[]),
    (LOCKTABLE, &[PARTITIONER, MUTANTS], &[]),
    (PROTO, &[PARTITIONER], &[]),
    (CLIENT, &[PROTO, PARTITIONER, MUTANTS], &[]),
    (FENCE, &[CLIENT, PROTO], &[]),
    (HISTORY, &[], &[]),
    (FAULTS, &[], &[]),
    (NODE, &[PARTITIONER, LOCKTABLE, PROTO], &[CLIENT]),
    (TIDY, &[], &[]),
];

/// Packages that only some crates may use, in their tests too. A name that ends in `*` stands for all that begin so.
const ONLY_IN: [(&str, &[&str]); 8] = [
    (NODE, &[OPS, SIM]),
    ("openraft*", &[NODE]),
    ("actix", &[NODE]),
    ("actix-rt", &[NODE]),
    ("aws-*", &[NODE]),
    ("rusqlite", &[NODE, FENCE]),
    ("tokio-rusqlite", &[NODE, FENCE]),
    ("libsqlite3-sys", &[NODE, FENCE]),
];

/// Where code may name openraft.
const RAFT_PLACES: [&str; 4] = ["node/src/raft/", "node/src/log/", "node/src/snapshot/", "node/tests/"];

/// All findings about directions.
#[must_use]
pub fn check(workspace: &Workspace, files: &[SourceFile]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = workspace.members.iter().flat_map(check_dependencies).collect();
    for member in workspace.members.iter().filter(|member| PURE.contains(&member.package.as_str())) {
        findings.extend(check_pure(member, files));
    }
    findings.extend(files.iter().flat_map(check_raft_place));
    findings
}

fn check_dependencies(member: &Member) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dependency in &member.dependencies {
        let (from, to) = (member.package.as_str(), dependency.package.as_str());
        if is_ours(to) && !may_use(from, to, dependency.kind) {
            let message = format!("`{from}` may not depend on `{to}`, which stands above or beside it");
            findings.push(Finding::new(&member.manifest(), 1, message));
        }
        for (package, allowed) in ONLY_IN.iter().filter(|(package, _)| matches_name(package, to)) {
            if !allowed.contains(&from) {
                let message = format!("`{from}` may not use `{to}`: `{package}` belongs to {allowed:?}");
                findings.push(Finding::new(&member.manifest(), 1, message));
            }
        }
    }
    findings
}

fn is_ours(package: &str) -> bool {
    package == OPS || package.starts_with("holdfast-")
}

fn may_use(from: &str, to: &str, kind: Kind) -> bool {
    match MAY_USE.iter().find(|(package, _, _)| *package == from) {
        Some((_, build, test)) => build.contains(&to) || (kind == Kind::Test && test.contains(&to)),
        None => true,
    }
}

fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// A pure crate is `no_std`, and takes std back at most for its tests.
fn check_pure(member: &Member, files: &[SourceFile]) -> Vec<Finding> {
    let source_folder = format!("{}/src/", member.folder);
    let root = format!("{source_folder}lib.rs");
    let mut findings = Vec::new();
    let declared = |file: &SourceFile| file.path == root && file.views.code.contains("#![no_std]");
    if !files.iter().any(declared) {
        findings.push(Finding::new(&root, 1, "a pure crate says `#![no_std]`"));
    }
    for file in files.iter().filter(|file| file.path.starts_with(&source_folder)) {
        let mut before = "";
        for (number, line) in (1..).zip(file.views.code.lines()) {
            if line.contains("extern crate std") && before.trim() != "#[cfg(test)]" {
                findings.push(Finding::new(&file.path, number, "a pure crate does without std"));
            }
            before = line;
        }
    }
    findings
}

fn check_raft_place(file: &SourceFile) -> Vec<Finding> {
    if RAFT_PLACES.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    let message = format!("openraft is named only in {RAFT_PLACES:?}; use what node/src/raft offers");
    file.lines_with(names_raft).map(|line| Finding::new(&file.path, line, &message)).collect()
}

/// Also finds its sister crates, such as `openraft_rt`.
fn names_raft(line: &str) -> bool {
    let begins_word = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices("openraft").any(|(at, _)| begins_word(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::tests::parsed;

    fn messages(package: &str, dependencies: &str) -> Vec<String> {
        let manifest = format!(
            "[package]\nname = '{package}'\n[lints]\nworkspace = true\n[dependencies]\n{dependencies}"
        );
        let workspace = Workspace { members: vec![parsed("x", &manifest)] };
        let files = [SourceFile::new("x/src/lib.rs", "//! X.\n#![no_std]\n")];
        check(&workspace, &files).into_iter().map(|finding| finding.message).collect()
    }

    #[track_caller]
    fn refused(package: &str, dependency: &str) {
        let found = messages(package, &format!("{dependency}.workspace = true\n"));
        assert_eq!(found.len(), 1, "{package} uses {dependency}: {found:?}");
        assert!(found[0].contains(dependency) && found[0].contains(package), "{found:?}");
    }

    #[track_caller]
    fn allowed(package: &str, dependency: &str) {
        let found = messages(package, &format!("{dependency}.workspace = true\n"));
        assert_eq!(found, Vec::<String>::new(), "{package} uses {dependency}");
    }

    #[test]
    fn pure_crates_use_nothing_above_them() {
        refused(PARTITIONER, LOCKTABLE);
        refused(LOCKTABLE, PROTO);
        refused(LOCKTABLE, "openraft");
        allowed(LOCKTABLE, PARTITIONER);
        allowed(PARTITIONER, "serde");
    }

    #[test]
    fn only_ops_and_sim_import_node() {
        for other in ["holdfast-loadtest", "holdfast-dashboards"] {
            refused(other, NODE);
        }
        for listed in [CLIENT, FENCE] {
            assert_eq!(messages(listed, "holdfast-node.workspace = true\n").len(), 2);
        }
        allowed(OPS, NODE);
        allowed(SIM, NODE);
    }

    #[test]
    fn raft_actors_and_object_storage_are_for_node() {
        for outside in ["openraft", "openraft-rt-tokio", "actix", "actix-rt", "aws-sdk-s3", "aws-config"] {
            refused(FENCE, outside);
            refused(OPS, outside);
            allowed(NODE, outside);
        }
        allowed(FENCE, "actix-web");
    }

    #[test]
    fn sqlite_is_for_node_and_fence() {
        for outside in ["rusqlite", "tokio-rusqlite", "libsqlite3-sys"] {
            refused(OPS, outside);
            refused(CLIENT, outside);
            allowed(NODE, outside);
            allowed(FENCE, outside);
        }
    }

    #[test]
    fn tests_of_node_may_use_the_client_and_node_may_not() {
        refused(NODE, CLIENT);
        let manifest =
            "[package]\nname = 'holdfast-node'\n[dev-dependencies]\nholdfast-client.workspace = true\n";
        assert_eq!(check_dependencies(&parsed("node", manifest)), []);
        let manifest =
            "[package]\nname = 'holdfast-client'\n[dev-dependencies]\nholdfast-node.workspace = true\n";
        assert_eq!(check_dependencies(&parsed("crates/client", manifest)).len(), 2);
    }

    #[test]
    fn a_renamed_package_is_found() {
        assert_eq!(messages(OPS, "raft.workspace = true\n").len(), 1);
    }

    fn pure(path: &str, text: &str) -> Vec<Finding> {
        let member = parsed("partitioner", "[package]\nname = 'holdfast-partitioner'\n");
        check_pure(&member, &[SourceFile::new(path, text)])
    }

    #[test]
    fn pure_crates_do_without_std() {
        let root = "partitioner/src/lib.rs";
        assert_eq!(pure(root, "//! X.\n#![no_std]\n"), []);
        assert_eq!(pure(root, "//! X.\n#![no_std]\n#[cfg(test)]\nextern crate std;\n"), []);
        assert_eq!(pure(root, "//! X, without #![no_std].\n").len(), 1, "a comment declares nothing");
        let taken_back = pure(root, "//! X.\n#![no_std]\nextern crate std;\n");
        assert_eq!(taken_back.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
        assert_eq!(pure("elsewhere/src/lib.rs", "//! X.\n#![no_std]\n").len(), 1, "no root at all");
    }

    #[test]
    fn the_raft_library_is_named_in_its_places_only() {
        let at = |path: &str, text: &str| check_raft_place(&SourceFile::new(path, text)).len();
        assert_eq!(at("node/src/raft/types.rs", "use openraft::Raft;\n"), 0);
        assert_eq!(at("node/src/group/mod.rs", "use openraft::Raft;\n"), 1);
        assert_eq!(at("node/src/raftlike.rs", "use ::openraft_rt::X;\n"), 1);
        assert_eq!(at("ops/src/main.rs", "// openraft does this\nlet s = \"openraft\"; my_openraft();\n"), 0);
    }
}
