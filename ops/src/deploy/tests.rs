//! Plans of 3, 5 and 9 members as they were first made, files that are refused, and that members accept what is planned.
//!
//! After an intended change, run with `HOLDFAST_BLESS=1` and look at what changed under `ops/deploy`.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use super::*;
use crate::settings::Settings;

const GOOD: &str = "cluster = \"t\"\ninsecure = true\n[[members]]\nid = 1\nhost = \"10.0.0.1\"\n[[members]]\nid = 2\n\
                    host = \"10.0.0.2\"\n[[members]]\nid = 3\nhost = \"10.0.0.3\"\n";

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn planned(path: &Path) -> Plan {
    Plan::of(&MembersFile::read(path).unwrap()).unwrap()
}

/// The checked-in file must say this.
#[track_caller]
fn expect_file(path: &Path, now: &str) {
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, now).unwrap();
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(now, stored, "{} is not what is planned now", path.display());
}

/// The check that `holdfast node` makes before it starts.
#[track_caller]
fn expect_accepted(config: &str) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(config.as_bytes()).unwrap();
    let settings = Settings::load_file(file.path());
    assert_eq!(settings.faults, [], "{config}");
}

#[test]
fn plans_of_three_five_and_nine_members_are_what_they_were() {
    for members in [3, 5, 9] {
        let plan = planned(&deploy().join(format!("examples/members-{members}.toml")));
        assert_eq!(plan.members.len(), members);
        assert_eq!(plan.warnings, Vec::<String>::new());
        expect_file(&deploy().join(format!("examples/plan-{members}.txt")), &(show::text(&plan) + "\n"));
    }
}

#[test]
fn members_accept_what_is_planned_for_them() {
    for members in [3, 5, 9] {
        let plan = planned(&deploy().join(format!("examples/members-{members}.toml")));
        plan.members.iter().for_each(|member| expect_accepted(&member.config_toml));
    }
}

#[test]
fn checked_in_configurations_are_what_is_planned() {
    for (list, folder) in [("examples/members-3.toml", "examples"), ("compose/members.toml", "compose")] {
        for member in planned(&deploy().join(list)).members {
            let path = deploy().join(folder).join("config").join(format!("member-{}.toml", member.id));
            expect_file(&path, &member.config_toml);
        }
    }
}

#[test]
fn every_group_is_somewhere_and_led_by_one_of_its_voters() {
    for members in [3, 5, 9] {
        let plan = planned(&deploy().join(format!("examples/members-{members}.toml")));
        for group in plan.groups.iter().filter(|group| group.group != 0) {
            let carriers = plan.members.iter().filter(|member| member.carries.contains(&group.group));
            let carriers: BTreeSet<u64> = carriers.map(|member| member.id).collect();
            assert_eq!(carriers, group.voters.iter().copied().collect());
            let leaders = plan.members.iter().filter(|member| member.leads.contains(&group.group));
            assert_eq!(leaders.map(|member| member.id).collect::<Vec<_>>(), group.voters[..1]);
        }
    }
}

#[test]
fn a_zone_that_would_stop_a_group_is_found() {
    let zones = GOOD.replace("host = \"10.0.0.1\"", "host = \"10.0.0.1\"\nzone = \"a\"");
    let zones = zones.replace("host = \"10.0.0.2\"", "host = \"10.0.0.2\"\nzone = \"a\"");
    let zones = zones.replace("host = \"10.0.0.3\"", "host = \"10.0.0.3\"\nzone = \"b\"");
    let plan = Plan::of(&MembersFile::parse(&zones).unwrap()).unwrap();
    let [warning] = &plan.warnings[..] else { panic!("{:?}", plan.warnings) };
    assert!(warning.contains("without zone a these groups stop: 0 1 2 3 4"), "{warning}");
}

