//! The verbs of placement and of the planner over HTTP: what they answer, that the member's own document says so, and that
//! what is wrong is refused whole, in words that name it.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use crate::harness::{Answer, Cluster, eventually, get, post};

/// How long it may take until a member shows what was done, or a group has its next leader.
const SHOWN_WITHIN: Duration = Duration::from_secs(20);
/// Why everything here is done.
const REASON: &str = "a test";

const ADD: &str = "/v1/groups/add";
const TRANSFER: &str = "/v1/groups/transfer-leader";
const DRAIN: &str = "/v1/members/drain";
const UNDRAIN: &str = "/v1/members/undrain";
const PLAN: &str = "/v1/partitions/plan";
const POLICY: &str = "/v1/partitions/policy";

/// Asks one member, and compares each status with the member's own document.
struct Asker {
    http: String,
    document: Value,
}

impl Asker {
    fn new(cluster: &Cluster, member: u16) -> Self {
        let http = cluster.http(member);
        let document = get(&format!("{http}/openapi.json")).expect(200);
        Self { http, document }
    }

    #[track_caller]
    fn documented(&self, method: &str, path: &str, answer: Answer) -> Answer {
        let operation = path.split('?').next().unwrap_or(path);
        let status = answer.status.to_string();
        let known = &self.document["paths"][operation][method]["responses"][&status];
        assert!(known.is_object(), "{method} {path} is not documented to answer {status}: {}", answer.body);
        answer
    }

    /// What is shown, once it is no group without leader that keeps it from being shown.
    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.http);
        let shown = eventually(path, SHOWN_WITHIN, || {
            Some(get(&url)).filter(|answer| !matches!(answer.status, 0 | 503))
        });
        self.documented("get", path, shown).expect(200)
    }

    /// What is answered to something that may be asked again where its outcome is not known.
    #[track_caller]
    fn answered(&self, path: &str, body: &Value) -> Answer {
        let url = format!("{}{path}", self.http);
        let known = |answer: &Answer| !matches!(answer.status, 0 | 503);
        let answer = eventually(path, SHOWN_WITHIN, || Some(post(&url, body)).filter(known));
        self.documented("post", path, answer)
    }

    #[track_caller]
    fn refused(&self, path: &str, body: &Value, (status, code): (u16, &str), words: &str) {
        let Answer { status: found, body: problem } = self.answered(path, body);
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{path} {body}: {problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(words), "{path} {body}: {detail:?} lacks {words:?}");
    }

    /// Neither a field too many nor a reason too few is taken.
    #[track_caller]
    fn strict(&self, path: &str, good: &Value) {
        let mut more = good.clone();
        more["zzz"] = json!(1);
        self.refused(path, &more, (400, "invalid_argument"), "`zzz`");
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove("reason");
        self.refused(path, &less, (400, "invalid_argument"), "`reason`");
        let mut empty = good.clone();
        empty["reason"] = json!(" ");
        self.refused(path, &empty, (400, "invalid_argument"), "reason is empty");
    }

    fn groups(&self) -> BTreeSet<u64> {
        let shown = self.get("/v1/groups");
        shown["groups"].as_array().unwrap().iter().filter_map(|group| group["group"].as_u64()).collect()
    }

    fn group(&self, group: u64) -> Value {
        let shown = self.get(&format!("/v1/groups/show?group={group}"));
        assert_eq!(shown["group"]["group"], group, "{shown}");
        shown
    }

    fn voters(&self, group: u64) -> BTreeSet<u64> {
        let shown = self.group(group);
        let voters = shown["group"]["voters"].as_array().unwrap().iter();
        voters.filter_map(|voter| voter["member"].as_u64()).collect()
    }

    fn is_drained(&self, member: u64) -> bool {
        let shown = self.get("/v1/members");
        let members = shown["members"].as_array().unwrap();
        members.iter().any(|shown| shown["id"] == member && shown["drained"] == true)
    }
}

/// A cluster of six members, three replicas and at least two groups is looked at and changed.
pub(crate) fn placement(cluster: &Cluster) {
    let (one, other) = (Asker::new(cluster, 1), Asker::new(cluster, 6));
    let before = one.groups();
    refusals_of_groups(&one);
    transfer(&one, &other);
    members(&one, &other);
    assert_eq!(other.groups(), before, "nothing of what was refused was done");

    let last = before.last().copied().unwrap();
    let more = json!({"count": 1, "reason": REASON, "request": 77});
    let added = one.answered(ADD, &more).expect(200);
    assert_eq!(added, json!({"groups": [last + 1]}));
    assert_eq!(other.answered(ADD, &more).expect(200), added, "a repeat adds nothing again");
    eventually("everybody knows the new group", SHOWN_WITHIN, || {
        other.groups().contains(&(last + 1)).then_some(())
    });
    let shown = one.group(last + 1);
    assert_eq!(shown["group"]["replicas"].as_array().map(Vec::len), Some(3), "{shown}");
    assert_eq!(shown["leaving"], json!([]), "{shown}");
}

