//! The workspace keeps its own rules.

use std::path::Path;

use holdfast_tidy::check_workspace;

#[test]
fn the_workspace_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let report = check_workspace(&root).unwrap();
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn the_whole_workspace_is_looked_at() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let report = check_workspace(&root).unwrap();
    for package in
        ["holdfast", "holdfast-node", "holdfast-partitioner", "holdfast-locktable", "holdfast-tidy"]
    {
        assert!(report.packages.iter().any(|found| found == package), "{package} is missing: {report:?}");
    }
    assert!(report.source_files >= report.packages.len(), "{report:?}");
}
