//! A cluster of member processes whose every connection to each other can be cut.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    FaultError, Flow, Link, Network, Plan, Shim, Side, Switch, Tmpfs, Way,
    member::Member,
    ports::{Block, MOST_MEMBERS},
    spawner::Spawner,
    wait_for,
};

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(15);
/// How long a member may take to answer a question about itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Blocks of ports that are tried: another process may take one between the look and the start.
const ATTEMPTS: u16 = 5;

/// A running cluster. Ended when dropped. All methods may be called from any thread.
#[derive(Debug)]
pub struct Cluster {
    plan: Plan,
    // Members first: they end before the network does.
    members: BTreeMap<u16, Mutex<Member>>,
    links: BTreeMap<(u16, u16), Link>,
    block: Mutex<Block>,
    disks: BTreeMap<u16, Tmpfs>,
    shim: Option<Shim>,
    network: Network,
    spawner: Spawner,
    folder: TempDir,
}

impl Cluster {
    pub(crate) fn start(plan: Plan) -> Result<Self, FaultError> {
        let mut last = FaultError::NoPorts { first: 0, last: 0 };
        for attempt in 0..ATTEMPTS {
            let cluster = Self::create(plan.clone(), attempt * 10)?;
            let started = cluster.numbers().try_for_each(|member| cluster.start_member(member));
            match started.and_then(|()| cluster.wait_ready()) {
                Ok(()) => return Ok(cluster),
                Err(FaultError::Member { log, member, how }) if log.contains("in use") => {
                    last = FaultError::Member { member, how, log };
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn create(plan: Plan, skip: u16) -> Result<Self, FaultError> {
        let folder = TempDir::with_prefix("holdfast-faults-").map_err(FaultError::system("make a folder"))?;
        let (block, network, spawner) = (Block::find(skip)?, Network::start()?, Spawner::start()?);
        let shim = plan.switches.then(|| Shim::compile(folder.path())).transpose()?;
        let numbers = 1..=plan.members.min(MOST_MEMBERS);
        let (mut members, mut links) = (BTreeMap::new(), BTreeMap::new());
        for from in numbers.clone() {
            for to in numbers.clone().filter(|to| *to != from) {
                links.insert((from, to), network.link(block.link(from, to), block.peer(to))?);
            }
            members.insert(from, Mutex::new(Member::create(folder.path(), from, &plan, &block)?));
        }
        let block = Mutex::new(block);
        let disks = BTreeMap::new();
        let mut cluster = Self { plan, members, links, block, disks, shim, network, spawner, folder };
        if let Some(size_mib) = cluster.plan.small_disks {
            for number in cluster.numbers() {
                let data = cluster.member(number)?.data();
                cluster.disks.insert(number, Tmpfs::mount(&cluster.spawner, &data, size_mib)?);
            }
        }
        Ok(cluster)
    }

    /// Numbers of all members, from 1.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        1..=self.plan.members.min(MOST_MEMBERS)
    }

    /// Base URL of a member's HTTP listener, with nothing between.
    pub fn http(&self, member: u16) -> String {
        format!("http://{}", self.block().http(member))
    }

    /// gRPC URL of a member, with nothing between.
    pub fn grpc(&self, member: u16) -> String {
        format!("http://{}", self.block().grpc(member))
    }

    /// gRPC URLs of all members, with nothing between.
    pub fn endpoints(&self) -> Vec<String> {
        self.numbers().map(|member| self.grpc(member)).collect()
    }

    /// A folder for files of whoever uses the cluster; removed with it.
    pub fn scratch(&self) -> &Path {
        self.folder.path()
    }

    /// A new way to all members for one client, or several that share their fate.
    ///
    /// # Errors
    /// The block of ports is used up: a cluster of three has room for six sides.
    pub fn side(&self) -> Result<Side, FaultError> {
        let mut block = self.block();
        let mut side = Side { http: BTreeMap::new(), grpc: BTreeMap::new() };
        for member in self.numbers() {
            let (http, grpc) = (block.http(member), block.grpc(member));
            side.http.insert(member, self.network.link(block.side()?, http)?);
            side.grpc.insert(member, self.network.link(block.side()?, grpc)?);
        }
        Ok(side)
    }

    /// Freezes a member's process.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&self, member: u16) -> Result<(), FaultError> {
        self.member(member)?.signal(Signal::SIGSTOP)
    }

    /// Thaws a member's process.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&self, member: u16) -> Result<(), FaultError> {
        self.member(member)?.signal(Signal::SIGCONT)
    }

    /// Kills a member's process, without a chance to tidy up. It is gone when this returns, and stays down.
    ///
    /// # Errors
    /// There is no such member.
    pub fn kill(&self, member: u16) -> Result<(), FaultError> {
        self.member(member)?.kill();
        Ok(())
    }

    /// Asks a member's process to end, and waits for it.
    ///
    /// # Errors
    /// It does not run, or does not end within 15 s.
    pub fn stop(&self, member: u16) -> Result<(), FaultError> {
        self.member(member)?.signal(Signal::SIGTERM)?;
        self.wait_ended(member, STOP_WITHIN)
    }

    /// Waits until a member's process has ended by itself.
    ///
    /// # Errors
    /// It has not within `within`.
    pub fn wait_ended(&self, member: u16, within: Duration) -> Result<(), FaultError> {
        wait_for(&format!("member {member} ends"), within, || (!self.is_running(member)).then_some(()))
    }

    /// Starts a member's process again with its data, unless it runs. Does not wait until it serves.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_member(&self, member: u16) -> Result<(), FaultError> {
        self.member(member)?.start(&self.plan, self.shim.as_ref(), &self.spawner)
    }

