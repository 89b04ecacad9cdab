//! What systemd and Docker Compose say of the files, with their own tools. `make tools` installs them; without them these
//! tests fail.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::harness::{holdfast, parts};

/// Of 10, as `systemd-analyze security` counts: what the unit leaves open may not get more than this.
const EXPOSURE: &str = "20";

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) -> Output {
    let ran = Command::new(program).args(arguments).output();
    ran.unwrap_or_else(|error| panic!("{program} does not run ({error}); `make tools` as root installs it"))
}

/// It must succeed and say nothing: systemd only warns of keys that it does not know, and exits 0.
#[track_caller]
fn expect_silence(program: &str, arguments: &[&str]) {
    let (code, out, err) = parts(&run(program, arguments));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""), "{program} {arguments:?}");
}

#[test]
fn systemd_accepts_every_unit_without_a_word() {
    let units = fs::read_dir(deploy().join("systemd")).unwrap();
    let units: Vec<PathBuf> = units.map(|unit| unit.unwrap().path()).collect();
    assert!(!units.is_empty());
    for unit in &units {
        expect_silence("systemd-analyze", &["verify", unit.to_str().unwrap()]);
    }
}

#[test]
fn systemd_finds_the_member_well_confined() {
    let unit = deploy().join("systemd/holdfast.service");
    let threshold = format!("--threshold={EXPOSURE}");
    let arguments = ["security", "--offline=true", "--no-pager", &threshold, unit.to_str().unwrap()];
    let (code, out, err) = parts(&run("systemd-analyze", &arguments));
    assert_eq!(code, 0, "{out}{err}");
}

/// What Compose makes of the file, all of it resolved.
fn compose() -> Value {
    let file = deploy().join("compose/compose.yaml");
    let arguments = ["-f", file.to_str().unwrap(), "config", "--format", "json"];
    let (code, out, err) = parts(&run("docker-compose", &arguments));
    assert_eq!((code, err.as_str()), (0, ""));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn compose_of_version_2_accepts_the_file_without_a_word() {
    let (_, version, _) = parts(&run("docker-compose", &["version", "--short"]));
    assert!(version.trim_start_matches('v').starts_with('2'), "{version}");
    let file = deploy().join("compose/compose.yaml");
    expect_silence("docker-compose", &["-f", file.to_str().unwrap(), "config", "-q"]);
}

#[test]
fn everything_that_compose_mounts_is_there() {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    let volumes = services.values().filter_map(|service| service["volumes"].as_array()).flatten();
    let mounted = volumes.filter(|volume| volume["type"] == "bind").map(|volume| volume["source"].clone());
    let secrets = compose["secrets"].as_object().unwrap().values().map(|secret| secret["file"].clone());
    let sources: Vec<Value> = mounted.chain(secrets).collect();
    assert!(sources.len() >= 9, "{sources:?}");
    for source in sources {
        assert!(Path::new(source.as_str().unwrap()).exists(), "{source} is missing");
    }
}

/// With what stands in the environment that Compose gives it, and with nothing else.
#[test]
fn the_members_accept_what_compose_gives_them() {
    let compose = compose();
    for number in 1..=3 {
        let service = &compose["services"][format!("member-{number}")];
        let config = service["volumes"].as_array().unwrap().iter();
        let mut config = config.filter(|volume| volume["target"] == "/etc/holdfast/member.toml");
        let config = config.next().unwrap()["source"].as_str().unwrap();
        let mut command = holdfast();
        command.args(["config", "check", "-o", "json", "--config", config]);
        for (name, value) in service["environment"].as_object().unwrap() {
            command.env(name, value.as_str().unwrap());
        }
        let (code, out, err) = parts(&command.output().unwrap());
        assert_eq!(code, 0, "member {number}: {out}{err}");
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["faults"], Value::Array(Vec::new()));
    }
}
