//! An object on its way into a bucket: in one put if it is small, in parts if not. At most one part is held in memory.

use aws_sdk_s3::{
    primitives::ByteStream,
    types::{CompletedMultipartUpload, CompletedPart},
};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, future::BoxFuture};

use super::S3Store;
use crate::snapshot::store::{ObjectName, PutMode, StoreCause, StoreError, Upload};

/// Length of a part, bytes. S3 takes no less than 5 MiB and no more than 10,000 of them: enough for 80 GiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// An object that is not there yet.
#[derive(Debug)]
pub(super) struct S3Upload {
    store: S3Store,
    name: ObjectName,
    mode: PutMode,
    /// What no part has taken yet.
    rest: BytesMut,
    parts: Option<Parts>,
}

/// The parts that are in the bucket, under an upload's id.
#[derive(Debug)]
struct Parts {
    id: String,
    done: Vec<CompletedPart>,
}

impl S3Upload {
    pub(super) fn new(store: S3Store, name: ObjectName, mode: PutMode) -> S3Upload {
        S3Upload { store, name, mode, rest: BytesMut::new(), parts: None }
    }

    async fn write_now(&mut self, chunk: Bytes) -> Result<(), StoreError> {
        self.rest.extend_from_slice(&chunk);
        while self.rest.len() >= PART_BYTES {
            let part = self.rest.split_to(PART_BYTES).freeze();
            self.send(part).await?;
        }
        Ok(())
    }

    async fn send(&mut self, part: Bytes) -> Result<(), StoreError> {
        let store = self.store.clone();
        let call = store.call("write", self.name.as_str());
        let client = store.client().await?;
        let key = store.key(self.name.as_str());
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => {
                let encryption = &store.options().encryption;
                let request = client
                    .create_multipart_upload()
                    .bucket(store.bucket())
                    .key(&key)
                    .set_server_side_encryption(encryption.method())
                    .set_ssekms_key_id(encryption.kms_key());
                let id = call.result(request.send()).await?.upload_id;
                let id = id.ok_or_else(|| {
                    call.unavailable(StoreCause::Other, "it gave the upload no id".to_owned())
                })?;
                none.insert(Parts { id, done: Vec::new() })
            }
        };
        // Parts count from 1; far fewer than fit.
        let number = i32::try_from(parts.done.len() + 1).unwrap_or(i32::MAX);
        let request = client
            .upload_part()
            .bucket(store.bucket())
            .key(&key)
            .upload_id(&parts.id)
            .part_number(number)
            .body(ByteStream::from(part));
        let tag = call.result(request.send()).await?.e_tag;
        parts.done.push(CompletedPart::builder().part_number(number).set_e_tag(tag).build());
        Ok(())
    }

    async fn finish_now(mut self) -> Result<(), StoreError> {
        let rest = std::mem::take(&mut self.rest).freeze();
        if self.parts.is_none() {
            return self.store.put_now(&self.name, rest, self.mode).await;
        }
        let completed = match if rest.is_empty() { Ok(()) } else { self.send(rest).await } {
            Ok(()) => self.complete().await,
            Err(err) => Err(err),
        };
        if completed.is_err() {
            self.abort_now().await;
        }
        completed
    }

    async fn complete(&mut self) -> Result<(), StoreError> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let done = std::mem::take(&mut parts.done);
        let request = self
            .store
            .client()
            .await?
            .complete_multipart_upload()
            .bucket(self.store.bucket())
            .key(self.store.key(self.name.as_str()))
            .upload_id(&parts.id)
            .multipart_upload(CompletedMultipartUpload::builder().set_parts(Some(done)).build());
        let request = match self.mode {
            PutMode::CreateOnly => request.if_none_match("*"),
            PutMode::Replace => request,
        };
        self.store.call("write", self.name.as_str()).result(request.send()).await.map(|_answer| ())
    }

    async fn abort_now(self) {
        let Some(parts) = &self.parts else { return };
        let aborted = async {
            let request = self
                .store
                .client()
                .await?
                .abort_multipart_upload()
                .bucket(self.store.bucket())
                .key(self.store.key(self.name.as_str()))
                .upload_id(&parts.id);
            self.store.call("abort the upload of", self.name.as_str()).result(request.send()).await
        };
        match aborted.await {
            Ok(_) | Err(StoreError::NotFound { .. }) => {}
            // It costs room until then, and is never taken for an object.
            Err(err) => tracing::warn!(error = %err, "an unfinished upload stays until it is swept"),
        }
    }
}

impl Upload for S3Upload {
    fn write(&mut self, chunk: Bytes) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write_now(chunk).boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>> {
        (*self).finish_now().boxed()
    }

    fn abort(self: Box<Self>) -> BoxFuture<'static, ()> {
        (*self).abort_now().boxed()
    }
}
