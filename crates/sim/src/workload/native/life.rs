//! What a process with the product's client does, over and over: opens sessions, uses them, closes or abandons them.

use std::time::Duration;

use holdfast_client::{Client, Clock, Error};
use holdfast_history::{Fact, SessionId as Id};
use holdfast_locktable::ids::SessionId;
use rand::{Rng, SeedableRng};
use tokio::task::spawn_local;

use super::{
    bound::{REQUEST_TIMEOUT, Thawed, bounded},
    channels::{SimChannels, endpoint_of},
    session::Session,
    watching,
};
use crate::{
    entropy::Dice,
    workload::{Setting, pause, session::Who},
};

/// The TTLs that are asked for, in milliseconds.
const TTLS_MS: [u64; 4] = [1_500, 2_000, 3_000, 6_000];
/// So many of them, the shortest, where locks are held for long: whoever is not heard of loses them soon.
const PATIENT: usize = 2;
const NS_PER_MS: u64 = 1_000_000;

/// Counts as a client that has not come to its end.
#[derive(Debug)]
struct Running(Setting);

impl Running {
    fn new(setting: &Setting) -> Self {
        setting.begins();
        Self(setting.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.ends();
    }
}

/// The life of one process.
#[derive(Debug)]
pub struct Life {
    setting: Setting,
    who: Who,
    thawed: Thawed,
    patient: bool,
    dice: Dice,
    running: Running,
}

impl Life {
    /// A life that has not begun; whether locks are held for long in it.
    #[must_use]
    pub fn new(setting: Setting, who: Who, (thawed, patient): (Thawed, bool), dice: &mut Dice) -> Self {
        Self { running: Running::new(&setting), setting, who, thawed, patient, dice: Dice::from_rng(dice) }
    }

    /// Lives until the run comes to an end.
    pub async fn run(mut self) {
        let mut client = self.client();
        if let Some(client) = client.clone().filter(|_| self.dice.random_bool(0.5)) {
            spawn_local(watching::watch(client, self.setting.clone(), self.who.client));
        }
        while !self.setting.stopping() {
            // Some programs keep one client for all their sessions.
            if self.dice.random_bool(0.3) {
                client = self.client();
            }
            match &client {
                Some(client) => {
                    if let Some(session) = self.open(client).await {
                        session.live(Dice::from_rng(&mut self.dice)).await;
                    }
                }
                None => return,
            }
            pause(self.dice.random_range(0..300)).await;
        }
        drop(self.running);
    }

    fn client(&mut self) -> Option<Client> {
        let built = Client::builder()
            .endpoints(self.setting.members.iter().map(|member| endpoint_of(*member)))
            .channels(SimChannels::new(self.setting.network.clone(), self.who.node))
            .clock(Clock::tokio())
            .seed(self.dice.random())
            .request_timeout(REQUEST_TIMEOUT)
            .build();
        match built {
            Ok(client) => Some(client),
            Err(error) => {
                let sentence = format!("client {} cannot be built: {error}", self.who.client);
                self.setting.findings.add("native", self.setting.world.now(), sentence);
                None
            }
        }
    }

    /// Opens a session, if that works out.
    async fn open(&mut self, client: &Client) -> Option<Session> {
        let ttls = if self.patient { PATIENT } else { TTLS_MS.len() };
        let ttl_ms = TTLS_MS[self.dice.random_range(0..ttls)];
        let options = client.session().ttl(Duration::from_millis(ttl_ms));
        // What the client says of its machine differs from machine to machine.
        let options = options.metadata("host", "native").metadata("pid", "1").metadata("user", "sim");
        let (setting, who) = (&self.setting, self.who);
        let sent = setting.world.now();
        setting.asks();
        let opening = options.open();
        let opened =
            bounded(setting, &self.thawed, (who.client, "a session"), Duration::ZERO, opening).await?;
        match opened {
            Ok(session) => {
                let id = SessionId::new(session.id().get())?;
                setting.journal.note(Fact::SessionOpened {
                    session: Id(id.get()),
                    client: who.client,
                    ttl: ttl_ms * NS_PER_MS,
                    sent: sent * NS_PER_MS,
                });
                setting.natives.opened(who, id);
                let seen = (self.thawed.clone(), self.patient);
                Some(Session::new(setting.clone(), who, seen, (client.clone(), session, id)))
            }
            Err(error) => {
                if !matches!(&error, Error::Unreachable { .. }) && !error.retryable() {
                    let sentence = format!("client {} asked for a session: {error}", who.client);
                    setting.findings.add("native", setting.world.now(), sentence);
                }
                None
            }
        }
    }
}
