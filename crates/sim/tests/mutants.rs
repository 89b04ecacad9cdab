//! The faults of the mutation proof stand where the list says, and are in no binary but one built for the proof.
#![cfg(tokio_unstable)]

use std::{fs, path::Path};

use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct List {
    mutant: Vec<Mutant>,
}

#[derive(Debug, Deserialize)]
struct Mutant {
    name: String,
    site: String,
}

const LIST: &str = include_str!("../mutants.toml");

#[test]
fn every_fault_stands_where_the_list_says() {
    let list: List = toml::from_str(LIST).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for Mutant { name, site } in list.mutant {
        let text = fs::read_to_string(root.join(&site)).unwrap();
        assert!(text.contains(&format!("mutant!(\"{name}\")")), "{name} does not stand in {site}");
    }
}

#[test]
fn faults_are_in_the_binary_only_where_it_was_built_with_them() {
    let list: List = toml::from_str(LIST).unwrap();
    let binary = fs::read(env!("CARGO_BIN_EXE_holdfast-sim")).unwrap();
    // As text, for which the standard library has a quick search.
    let text = String::from_utf8_lossy(&binary);
    for Mutant { name, .. } in list.mutant {
        assert_eq!(text.contains(&name), cfg!(holdfast_mutants), "{name} in the binary");
    }
}
