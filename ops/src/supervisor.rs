//! What a member tells whoever supervises its process (systemd with `Type=notify`): that it serves, that it lives, that it
//! stops.
//!
//! Without a supervisor nothing is said. Knows the words of that protocol; what serving and living mean is the member's
//! business.

use std::{convert::Infallible, time::Duration};

use holdfast_node::member::Member;
use sd_notify::NotifyState;
use tokio::time::{Instant, sleep, sleep_until};

/// Names the supervisor's socket.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Pause before the member is asked again whether it serves.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// A pulse begins with each third of the supervisor's patience, and has as long. One that is lost on a busy machine is followed
/// by another at once, in time before the supervisor acts.
const SHARES: u32 = 3;

/// Tells the supervisor how the member is, as long as it runs.
pub(crate) async fn report(member: &Member) -> Infallible {
    if std::env::var_os(SOCKET).is_none() {
        return std::future::pending().await;
    }
    let (serves, _lives) = tokio::join!(report_service(member), report_life(member));
    serves
}

/// The member ends now, because it was asked to or because it cannot go on.
pub(crate) fn report_end() {
    tell(&[NotifyState::Stopping]);
}

/// Says once that the member serves, and each time what keeps it from serving.
async fn report_service(member: &Member) -> Infallible {
    let mut told = None;
    let mut ready = false;
    loop {
        let now = member.endpoint().ready();
        if told.as_ref() != Some(&now) {
            let text = match &now {
                Ok(()) => "serving".to_owned(),
                Err(why) => format!("not serving: {why}"),
            };
            tell(&[NotifyState::Status(&text)]);
            if now.is_ok() && !ready {
                ready = true;
                tell(&[NotifyState::Ready]);
            }
            told = Some(now);
        }
        sleep(ASK_AGAIN_AFTER).await;
    }
}

/// Says again and again that the member lives, but only after a pulse has gone through all of it. A supervisor that wants
/// to hear nothing is told nothing.
async fn report_life(member: &Member) -> Infallible {
    let Some(patience) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let share = patience / SHARES;
    loop {
        let begun = Instant::now();
        match member.pulse(share).await {
            Ok(()) => tell(&[NotifyState::Watchdog]),
            Err(lost) => tracing::warn!(%lost, "the member hangs; the supervisor is not told that it lives"),
        }
        sleep_until(begun + share).await;
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the supervisor cannot be told how the member is");
    }
}
