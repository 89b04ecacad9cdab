//! `holdfast deploy plan` as a command: what it prints, what it writes, what it refuses.

use std::{fs, path::Path};

use serde_json::Value;

use crate::harness::{holdfast, parts};

fn plan(arguments: &[&str]) -> (i32, String, String) {
    parts(&holdfast().args(["deploy", "plan"]).args(arguments).output().unwrap())
}

fn example(members: u16) -> String {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    deploy.join(format!("examples/members-{members}.toml")).display().to_string()
}

#[test]
fn a_plan_is_printed_for_people_and_for_programs() {
    let (code, text, err) = plan(&[&example(3)]);
    assert_eq!((code, err.as_str()), (0, ""));
    for part in ["lock-b/member.toml", "Bootstrap", "Checks", "systemctl enable --now --no-block holdfast"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let (code, json, _) = plan(&[&example(9), "-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (code, json["members"].as_array().unwrap().len(), json["groups"].as_array().unwrap().len()),
        (0, 9, 10)
    );
}

#[test]
fn what_is_written_is_accepted_by_the_check_of_a_member() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("prod");
    let (code, _, err) = plan(&[&example(5), "--out", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    for member in 1..=5 {
        let config = out.join(format!("member-{member}/member.toml"));
        let checked = holdfast().args(["config", "check", "--config"]).arg(&config).output().unwrap();
        assert_eq!(parts(&checked).0, 0, "{}", config.display());
        assert!(config.with_file_name("holdfast.service").exists());
    }
}

#[test]
fn a_bad_file_is_refused_whole_with_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("members.toml"), folder.path().join("out"));
    let text = fs::read_to_string(example(3)).unwrap();
    fs::write(
        &file,
        text.replace("host = \"10.0.2.10\"", "host = \"10.0.2.10:7610\"").replace("id = 3", "id = 1"),
    )
    .unwrap();
    let (code, printed, err) = plan(&[file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(err.lines().all(|line| line.starts_with("holdfast:")), "{err}");
    assert!(err.contains("line 19: members[1].host:") && err.contains("line 23: members[2].id:"), "{err}");
    assert!(!out.exists());
    let (code, _, err) = plan(&["/nonexistent/members.toml"]);
    assert!(code == 1 && err.contains("cannot read /nonexistent/members.toml"), "{err}");
}
