//! What other members send to a group.

use futures::{StreamExt, stream::BoxStream};

use super::{
    group::RaftGroup,
    machine::Shot,
    types::{AppendRequest, SnapshotResponse},
};
use crate::peer::transport::{Answer, AppendAnswers, LinkError, Question, SnapshotParcel};

impl RaftGroup {
    /// Takes a leader's appends; the answers come in the same order and end with the first refusal.
    pub(crate) fn receive_appends(&self, requests: BoxStream<'static, AppendRequest>) -> AppendAnswers {
        let to = self.member();
        self.raft()
            .stream_append(requests)
            .map(move |answer| answer.map_err(|err| LinkError::Broken { to, reason: err.to_string() }))
            .boxed()
    }

    /// Answers a candidate or a leader that steps back.
    pub(crate) async fn receive_question(&self, question: Question) -> Result<Answer, LinkError> {
        let raft = self.raft();
        let answer = match question {
            Question::Vote(request) => {
                raft.vote(request).await.map(Answer::Vote).map_err(|err| err.to_string())
            }
            Question::PreVote(request) => {
                raft.pre_vote(request).await.map(Answer::Vote).map_err(|err| err.to_string())
            }
            Question::Transfer(request) => raft
                .handle_transfer_leader(request)
                .await
                .map(Answer::Transfer)
                .map_err(|err| err.to_string()),
        };
        answer.map_err(|reason| LinkError::Refused { to: self.member(), reason })
    }

    /// Installs a leader's snapshot.
    pub(crate) async fn receive_snapshot(
        &self,
        parcel: SnapshotParcel,
    ) -> Result<SnapshotResponse, LinkError> {
        let snapshot = Shot { meta: parcel.meta, snapshot: parcel.data };
        let installed = self.raft().install_full_snapshot(parcel.vote, snapshot).await;
        installed.map_err(|err| LinkError::Refused { to: self.member(), reason: err.to_string() })
    }
}