    /// Whether a member's process runs; a paused one does.
    pub fn is_running(&self, member: u16) -> bool {
        self.member(member).is_ok_and(|mut member| member.is_running())
    }

    /// Whether a member says that it serves.
    pub fn is_ready(&self, member: u16) -> bool {
        self.ask(member, "/readyz").is_some()
    }

    /// Waits until all members run and say that they serve.
    ///
    /// # Errors
    /// One of them ended, or it takes longer than 60 s.
    pub fn wait_ready(&self) -> Result<(), FaultError> {
        wait_for("all members are ready", READY_WITHIN, || {
            for number in self.numbers() {
                if !self.is_running(number) {
                    return Some(self.member(number).and_then(|member| Err(member.failed("has ended"))));
                }
            }
            self.numbers().all(|member| self.is_ready(member)).then_some(Ok(()))
        })?
    }

    /// The member that leads a group, as one that answers says.
    pub fn leader(&self, group: u64) -> Option<u16> {
        self.numbers().find_map(|asked| {
            let groups = self.ask(asked, "/v1/groups")?;
            let leads = |view: &&Value| view["group"] == group && !view["leader"].is_null();
            let leader = groups["groups"].as_array()?.iter().find(leads)?["leader"].as_u64()?;
            u16::try_from(leader).ok().filter(|leader| self.is_ready(*leader))
        })
    }

    /// The link on which one member calls another.
    ///
    /// # Errors
    /// There is no such pair.
    pub fn link(&self, from: u16, to: u16) -> Result<&Link, FaultError> {
        let none = || FaultError::system(format!("find a link from member {from} to {to}"));
        self.links.get(&(from, to)).ok_or_else(|| none()(std::io::ErrorKind::NotFound.into()))
    }

    /// Lets nothing that one member says reach another one, on whoever's connection; the other way stays open.
    ///
    /// # Errors
    /// There is no such pair.
    pub fn mute(&self, from: u16, to: u16) -> Result<(), FaultError> {
        self.link(from, to)?.set(Way::There, Flow::Hold);
        self.link(to, from)?.set(Way::Back, Flow::Hold);
        Ok(())
    }

    /// Cuts a member off from all others, both ways, without a word: connections stay half open.
    pub fn isolate(&self, member: u16) {
        for ((from, to), link) in &self.links {
            if *from == member || *to == member {
                link.hold();
            }
        }
    }

    /// Heals all links between members.
    ///
    /// # Errors
    /// A link's port is taken.
    pub fn heal(&self) -> Result<(), FaultError> {
        self.links.values().try_for_each(Link::heal)
    }

    /// The switch of a member's faults.
    ///
    /// # Errors
    /// The plan did not prepare for it, with [`Plan::switches`].
    pub fn switch(&self, member: u16) -> Result<Switch, FaultError> {
        let unprepared = || std::io::Error::other("prepare the plan with Plan::switches");
        let switch = self.member(member)?.switch.clone();
        switch.ok_or_else(|| FaultError::system("switch a fault")(unprepared()))
    }

    /// A member's small disk.
    ///
    /// # Errors
    /// The plan did not prepare for it, with [`Plan::small_disks`].
    pub fn small_disk(&self, member: u16) -> Result<&Tmpfs, FaultError> {
        let unprepared = || std::io::Error::other("prepare the plan with Plan::small_disks");
        self.disks.get(&member).ok_or_else(|| FaultError::system("find a small disk")(unprepared()))
    }

    /// All that a member has written to its log.
    pub fn said(&self, member: u16) -> String {
        self.member(member).map_or_else(|_| String::new(), |member| member.said())
    }

    fn member(&self, number: u16) -> Result<MutexGuard<'_, Member>, FaultError> {
        let none = || FaultError::system(format!("find member {number}"));
        let member = self.members.get(&number).ok_or_else(|| none()(std::io::ErrorKind::NotFound.into()))?;
        Ok(member.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn block(&self) -> MutexGuard<'_, Block> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The JSON body of a member's answer with a status of 200.
    fn ask(&self, member: u16, path: &str) -> Option<Value> {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(ANSWER_WITHIN)).build().into();
        agent.get(format!("{}{path}", self.http(member))).call().ok()?.body_mut().read_json().ok()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for number in self.numbers() {
                if let Ok(member) = self.member(number) {
                    eprintln!("{}", member.failed("is one of the cluster"));
                }
            }
        }
    }
}