/// The lines and keys of what is wrong, and the whole as people see it.
fn refused(text: &str) -> (Vec<(usize, String)>, String) {
    let wrong = MembersFile::parse(text).unwrap_err();
    let shown = wrong.iter().map(|wrong| wrong.message.as_str()).collect::<Vec<_>>().join("\n");
    (wrong.into_iter().map(|wrong| (wrong.line, wrong.key)).collect(), shown)
}

#[track_caller]
fn expect_refused(text: &str, places: &[(usize, &str)], words: &str) {
    let (found, shown) = refused(text);
    let places: Vec<_> = places.iter().map(|(line, key)| (*line, (*key).to_owned())).collect();
    assert_eq!(found, places, "{shown}");
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn what_is_wrong_is_named_by_line_and_key() {
    expect_refused(&GOOD.replace("id = 2", "id = 1"), &[(7, "members[1].id")], "earlier member");
    expect_refused(&GOOD.replace("id = 2", "id = \"two\""), &[(7, "members[1].id")], "expected u64");
    expect_refused(&GOOD.replace("id = 2\n", ""), &[(6, "members[1].id")], "not set");
    expect_refused(
        &GOOD.replace("host = \"10.0.0.3\"", "hots = \"x\""),
        &[(11, "members[2].hots")],
        "unknown field",
    );
    expect_refused(&GOOD.replace("10.0.0.2", "10.0.0.2:7610"), &[(8, "members[1].host")], "no host");
    expect_refused(&GOOD.replace("10.0.0.2", "0.0.0.0"), &[(8, "members[1].host")], "nobody reaches it");
    expect_refused(&GOOD.replace("10.0.0.2", "127.0.0.1"), &[(8, "members[1].host")], "cannot reach");
    expect_refused(
        &GOOD.replace("insecure = true", "replicas = 7"),
        &[(1, "insecure"), (2, "replicas")],
        "need as many",
    );
    expect_refused(
        &GOOD.replace("insecure", "lock_groups = 99\ninsecure"),
        &[(2, "lock_groups")],
        "out of bounds",
    );
    expect_refused(&GOOD.replace("insecure = true", "insecure = "), &[(2, "")], "no TOML");
    expect_refused(&GOOD.replace("id = 3", "id = 3\nname = \"../x\""), &[(11, "members[2].name")], "no name");
    expect_refused(
        &GOOD.replace("id = 3", "id = 3\nzone = \"a\""),
        &[(3, "members[0].zone"), (6, "members[1].zone")],
        "for all",
    );
    expect_refused(
        &GOOD.replace("id = 3", "id = 3\ndata_dir = \"x\""),
        &[(11, "members[2].data_dir")],
        "not absolute",
    );
    expect_refused("cluster = \"t\"\n", &[(1, "members")], "3, 5 or 9");
}

#[test]
fn settings_of_members_are_checked_as_theirs() {
    let text =
        GOOD.replace("[[members]]\nid = 1", "[raft]\nelection_timeout_max = \"1ms\"\n[[members]]\nid = 1");
    expect_refused(&text, &[(4, "raft.election_timeout_max")], "is not above");
}

#[test]
fn members_on_one_host_need_ports_and_folders_of_their_own() {
    let text = GOOD.replace("10.0.0.2", "10.0.0.1");
    let places = ["data_dir", "grpc", "http", "peer"].map(|field| format!("members[1].{field}"));
    let (mut found, _) = refused(&text);
    found.sort();
    assert_eq!(found, places.map(|key| (6, key)));
}

#[test]
fn a_plan_is_written_into_a_new_or_empty_folder_only() {
    let (plan, folder) =
        (Plan::of(&MembersFile::parse(GOOD).unwrap()).unwrap(), tempfile::tempdir().unwrap());
    let out = folder.path().join("new");
    write::all(&plan, &out).unwrap();
    let config = fs::read_to_string(out.join("member-2/member.toml")).unwrap();
    assert_eq!(config, plan.members[1].config_toml);
    assert!(out.join("member-3/holdfast.service").exists() && out.join("plan.txt").exists());
    let error = write::all(&plan, &out).unwrap_err().to_string();
    assert!(error.contains("is not empty"), "{error}");
}
