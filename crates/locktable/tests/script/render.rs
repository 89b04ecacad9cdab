//! What happened, as a story tells it.

use holdfast_locktable::{
    event::{Change, Event, Fact, WaitEnd},
    ids::SessionId,
    name::{Name, NameKind},
    outcome::{Applied, CancelOutcome, Outcome, Rejection},
    table::LockTable,
    txn::{TxnAnswer, TxnOutcome},
    view::{ClaimView, Membership, QueueView, SessionRole, SessionView},
};

pub(super) fn applied(applied: &Applied) -> Vec<String> {
    let mut lines = vec![match &applied.result {
        Ok(done) => format!("-> {}", outcome(done)),
        Err(refused) => format!("-> refused: {}", rejection(refused)),
    }];
    if let Ok(Outcome::Txn(done)) = &applied.result {
        answers(done, 1, &mut lines);
    }
    lines.extend(applied.events.iter().map(event));
    lines.extend(applied.facts.iter().map(|told| format!("* {}", fact(told))));
    lines
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".into(),
        Outcome::SessionOpened { epoch } => format!("opened epoch={}", epoch.0),
        Outcome::SessionAttached { epoch, ttl_ms, .. } => {
            format!("attached epoch={} ttl={ttl_ms}ms", epoch.0)
        }
        Outcome::SessionEnded { epoch, to_tell } => {
            let groups: Vec<String> = to_tell.iter().map(ToString::to_string).collect();
            format!("ended epoch={} to tell [{}]", epoch.0, groups.join(" "))
        }
        Outcome::SessionsExpired { count } => format!("expired {count}"),
        Outcome::Granted { token } => format!("granted token={token}"),
        Outcome::Queued { revision, ahead } => format!("queued ahead={ahead} revision={revision}"),
        Outcome::Cancel(CancelOutcome::Cancelled) => "cancelled".into(),
        Outcome::Cancel(CancelOutcome::Granted { token, released: true }) => {
            format!("was granted token={token}, now released")
        }
        Outcome::Cancel(CancelOutcome::Granted { token, released: false }) => {
            format!("is granted token={token}")
        }
        Outcome::Cancel(CancelOutcome::None) => "nothing to cancel".into(),
        Outcome::Released { released: true } => "released".into(),
        Outcome::Released { released: false } => "was released before".into(),
        Outcome::ForceReleased { session } => format!("force-released {}", who(*session)),
        Outcome::Proclaimed { revision } => format!("proclaimed at {revision}"),
        Outcome::Txn(done) => branch(done),
        Outcome::Sealed { revision } => format!("sealed at {revision}"),
        Outcome::Imported { next, complete: None } => format!("imported, next is part {next}"),
        Outcome::Imported { complete: Some(_), .. } => "imported, complete".into(),
        Outcome::Activated { revision } => format!("activated at {revision}"),
        Outcome::SessionsAttached { lost } => {
            let lost: Vec<String> =
                lost.iter().map(|end| format!(" {} {:?}", who(end.session), end.reason)).collect();
            format!("attached{}{}", if lost.is_empty() { "" } else { ", but for" }, lost.concat())
        }
        Outcome::ClaimLeft { left: true } => "left".into(),
        Outcome::ClaimLeft { left: false } => "was no member".into(),
    }
}

fn branch(txn: &TxnOutcome) -> String {
    format!("{} at {}", if txn.succeeded { "then" } else { "else" }, txn.revision)
}

fn answers(txn: &TxnOutcome, depth: usize, lines: &mut Vec<String>) {
    let indent = "   ".repeat(depth);
    for answer in &txn.answers {
        let kv = |kv: &holdfast_locktable::txn::KeyValue| {
            format!("{}={}@{}", text(&kv.key), text(&kv.value), kv.create_revision)
        };
        match answer {
            TxnAnswer::Range { keys, count, more } => {
                let keys: Vec<String> = keys.iter().map(kv).collect();
                lines.push(format!(
                    "{indent}read [{}] of {count}{}",
                    keys.join(" "),
                    if *more { ", more" } else { "" }
                ));
            }
            TxnAnswer::Put { previous } => {
                lines.push(format!("{indent}put over {}", previous.as_ref().map_or("nothing".into(), kv)));
            }
            TxnAnswer::Delete { previous } => {
                let keys: Vec<String> = previous.iter().map(kv).collect();
                lines.push(format!("{indent}deleted [{}]", keys.join(" ")));
            }
            TxnAnswer::Txn(inner) => {
                lines.push(format!("{indent}{}", branch(inner)));
                answers(inner, depth + 1, lines);
            }
        }
    }
}

