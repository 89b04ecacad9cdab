//! The faults of the simulation's mutation proof are in no `holdfast` but one built for the proof.
//!
//! `make mutants` runs this very test in such a build, where it must find what it must not find here.

use std::fs;

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

#[test]
fn faults_are_in_the_binary_only_where_it_was_built_with_them() {
    let list: List = toml::from_str(include_str!("../../crates/sim/mutants.toml")).unwrap();
    let binary = fs::read(env!("CARGO_BIN_EXE_holdfast")).unwrap();
    // As text, for which the standard library has a quick search.
    let text = String::from_utf8_lossy(&binary);
    let of_the_product: Vec<&Mutant> =
        list.mutant.iter().filter(|mutant| !mutant.site.starts_with("crates/sim/")).collect();
    assert!(of_the_product.len() > 10, "the list is {list:?}");
    for Mutant { name, .. } in of_the_product {
        assert_eq!(text.contains(name), cfg!(holdfast_mutants), "{name} in the binary");
    }
}
