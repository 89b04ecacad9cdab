//! The manifests of the workspace: what each crate depends on, and that versions stand in one place.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::Finding;

/// The root manifest and those of all members.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// All members, in the order of the root manifest.
    pub members: Vec<Member>,
}

/// One crate of the workspace.
#[derive(Clone, Debug)]
pub struct Member {
    /// Package name.
    pub package: String,
    /// Folder relative to the root, with forward slashes.
    pub folder: String,
    /// Whether it takes its lints from the root manifest.
    pub inherits_lints: bool,
    /// Everything it depends on.
    pub dependencies: Vec<Dependency>,
}

/// One line of a dependency table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Name of the package, which is not the key where it is renamed.
    pub package: String,
    /// Which builds need it.
    pub kind: Kind,
    /// Whether version and source come from the root manifest.
    pub inherited: bool,
}

/// Which builds need a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The crate itself or its build script.
    Build,
    /// Only its tests.
    Test,
}

impl Member {
    /// Path of its manifest, relative to the root.
    #[must_use]
    pub fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }
}

impl Workspace {
    /// Reads the root manifest and those of the members it lists.
    ///
    /// # Errors
    /// A manifest that is missing or cannot be understood, with its path.
    pub fn read(root: &Path) -> Result<Self, String> {
        let parse = |path: &str| -> Result<Table, String> {
            let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
            text.parse().map_err(|error| format!("{path}: {error}"))
        };
        let manifest = parse("Cargo.toml")?;
        let workspace = table(&manifest, "workspace").ok_or("Cargo.toml: no [workspace]")?;
        let renamed = renamed_packages(workspace);
        let listed = workspace.get("members").and_then(Value::as_array).ok_or("Cargo.toml: no members")?;
        let mut members = Vec::new();
        for folder in listed.iter().filter_map(Value::as_str) {
            let path = format!("{folder}/Cargo.toml");
            members.push(member(folder, &parse(&path)?, &renamed).ok_or(format!("{path}: no package name"))?);
        }
        Ok(Self { members })
    }
}

fn table<'t>(parent: &'t Table, key: &str) -> Option<&'t Table> {
    parent.get(key).and_then(Value::as_table)
}

/// Keys of `[workspace.dependencies]` whose package has another name.
fn renamed_packages(workspace: &Table) -> BTreeMap<String, String> {
    let all = table(workspace, "dependencies").into_iter().flatten();
    all.filter_map(|(key, spec)| Some((key.clone(), spec.get("package")?.as_str()?.to_owned()))).collect()
}

fn member(folder: &str, manifest: &Table, renamed: &BTreeMap<String, String>) -> Option<Member> {
    let package = table(manifest, "package")?.get("name")?.as_str()?.to_owned();
    let lints = table(manifest, "lints").and_then(|lints| lints.get("workspace"));
    let mut dependencies = dependencies(manifest, renamed);
    for target in table(manifest, "target").into_iter().flat_map(Table::values).filter_map(Value::as_table) {
        dependencies.extend(self::dependencies(target, renamed));
    }
    let inherits_lints = lints.and_then(Value::as_bool) == Some(true);
    Some(Member { package, folder: folder.to_owned(), inherits_lints, dependencies })
}

fn dependencies(parent: &Table, renamed: &BTreeMap<String, String>) -> Vec<Dependency> {
    let tables = [
        ("dependencies", Kind::Build),
        ("build-dependencies", Kind::Build),
        ("dev-dependencies", Kind::Test),
    ];
    let mut found = Vec::new();
    for (name, kind) in tables {
        for (key, spec) in table(parent, name).into_iter().flatten() {
            let own_name = spec.get("package").and_then(Value::as_str);
            let package = own_name.or(renamed.get(key).map(String::as_str)).unwrap_or(key).to_owned();
            let inherited = spec.get("workspace").and_then(Value::as_bool) == Some(true);
            found.push(Dependency { package, kind, inherited });
        }
    }
    found
}

/// Every version stands in the root manifest, and every crate takes its lints from there.
#[must_use]
pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &workspace.members {
        if !member.inherits_lints {
            findings.push(Finding::new(&member.manifest(), 1, "add `[lints] workspace = true`"));
        }
        for dependency in member.dependencies.iter().filter(|dependency| !dependency.inherited) {
            let message = format!(
                "say `{0}.workspace = true` and put the version of `{0}` into the root manifest",
                dependency.package
            );
            findings.push(Finding::new(&member.manifest(), 1, message));
        }
    }
    findings
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn parsed(folder: &str, manifest: &str) -> Member {
        let renamed = BTreeMap::from([("raft".to_owned(), "openraft".to_owned())]);
        member(folder, &manifest.parse().unwrap(), &renamed).unwrap()
    }

    fn messages(manifest: &str) -> Vec<String> {
        let workspace = Workspace { members: vec![parsed("x", manifest)] };
        check(&workspace).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn inherited_dependencies_are_fine_in_either_spelling() {
        let manifest = "[package]\nname = 'x'\n[lints]\nworkspace = true\n[dependencies]\na.workspace = true\n\
                        b = { workspace = true, features = ['f'] }\n";
        assert_eq!(messages(manifest), Vec::<String>::new());
    }

    #[test]
    fn versions_in_members_are_found_in_every_table() {
        let manifest = "[package]\nname = 'x'\n[lints]\nworkspace = true\n[dependencies]\na = '1'\n\
                        [dev-dependencies]\nb = { version = '1' }\n[build-dependencies]\nc = { path = '../c' }\n\
                        [target.'cfg(unix)'.dependencies]\nd = '1'\n";
        let found = messages(manifest);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("x/Cargo.toml:1: say `a.workspace = true`"), "{found:?}");
    }

    #[test]
    fn missing_lints_are_found() {
        assert_eq!(messages("[package]\nname = 'x'\n"), ["x/Cargo.toml:1: add `[lints] workspace = true`"]);
    }

    #[test]
    fn renamed_packages_are_known_by_their_own_name() {
        let member = parsed("x", "[package]\nname = 'x'\n[dependencies]\nraft.workspace = true\n");
        assert_eq!(member.dependencies[0].package, "openraft");
    }
}
