//! The receiving side, whatever carried the message: finds the group and hands it over, and answers calls.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use holdfast_partitioner::GroupId;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{
    heard::Heard,
    transport::{Answer, AppendAnswers, LinkError, Question, SnapshotParcel},
};
use crate::{
    log::identity::ClusterId,
    raft::{
        group::RaftGroup,
        types::{AppendRequest, MemberId, SnapshotResponse},
    },
};

/// Answers requests that other members pass on.
pub trait CallHandler: fmt::Debug + Send + Sync + 'static {
    /// Answers one request. May take long; is dropped where it stands when the caller has gone.
    fn call(&self, from: MemberId, request: Bytes) -> BoxFuture<'static, Bytes>;
}

/// What a member offers to the others. Clones are the same service.
#[derive(Clone, Debug)]
pub struct PeerService {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cluster: ClusterId,
    member: MemberId,
    groups: RwLock<BTreeMap<GroupId, RaftGroup>>,
    handler: Arc<dyn CallHandler>,
    heard: Heard,
    /// Whether this member may take part in its groups.
    admitted: watch::Sender<bool>,
}

/// Who a message says it is from and for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The sender's cluster.
    pub cluster: ClusterId,
    /// The sender.
    pub from: MemberId,
    /// Whom it is meant for.
    pub to: MemberId,
}

/// The message is not for this member: somebody's configuration is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misdirected {
    /// From another cluster.
    #[error(
        "this is member {member} of cluster \"{cluster}\", and the message is from member {from} of cluster \"{theirs}\"; check the cluster id and the peer addresses of both"
    )]
    OtherCluster {
        /// This member.
        member: MemberId,
        /// This member's cluster.
        cluster: ClusterId,
        /// The sender.
        from: MemberId,
        /// The sender's cluster.
        theirs: ClusterId,
    },
    /// For another member.
    #[error(
        "this is member {member}, and the message is for member {to}; check the peer address of member {to}"
    )]
    OtherMember {
        /// This member.
        member: MemberId,
        /// Whom it is meant for.
        to: MemberId,
    },
    /// From this member itself, or from another that says it is this one.
    #[error("this is member {member}, and so says the sender; give each member an id of its own")]
    SameMember {
        /// This member.
        member: MemberId,
    },
}

impl PeerService {
    /// A service without groups. `heard` is shared with the transport of the same member.
    #[must_use]
    pub fn new(cluster: ClusterId, member: MemberId, handler: Arc<dyn CallHandler>, heard: Heard) -> Self {
        let (groups, admitted) = (RwLock::default(), watch::Sender::new(true));
        Self { inner: Arc::new(Inner { cluster, member, groups, handler, heard, admitted }) }
    }

    /// Lets this member take part in its groups, or keeps it out of them: then it answers calls, and no vote and no append.
    pub fn admit(&self, admitted: bool) {
        self.inner.admitted.send_replace(admitted);
    }

    /// Whether this member may take part in its groups.
    #[must_use]
    pub fn admitted(&self) -> watch::Receiver<bool> {
        self.inner.admitted.subscribe()
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterId {
        &self.inner.cluster
    }

    /// The member that this service belongs to.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.inner.member
    }

    /// Offers a group to the others; replaces an earlier replica of the same group.
    pub fn add_group(&self, group: RaftGroup) {
        self.inner.groups.write().insert(group.id(), group);
    }

    /// Offers a group no more.
    pub fn remove_group(&self, group: GroupId) {
        self.inner.groups.write().remove(&group);
    }

    /// The replica of a group on this member.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<RaftGroup> {
        self.inner.groups.read().get(&group).cloned()
    }

    /// Checks that a message is for this member, and notes its sender as heard.
    ///
    /// # Errors
    /// [`Misdirected`]; the message must not be looked at any further.
    pub fn receive(&self, envelope: &Envelope) -> Result<MemberId, Misdirected> {
        let member = self.inner.member;
        if envelope.cluster != self.inner.cluster {
            return Err(Misdirected::OtherCluster {
                member,
                cluster: self.inner.cluster.clone(),
                from: envelope.from,
                theirs: envelope.cluster.clone(),
            });
        }
        if envelope.to != member {
            return Err(Misdirected::OtherMember { member, to: envelope.to });
        }
        if envelope.from == member {
            return Err(Misdirected::SameMember { member });
        }
        self.inner.heard.note(envelope.from);
        Ok(envelope.from)
    }

    /// Feeds appends to a group.
    ///
    /// # Errors
    /// [`LinkError::Refused`] where there is no such group here.
    pub fn append(
        &self,
        from: MemberId,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> Result<AppendAnswers, LinkError> {
        let heard = self.inner.heard.clone();
        let requests = requests.inspect(move |_| heard.note(from)).boxed();
        Ok(self.replica(group)?.receive_appends(requests))
    }

    /// Asks a group.
    ///
    /// # Errors
    /// [`LinkError::Refused`] where there is no such group here or it has stopped.
    pub async fn ask(&self, group: GroupId, question: Question) -> Result<Answer, LinkError> {
        self.replica(group)?.receive_question(question).await
    }

    /// Hands a group a snapshot.
    ///
    /// # Errors
    /// [`LinkError::Refused`] where there is no such group here or it has stopped.
    pub async fn snapshot(
        &self,
        group: GroupId,
        parcel: SnapshotParcel,
    ) -> Result<SnapshotResponse, LinkError> {
        self.replica(group)?.receive_snapshot(parcel).await
    }

    /// Has the handler answer a request.
    #[must_use]
    pub fn call(&self, from: MemberId, request: Bytes) -> BoxFuture<'static, Bytes> {
        self.inner.handler.call(from, request)
    }

    fn replica(&self, group: GroupId) -> Result<RaftGroup, LinkError> {
        let member = self.inner.member;
        if !*self.inner.admitted.borrow() {
            let reason = format!("member {member} is new, and waits to hear that it may take part");
            return Err(LinkError::Refused { to: member, reason });
        }
        self.group(group).ok_or_else(|| LinkError::Refused {
            to: member,
            reason: format!("member {member} has no replica of group {group}"),
        })
    }
}
