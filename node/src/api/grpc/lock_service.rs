//! What holders, waiters and observers use: session streams, watches, listing.

use std::pin::Pin;

use futures::{Stream, StreamExt, stream::BoxStream};
use holdfast_proto::v1;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::{input, status::status, stream};
use crate::endpoint::{ApiError, Endpoint, types::WatchRequest};

/// Serves `holdfast.v1.Lock`.
#[derive(Clone, Debug)]
pub(super) struct LockService {
    endpoint: Endpoint,
    stopping: CancellationToken,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl LockService {
    pub(super) const fn new(endpoint: Endpoint, stopping: CancellationToken) -> Self {
        Self { endpoint, stopping }
    }

    async fn listed(&self, request: v1::ListLocksRequest) -> Result<v1::ListLocksResponse, ApiError> {
        let prefix = input::prefix(request.prefix)?;
        let limit = input::page_limit(request.limit)?;
        let cursor = input::cursor(request.cursor)?;
        let page =
            self.endpoint.locks(input::kind(request.elections), &prefix, limit, cursor.as_deref()).await?;
        Ok(page.into())
    }

    async fn watched(
        &self,
        request: v1::WatchRequest,
    ) -> Result<BoxStream<'static, Result<v1::WatchResponse, Status>>, ApiError> {
        let request = WatchRequest {
            prefix: input::prefix(request.prefix)?,
            elections: request.elections,
            exact: request.exact,
            from: input::cursor(request.from)?,
        };
        let events = self.endpoint.watch(request).await?;
        let message = |event: Result<crate::endpoint::types::WatchEvent, ApiError>| match event {
            Ok(event) => Ok(v1::WatchResponse { event: Some(event.into()) }),
            Err(error) => Err(status(error)),
        };
        Ok(events.map(message).boxed())
    }

    /// The stream until the member stops; then it ends with `unavailable`, so that its client goes elsewhere. The first
    /// error ends it: nothing is sent after a status.
    fn until_stopped<T: Send + 'static>(&self, stream: BoxStream<'static, Result<T, Status>>) -> Answers<T> {
        let stopped = futures::stream::once(self.stopping.clone().cancelled_owned());
        let stopped = stopped.map(|()| Err(Status::unavailable("the member is stopping")));
        let ended =
            futures::stream::once(std::future::ready(Err(Status::unavailable("the stream has ended"))));
        Box::pin(futures::stream::select(stream.chain(ended), stopped))
    }
}

#[tonic::async_trait]
impl v1::lock_server::Lock for LockService {
    type SessionsStream = Answers<v1::SessionResponses>;
    type WatchStream = Answers<v1::WatchResponse>;
    type ObserveStream = Answers<v1::ObserveResponse>;

    async fn sessions(
        &self,
        request: Request<Streaming<v1::SessionRequests>>,
    ) -> Result<Response<Self::SessionsStream>, Status> {
        let answers = stream::serve(self.endpoint.clone(), request.into_inner(), self.stopping.clone());
        Ok(Response::new(Box::pin(answers)))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let events = self.watched(request.into_inner()).await.map_err(status)?;
        Ok(Response::new(self.until_stopped(events)))
    }

    async fn leader(&self, request: Request<v1::LeaderRequest>) -> Result<Response<v1::LeaderView>, Status> {
        let name = input::election(&request.into_inner().name).map_err(status)?;
        let leader = self.endpoint.leader(&name).await.map_err(status)?;
        Ok(Response::new(leader.into()))
    }

    async fn observe(
        &self,
        request: Request<v1::ObserveRequest>,
    ) -> Result<Response<Self::ObserveStream>, Status> {
        let name = input::election(&request.into_inner().name).map_err(status)?;
        let leaders = self.endpoint.observe(name).await.map_err(status)?;
        let message = |leader: Result<Option<crate::endpoint::types::LeaderView>, ApiError>| match leader {
            Ok(leader) => Ok(v1::ObserveResponse { leader: leader.map(Into::into) }),
            Err(error) => Err(status(error)),
        };
        Ok(Response::new(self.until_stopped(leaders.map(message).boxed())))
    }

    async fn list_locks(
        &self,
        request: Request<v1::ListLocksRequest>,
    ) -> Result<Response<v1::ListLocksResponse>, Status> {
        self.listed(request.into_inner()).await.map(Response::new).map_err(status)
    }

    async fn get_lock(
        &self,
        request: Request<v1::GetLockRequest>,
    ) -> Result<Response<v1::LockDetail>, Status> {
        let name = input::name(request.into_inner().name).map_err(status)?;
        let detail = self.endpoint.lock(&name).await.map_err(status)?;
        Ok(Response::new(detail.into()))
    }
}
