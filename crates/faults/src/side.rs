//! A client's own way to each member, beside the direct one.

use std::collections::BTreeMap;

use crate::{FaultError, Link, Way};

/// Links to the listeners of every member, for clients that are to be cut off while others are not.
#[derive(Debug)]
pub struct Side {
    pub(crate) http: BTreeMap<u16, Link>,
    pub(crate) grpc: BTreeMap<u16, Link>,
}

impl Side {
    /// Base URL of a member's HTTP listener.
    pub fn http(&self, member: u16) -> String {
        url(&self.http, member)
    }

    /// gRPC URL of a member.
    pub fn grpc(&self, member: u16) -> String {
        url(&self.grpc, member)
    }

    /// gRPC URLs of all members.
    pub fn endpoints(&self) -> Vec<String> {
        self.grpc.keys().map(|member| self.grpc(*member)).collect()
    }

    /// The links to one member.
    pub fn links(&self, member: u16) -> impl Iterator<Item = &Link> {
        self.http.get(&member).into_iter().chain(self.grpc.get(&member))
    }

    /// All links.
    pub fn all(&self) -> impl Iterator<Item = &Link> {
        self.http.values().chain(self.grpc.values())
    }

    /// Half-open connections to every member, in both directions.
    pub fn hold(&self) {
        self.all().for_each(Link::hold);
    }

    /// Lets one direction hold to every member.
    pub fn hold_way(&self, way: Way) {
        self.all().for_each(|link| link.set(way, crate::Flow::Hold));
    }

    /// Resets all connections and refuses new ones.
    ///
    /// # Errors
    /// The network has ended.
    pub fn refuse(&self) -> Result<(), FaultError> {
        self.all().try_for_each(Link::refuse)
    }

    /// Resets all connections; new ones are welcome.
    pub fn reset(&self) {
        self.all().for_each(Link::reset);
    }

    /// Passes everything again.
    ///
    /// # Errors
    /// The network has ended.
    pub fn heal(&self) -> Result<(), FaultError> {
        self.all().try_for_each(Link::heal)
    }
}

fn url(links: &BTreeMap<u16, Link>, member: u16) -> String {
    links.get(&member).map_or_else(String::new, |link| format!("http://{}", link.address()))
}
