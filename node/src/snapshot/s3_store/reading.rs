//! Reads an object in chunks. Where the connection is lost or falls silent, reading goes on at the same place.

use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;

use super::S3Store;
use crate::snapshot::store::{ObjectName, StoreCause, StoreError};

/// How often reading goes on after a loss without a byte in between.
const RESUMES: u32 = 3;

/// An object that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    store: S3Store,
    name: ObjectName,
    /// What was read.
    offset: u64,
    length: u64,
    /// Tells whether it is still the same object.
    tag: Option<String>,
    body: ByteStream,
    losses: u32,
}

impl Reading {
    /// Begins at the first byte.
    pub(super) async fn open(store: &S3Store, name: &ObjectName) -> Result<Reading, StoreError> {
        let request = store.client().await?.get_object().bucket(store.bucket()).key(store.key(name.as_str()));
        let answer = store.call("read", name.as_str()).result(request.send()).await?;
        Ok(Reading {
            store: store.clone(),
            name: name.clone(),
            offset: 0,
            length: answer.content_length().and_then(|length| u64::try_from(length).ok()).unwrap_or(0),
            tag: answer.e_tag().map(str::to_owned),
            body: answer.body,
            losses: 0,
        })
    }

    /// The next chunk, until all of the object has been read.
    pub(super) async fn next(mut self) -> Result<Option<(Bytes, Reading)>, StoreError> {
        loop {
            let patience = self.store.options().timeout / 3;
            let (cause, reason) = match tokio::time::timeout(patience, self.body.next()).await {
                Ok(Some(Ok(chunk))) => {
                    self.offset += chunk.len() as u64;
                    self.losses = 0;
                    return Ok(Some((chunk, self)));
                }
                _ if self.offset >= self.length => return Ok(None),
                Ok(None) => (
                    StoreCause::Connection,
                    format!("it ended after {} of {} bytes", self.offset, self.length),
                ),
                Ok(Some(Err(err))) => (StoreCause::Connection, err.to_string()),
                Err(_elapsed) => (
                    StoreCause::Timeout,
                    format!("nothing came for {}", humantime::format_duration(patience)),
                ),
            };
            self.losses += 1;
            if self.losses > RESUMES {
                let store = self.store.clone();
                return Err(store.call("read", self.name.as_str()).unavailable(cause, reason));
            }
            tracing::debug!(object = %self.name, offset = self.offset, reason, "reading goes on after a loss");
            self.resume().await?;
        }
    }

    async fn resume(&mut self) -> Result<(), StoreError> {
        let request = self
            .store
            .client()
            .await?
            .get_object()
            .bucket(self.store.bucket())
            .key(self.store.key(self.name.as_str()))
            .range(format!("bytes={}-", self.offset))
            .set_if_match(self.tag.clone());
        self.body = self.store.call("read", self.name.as_str()).result(request.send()).await?.body;
        Ok(())
    }
}