fn refusals_of_groups(member: &Asker) {
    member.strict(ADD, &json!({"count": 1, "reason": REASON}));
    for (count, status, code, words) in [
        (json!(0), 409, "changed", "add at least 1"),
        (json!(32), 409, "changed", "at most 32 in all"),
        (json!(-1), 400, "invalid_argument", "`count`"),
        (json!("one"), 400, "invalid_argument", "`count`"),
    ] {
        member.refused(ADD, &json!({"count": count, "reason": REASON}), (status, code), words);
    }
    let show = "/v1/groups/show?group=99";
    let none = member.documented("get", show, get(&format!("{}{show}", member.http)));
    assert_eq!((none.status, none.body["code"].as_str()), (404, Some("not_found")), "{}", none.body);
}

fn transfer(one: &Asker, other: &Asker) {
    const GROUP: u64 = 2;
    transfer_meta(one, other);
    let to = |to: u64| json!({"group": GROUP, "to": to, "reason": REASON});
    let voters = one.voters(GROUP);
    one.strict(TRANSFER, &to(*voters.first().unwrap()));
    let stranger = (1..=6).find(|member| !voters.contains(member)).unwrap();
    for member in [stranger, 77] {
        let words = format!("member {member} has no vote in group {GROUP}");
        one.refused(TRANSFER, &to(member), (400, "invalid_argument"), &words);
    }
    let nowhere = json!({"group": 99, "to": 1, "reason": REASON});
    one.refused(TRANSFER, &nowhere, (404, "not_found"), "no group 99");
    let leads = one.group(GROUP)["group"]["leader"].as_u64();
    let next = voters.into_iter().find(|voter| Some(*voter) != leads).unwrap();
    assert_eq!(one.answered(TRANSFER, &to(next)).expect(200), json!({"ok": true}));
    eventually("it leads, as another member says", SHOWN_WITHIN, || {
        (other.group(GROUP)["group"]["leader"] == next).then_some(())
    });
}

/// Group 0 is handed on as any other.
fn transfer_meta(one: &Asker, other: &Asker) {
    let leads = one.group(0)["group"]["leader"].as_u64();
    let next = one.voters(0).into_iter().find(|voter| Some(*voter) != leads).unwrap();
    let to = json!({"group": 0, "to": next, "reason": REASON});
    assert_eq!(one.answered(TRANSFER, &to).expect(200), json!({"ok": true}));
    eventually("it leads the meta group, as another member says", SHOWN_WITHIN, || {
        (other.group(0)["group"]["leader"] == next).then_some(())
    });
}

fn members(one: &Asker, other: &Asker) {
    const MEMBER: u64 = 6;
    let of = |member: Value| json!({"member": member, "reason": REASON});
    for path in [DRAIN, UNDRAIN] {
        one.strict(path, &of(json!(MEMBER)));
        one.refused(path, &of(json!(77)), (409, "changed"), "no member 77");
        one.refused(path, &of(json!("six")), (400, "invalid_argument"), "`member`");
    }
    assert!((1..=6).all(|member| !one.is_drained(member)));
    // The second time it is as it was wanted already.
    for (path, drained) in [(DRAIN, true), (DRAIN, true), (UNDRAIN, false), (UNDRAIN, false)] {
        assert_eq!(one.answered(path, &of(json!(MEMBER))).expect(202), json!({"ok": true}));
        eventually("another member shows it", SHOWN_WITHIN, || {
            (other.is_drained(MEMBER) == drained).then_some(())
        });
    }
}

/// The planner is looked at, and told when to act.
pub(crate) fn planner(cluster: &Cluster) {
    let (one, other) = (Asker::new(cluster, 1), Asker::new(cluster, 6));
    let shown = eventually("the planner has looked", SHOWN_WITHIN, || {
        Some(one.get(PLAN)).filter(|shown| shown["look"].is_object())
    });
    let measured = shown["look"]["groups"].as_array().unwrap();
    assert!(measured.iter().all(|load| load["entries_per_s"].is_u64() && load["electing"].is_boolean()));
    let measured: BTreeSet<u64> = measured.iter().filter_map(|load| load["group"].as_u64()).collect();
    assert!(measured.is_superset(&BTreeSet::from([1, 2])), "{shown}");
    assert!(shown["look"]["hottest"].is_array() && shown["look"]["notes"].is_array(), "{shown}");
    assert_eq!(shown["policy"]["mode"], "suggest", "{shown}");

    let edit = json!({"hold_ms": 30_000, "veto": ["billing/"], "reason": REASON});
    let since = one.answered(POLICY, &edit).expect(200)["policy"].clone();
    assert_eq!((&since["hold_ms"], &since["vetoes"]), (&json!(30_000), &json!(["billing/"])));
    one.strict(POLICY, &edit);
    for (setting, value, words) in [
        ("gain_percent", json!(0), "gain_percent must be from 1 to 50"),
        ("quiet_ms", json!(1), "neither quiet_ms nor cool_down_ms shorter than it"),
        ("allow", json!(["orders/"]), "no veto on \"orders/\""),
        ("mode", json!("sometimes"), "`mode`"),
    ] {
        let mut body = json!({"hot_queue_ms": 7, "reason": REASON});
        body[setting] = value;
        one.refused(POLICY, &body, (400, "invalid_argument"), words);
    }
    one.refused(POLICY, &json!({"reason": REASON}), (400, "invalid_argument"), "nothing is to be changed");
    assert_eq!(other.get(PLAN)["policy"], since, "nothing of what was refused was done");
}
