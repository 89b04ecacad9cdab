//! Readable stories: commands, and below each what it must lead to. See `script/mod.rs` for the language.
//!
//! After a deliberate change run with `HOLDFAST_BLESS=1`, then read the difference.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod script;

use std::{env, fs, path::Path};

#[test]
fn every_story_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "only {} stories found", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let told = fs::read_to_string(file).unwrap();
        let happened = script::replay(&told);
        if told == happened {
            continue;
        }
        if env::var_os("HOLDFAST_BLESS").is_some() {
            fs::write(file, happened).unwrap();
        } else {
            wrong.push(format!("{}\n{}", file.display(), difference(&told, &happened)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first lines where both part, with what came before.
fn difference(told: &str, happened: &str) -> String {
    let (told, happened): (Vec<&str>, Vec<&str>) = (told.lines().collect(), happened.lines().collect());
    let same = told.iter().zip(&happened).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    for line in &told[same.saturating_sub(3)..same] {
        text += &format!("    {line}\n");
    }
    for line in told[same..].iter().take(6) {
        text += &format!("  - {line}\n");
    }
    for line in happened[same..].iter().take(6) {
        text += &format!("  + {line}\n");
    }
    text
}