fn rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Busy { holder, token, waiters } => {
            format!("busy holder={} token={token} waiters={waiters}", who(*holder))
        }
        Rejection::SessionLost { session } => format!("session lost {}", who(*session)),
        Rejection::SessionUnknown { session } => format!("session unknown {}", who(*session)),
        Rejection::SessionExists { session } => format!("session exists {}", who(*session)),
        Rejection::AlreadyHeld { token } => format!("already held token={token}"),
        Rejection::StaleRequest { ended: Some(end) } => format!("stale request, ended {end:?}"),
        Rejection::StaleRequest { ended: None } => "stale request".into(),
        Rejection::Changed { holder: Some((session, token)) } => {
            format!("changed holder={} token={token}", who(*session))
        }
        Rejection::Changed { holder: None } => "changed, free".into(),
        Rejection::Sealed { move_number } => format!("sealed for move {move_number}"),
        Rejection::StaleMove { highest } => format!("stale move, the highest is {highest}"),
        Rejection::MoveUnderWay { move_number } => format!("move {move_number} is under way"),
        Rejection::ImportOutOfOrder { next } => format!("out of order, next is part {next}"),
        Rejection::ClaimPartitions { partitions } => format!("it has {partitions} partitions"),
        Rejection::ClaimFull { members } => format!("it has {members} members"),
        Rejection::GrantsPaused { pause_ms } => format!("grants are paused for {pause_ms} ms"),
        Rejection::AlreadyWaiting
        | Rejection::NotHolder
        | Rejection::TooManyOutstanding
        | Rejection::NotOwner
        | Rejection::StaleTerm
        | Rejection::AlreadyOwned
        | Rejection::Compacted { .. }
        | Rejection::CounterFull
        | Rejection::InvalidTxn(_)
        | Rejection::OutOfBounds(_)
        | Rejection::NotPrepared
        | Rejection::NotMember => format!("{rejection:?}"),
    }
}

pub(super) fn event(event: &Event) -> String {
    let what = match &event.change {
        Change::Put { key, name, version, value, .. } => {
            let lock = if name.is_some() { "" } else { " (no lock)" };
            let value = if value.is_empty() { String::new() } else { format!(" = {}", text(value)) };
            let version = if *version == 1 { String::new() } else { format!(" version {version}") };
            format!("put {}{value}{version}{lock}", text(key))
        }
        Change::Grant { name, session, token } => {
            format!("grant {} to {} token={token}", queue_name(name), who(*session))
        }
        Change::Delete { key, held, reason, .. } => {
            format!("delete {} {reason:?}{}", text(key), if *held { ", held" } else { "" })
        }
    };
    format!("@{} {what}", event.revision)
}

