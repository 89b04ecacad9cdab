//! The plan for three members, carried out as plain processes: what a host's supervisor would start is started here, and every
//! other command of the plan is run as it stands there.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    harness::{HOLDFAST, holdfast, parts},
    process::Process,
};

/// The members file of three members on this machine, on ports that are free.
fn members_file(folder: &Path) -> String {
    let mut text = String::from("cluster = \"planned\"\nlock_groups = 4\n");
    // All held at once, so that none is given twice.
    let sockets: Vec<TcpListener> = (0..9).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
    for (ports, id) in ports.chunks(3).zip(1..) {
        let data = folder.join(format!("data-{id}"));
        text += &format!(
            "[[members]]\nid = {id}\nhost = \"127.0.0.1\"\ndata_dir = {:?}\nhttp = {}\ngrpc = {}\npeer = {}\n",
            data.display().to_string(),
            ports[0],
            ports[1],
            ports[2]
        );
    }
    text
}

/// Runs a command of the plan in the plan's folder, with the binary under test in the place of the installed one.
fn run(line: &str, folder: &Path) -> Output {
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("holdfast"), "{line}");
    Command::new(HOLDFAST).args(words).current_dir(folder).output().unwrap()
}

#[track_caller]
fn expect_success(line: &str, folder: &Path) -> String {
    let (code, out, err) = parts(&run(line, folder));
    assert_eq!(code, 0, "{line}: {out}{err}");
    out
}

fn list<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn the_plan_for_three_members_gives_the_cluster_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("members.toml"), folder.path().join("plan"));
    fs::write(&file, members_file(folder.path())).unwrap();
    let planned =
        holdfast().args(["deploy", "plan", "-o", "json"]).arg(&file).arg("--out").arg(&out).output();
    let (code, plan, err) = parts(&planned.unwrap());
    assert_eq!(code, 0, "{err}");
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let mut running = Vec::new();
    for step in list(&plan, "bootstrap") {
        for command in list(step, "commands") {
            match text(command, "run") {
                line if line.starts_with("holdfast ") => drop(expect_success(line, &out)),
                line if line.starts_with("systemctl ") => {
                    let name = format!("member-{}", command["member"]);
                    running.push(Process::start(&out.join(name).join("member.toml"), |_| {}));
                }
                // Here the plan's own folder stands for the hosts' /etc.
                line => assert!(line.starts_with("install "), "{line}"),
            }
        }
    }
    assert_eq!(running.len(), 3);
    for check in list(&plan, "checks") {
        expect_success(text(check, "run"), &out);
    }
    let endpoints =
        list(&plan, "members").iter().map(|member| text(member, "grpc")).collect::<Vec<_>>().join(",");
    let groups = expect_success(&format!("holdfast groups list -o json --endpoints {endpoints}"), &out);
    let groups: Value = serde_json::from_str(&groups).unwrap();
    let mut leaders = Vec::new();
    for planned in list(&plan, "groups") {
        let found = groups.as_array().unwrap().iter().find(|group| group["group"] == planned["group"]);
        let found = found.unwrap_or_else(|| panic!("{planned} is missing in {groups}"));
        assert_eq!(list(found, "voters").len(), list(planned, "voters").len(), "{found}");
        if planned["group"] != 0 {
            leaders.push(found["leader"].as_u64().unwrap());
        }
    }
    leaders.sort_unstable();
    leaders.dedup();
    assert!(leaders.len() >= 2, "the leaders of four lock groups are spread over members: {leaders:?}");
    let token = expect_success(
        &format!("holdfast lock planned --endpoints {endpoints} -- printenv HOLDFAST_TOKEN"),
        &out,
    );
    assert!(token.trim().parse::<u64>().unwrap() > 0, "{token}");
}
