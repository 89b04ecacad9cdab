//! All members of a simulated cluster, and what can be asked of all at once.
//!
//! Takes away a member whose process ended by itself, and tells of it. Decides no fault.

use holdfast_locktable::table::{LockTable, Position};
use holdfast_node::raft::group::RaftGroup;
use holdfast_partitioner::GroupId;

use crate::{
    check::Findings,
    member::{SimMember, StartFault},
    network::{Network, Node},
    trace::Trace,
};

/// The simulated cluster.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<SimMember>,
    lock_groups: u16,
    trace: Trace,
    findings: Findings,
}

impl Cluster {
    /// A cluster whose members have never run.
    #[must_use]
    pub fn new(members: u64, lock_groups: u16, seed: u64, network: &Network, findings: Findings) -> Self {
        let member = |id| SimMember::new(id, members, lock_groups, seed, network.clone());
        Self {
            members: (1..=members).map(member).collect(),
            lock_groups,
            trace: network.trace().clone(),
            findings,
        }
    }

    /// Ids of all members.
    #[must_use]
    pub fn ids(&self) -> Vec<Node> {
        self.members.iter().map(|member| member.id).collect()
    }

    /// All members.
    #[must_use]
    pub fn members(&self) -> &[SimMember] {
        &self.members
    }

    /// One member.
    pub fn member(&mut self, id: Node) -> Option<&mut SimMember> {
        self.members.iter_mut().find(|member| member.id == id)
    }

    /// Starts every member that does not run.
    ///
    /// # Errors
    /// When a process cannot even begin.
    pub fn start_all(&mut self) -> Result<(), StartFault> {
        self.members.iter_mut().try_for_each(SimMember::start)
    }

    /// A millisecond of the world passes. A member may end itself only because its disk takes nothing any more.
    pub fn step(&mut self, now: u64) {
        for member in &mut self.members {
            member.step(now);
            if let Some(reason) = member.ended() {
                if !member.disk.is_full() {
                    self.findings.add("alive", now, format!("member {} ended itself: {reason}", member.id));
                }
                self.trace.line(now, format!("member {} ended itself", member.id));
                member.crash();
            }
        }
    }

    /// Whether every member runs and serves; otherwise what is missing.
    ///
    /// # Errors
    /// What the first member that is not ready says.
    pub fn ready(&self) -> Result<(), String> {
        for member in &self.members {
            let seat = member.seat().ok_or_else(|| format!("member {} does not run", member.id))?;
            // Whatever looks at time must see the member's own.
            let _within = seat.handle.enter();
            seat.endpoint.ready().map_err(|missing| format!("member {}: {missing}", member.id))?;
        }
        Ok(())
    }

    /// The lock groups.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + use<> {
        (1..=u32::from(self.lock_groups)).map(GroupId)
    }

    /// The replicas of a group on the members that run.
    #[must_use]
    pub fn replicas(&self, group: GroupId) -> Vec<(Node, RaftGroup)> {
        let replica = |member: &SimMember| Some((member.id, member.seat()?.service.group(group)?));
        self.members.iter().filter_map(replica).collect()
    }

    /// Shows the table of every replica of every lock group.
    pub fn each_table(&self, mut look: impl FnMut(GroupId, Node, &LockTable, Position)) {
        for group in self.groups() {
            for (member, replica) in self.replicas(group) {
                replica.with_locks(|table, at| {
                    if let Some(at) = at {
                        look(group, member, table, at);
                    }
                });
            }
        }
    }
}