fn fact(fact: &Fact) -> String {
    match fact {
        Fact::SessionOpened { session, epoch, ttl_ms } => {
            format!("{} lives, epoch {}, {ttl_ms} ms", who(*session), epoch.0)
        }
        Fact::SessionEnded { session, epoch, reason } => {
            format!("{} epoch {} {reason:?}", who(*session), epoch.0)
        }
        Fact::RenewalStopped { session, .. } => format!("renew {} no more", who(*session)),
        Fact::EndToTell { session, reason, group, .. } => {
            format!("tell group {group}: {} {reason:?}", who(*session))
        }
        Fact::EndTold { session, group, .. } => format!("group {group} knows of {}", who(*session)),
        Fact::EndRemembered { session, epoch } => {
            format!("remember the end of {} epoch {}", who(*session), epoch.0)
        }
        Fact::Marked { session, remaining_ms } => format!("{} has {remaining_ms} ms left", who(*session)),
        Fact::Cleared { session } => format!("{} is heard again", who(*session)),
        Fact::SessionArrived { session, epoch, left_ms, renewal_stopped, .. } => {
            let stopped = if *renewal_stopped { ", renewed no more" } else { "" };
            format!("{} arrives, epoch {}, {left_ms} ms left{stopped}", who(*session), epoch.0)
        }
        Fact::RangeLeft { range, .. } => format!("{} is elsewhere", range.prefix()),
        Fact::Waiting { name, session, wait, .. } => {
            format!("{} waits for {}, {wait:?}", who(*session), queue_name(name))
        }
        Fact::WaitEnded { name, session, end: WaitEnd::Granted { token }, .. } => {
            format!("{} waited for {}: granted token={token}", who(*session), queue_name(name))
        }
        Fact::WaitEnded { name, session, end: WaitEnd::Removed(why), .. } => {
            format!("{} waited for {}: {why:?}", who(*session), queue_name(name))
        }
        Fact::HoldEnded { name, session, token, reason, .. } => {
            format!("{} held {} token={token}: {reason:?}", who(*session), queue_name(name))
        }
        Fact::ClaimChanged { name, session } => format!("{} looks at claim {}", who(*session), name.text()),
    }
}

pub(super) fn queue(queue: &QueueView) -> Vec<String> {
    let line = |(position, entry): (usize, &holdfast_locktable::view::EntryView)| {
        let verb = if position == 0 { "holds" } else { "waits" };
        format!("{} {verb} at {}", who(entry.session), entry.revision)
    };
    queue.entries.iter().enumerate().map(line).collect()
}

pub(super) fn claim(view: &ClaimView) -> Vec<String> {
    let owners = (0..).zip(&view.owners).map(|(partition, owner): (u32, _)| match owner {
        None => format!("{partition} nobody"),
        Some(owner) => {
            let revoked = if owner.revoking { ", revoked" } else { "" };
            format!("{partition} {} token={}{revoked}", who(owner.session), owner.token)
        }
    });
    let idle = view
        .members
        .iter()
        .filter(|member| !view.owners.iter().flatten().any(|owner| owner.session == member.session));
    owners.chain(idle.map(|member| format!("{} has nothing", who(member.session)))).collect()
}

pub(super) fn membership(view: Option<Membership>) -> String {
    let Some(view) = view else { return "no member".into() };
    let stakes: Vec<String> = view.stakes.iter().map(|stake| stake.partition.to_string()).collect();
    let draining = if view.draining { ", draining" } else { "" };
    format!(
        "of {}: [{}] at {}, weight {}{draining}",
        view.partitions,
        stakes.join(" "),
        view.revision,
        view.weight
    )
}

pub(super) fn session(view: Option<SessionView>) -> String {
    let Some(view) = view else { return "not known".into() };
    let role = match &view.role {
        SessionRole::Home { attached } => {
            format!("home, attached {:?}", attached.iter().map(|g| g.0).collect::<Vec<_>>())
        }
        SessionRole::Attached { home } => format!("attached from group {home}"),
    };
    let mark = view.marked_ms.map_or(String::new(), |ms| format!(", {ms} ms left"));
    let stopped = if view.renewal_stopped { ", renewed no more" } else { "" };
    format!("epoch {}, {role}{mark}{stopped}, in {:?}", view.epoch.0, view.names)
}

pub(super) fn ends(table: &LockTable) -> Vec<String> {
    let pending = table.pending_ends().into_iter().map(|end| {
        let groups: Vec<u32> = end.to_tell.iter().map(|group| group.0).collect();
        format!("{} {:?}: to tell {groups:?}", who(end.session), end.reason)
    });
    let remembered =
        table.tombstones().into_iter().map(|(id, epoch)| format!("{} epoch {} ended", who(id), epoch.0));
    pending.chain(remembered).collect()
}

pub(super) fn who(session: SessionId) -> String {
    match session.get() {
        id @ 0xa..=0x23 => char::from(b'A' + (id - 0xa) as u8).to_string(),
        _ => session.to_hex(),
    }
}

fn queue_name(name: &Name) -> String {
    match name.kind() {
        NameKind::Lock => name.text().into(),
        NameKind::Election => format!("election:{}", name.text()),
        NameKind::Claim => format!("claim:{}", name.text()),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\u{1}', "^")
}
