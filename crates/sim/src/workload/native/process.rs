//! A process with the product's client in it: may stand still past its leases, die, or be cut off.
//!
//! Knows nothing of what the client does.

use std::io;

use rand::Rng;

use super::{bound::Thawed, life::Life};
use crate::{
    entropy::Dice,
    host::Host,
    network::{Node, Way},
    workload::{Setting, session::Who},
};

/// Pause between two faults, in milliseconds.
const BETWEEN_MS: std::ops::Range<u64> = 500..9_000;

/// How the client in a process lives.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Nothing goes wrong with the process.
    pub calm: bool,
    /// It holds its locks for long.
    pub patient: bool,
}

/// How the process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// It stands still until then.
    Still {
        until: u64,
        slept: u64,
    },
    /// It is gone until then.
    Gone {
        until: u64,
    },
}

/// One process, and what goes wrong with it.
#[derive(Debug)]
pub struct Process {
    setting: Setting,
    who: Who,
    dice: Dice,
    host: Option<Host>,
    thawed: Thawed,
    patient: bool,
    state: State,
    /// Ways that are cut, and until when.
    cut: Option<(u64, Vec<(Node, Node)>)>,
    /// When something goes wrong next; never, in a calm run.
    next: Option<u64>,
}

impl Process {
    /// A process that runs.
    ///
    /// # Errors
    /// When the system refuses a runtime.
    pub fn start(setting: Setting, who: Who, dice: Dice, manner: Manner) -> io::Result<Self> {
        let next = (!manner.calm).then(|| setting.world.now() + BETWEEN_MS.end);
        let mut process = Self {
            setting,
            who,
            dice,
            host: None,
            thawed: Thawed::default(),
            patient: manner.patient,
            state: State::Running,
            cut: None,
            next,
        };
        process.begin()?;
        Ok(process)
    }

    fn begin(&mut self) -> io::Result<()> {
        let host = Host::start(self.dice.random())?;
        let life =
            Life::new(self.setting.clone(), self.who, (self.thawed.clone(), self.patient), &mut self.dice);
        host.spawn(life.run());
        self.host = Some(host);
        Ok(())
    }

    /// A millisecond passes.
    ///
    /// # Errors
    /// When the system refuses a runtime.
    pub fn step(&mut self) -> io::Result<()> {
        let now = self.setting.world.now();
        let calm = self.setting.stopping();
        if self.cut.as_ref().is_some_and(|(until, _)| calm || *until <= now) {
            self.heal();
        }
        match self.state {
            State::Running => {}
            State::Still { until, slept } if !calm && now < until => {
                self.state = State::Still { until, slept: slept + 1 };
                return Ok(());
            }
            State::Still { slept, .. } => {
                self.say("goes on");
                self.state = State::Running;
                self.thawed.note(now);
                if let Some(host) = &self.host {
                    host.skip(slept);
                }
            }
            State::Gone { until } if calm || now < until => return Ok(()),
            State::Gone { .. } => {
                self.say("begins anew");
                self.state = State::Running;
                self.begin()?;
            }
        }
        if let Some(host) = &self.host {
            host.run(1);
        }
        if !calm && self.next.is_some_and(|next| next <= now) {
            self.next = Some(now + self.dice.random_range(BETWEEN_MS));
            self.trouble(now);
        }
        Ok(())
    }

    fn trouble(&mut self, now: u64) {
        match self.dice.random_range(0..10) {
            0..4 => {
                self.say("stands still");
                let longest = if self.dice.random_bool(0.5) { 9_000 } else { 1_000 };
                let until = now + self.dice.random_range(20..longest);
                self.state = State::Still { until, slept: 0 };
            }
            4..6 => {
                self.say("dies");
                self.setting.natives.died(&self.setting, self.who.client);
                self.host = None;
                self.state = State::Gone { until: now + self.dice.random_range(10..3_000) };
            }
            _ if self.cut.is_none() => self.be_cut_off(now),
            _ => {}
        }
    }

    /// Nothing gets through to one member or to all, there or back or both.
    fn be_cut_off(&mut self, now: u64) {
        let (node, members) = (self.who.node, self.setting.members.clone());
        let one = self.dice.random_bool(0.5).then(|| members[self.dice.random_range(0..members.len())]);
        let (there, back) = match self.dice.random_range(0..4) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        let others = members.iter().copied().filter(|member| one.is_none_or(|one| one == *member));
        let ways = others.flat_map(|other| [(there, (node, other)), (back, (other, node))]);
        let ways: Vec<_> = ways.filter(|(cut, _)| *cut).map(|(_, way)| way).collect();
        for (from, to) in &ways {
            self.setting.network.set_way(*from, *to, Some(Way { cut: true, ..Way::default() }));
        }
        self.say(&format!("is cut off: {ways:?}"));
        self.cut = Some((now + self.dice.random_range(50..8_000), ways));
    }

    fn heal(&mut self) {
        for (from, to) in self.cut.take().into_iter().flat_map(|(_, ways)| ways) {
            self.setting.network.set_way(from, to, None);
        }
        self.say("is not cut off any more");
    }

    fn say(&self, what: &str) {
        let line = format!("process {} {what}", self.who.client);
        self.setting.network.trace().line(self.setting.world.now(), line);
    }
}
