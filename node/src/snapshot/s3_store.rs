//! The snapshot store in a bucket of S3, or of anything that speaks its protocol.
//!
//! Each call has a deadline, and is tried again with growing, random pauses within it. The bucket is first asked for when
//! the first object is: a store that is away keeps no member from starting.

use std::sync::Arc;

use aws_sdk_s3::{
    Client,
    config::SharedCredentialsProvider,
    operation::{RequestId as _, put_object::builders::PutObjectFluentBuilder},
    primitives::ByteStream,
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use tokio::sync::OnceCell;

use self::{errors::Call, options::S3Options, reading::Reading, upload::S3Upload};
use super::store::{ObjectInfo, ObjectName, ObjectStream, PutMode, SnapshotStore, StoreError, Upload};

mod connect;
mod errors;
pub mod options;
mod reading;
mod upload;

/// Objects in a bucket. Clones are the same.
#[derive(Clone, Debug)]
pub struct S3Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: S3Options,
    /// None: those that programs for AWS find.
    credentials: Option<SharedCredentialsProvider>,
    client: OnceCell<Client>,
}

impl S3Store {
    /// A store in the bucket that `options` name. Asks nobody yet.
    #[must_use]
    pub fn new(options: S3Options) -> S3Store {
        S3Store::with_credentials(options, None)
    }

    fn with_credentials(options: S3Options, credentials: Option<SharedCredentialsProvider>) -> S3Store {
        S3Store { shared: Arc::new(Shared { options, credentials, client: OnceCell::new() }) }
    }

    fn options(&self) -> &S3Options {
        &self.shared.options
    }

    fn bucket(&self) -> &str {
        &self.shared.options.bucket
    }

    async fn client(&self) -> Result<&Client, StoreError> {
        // Boxed: it is large, and needed once.
        let Shared { options, credentials, client } = self.shared.as_ref();
        client.get_or_try_init(|| connect::connect(options, credentials.clone()).boxed()).await
    }

    /// The key of an object, or what keys of objects with this beginning begin with.
    fn key(&self, name: &str) -> String {
        match self.options().prefix.as_str() {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        }
    }

    /// The name of the object with this key, if it has one.
    fn name(&self, key: &str) -> Option<ObjectName> {
        let name = match self.options().prefix.as_str() {
            "" => key,
            prefix => key.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        name.parse().ok()
    }

    fn call<'a>(&'a self, act: &'static str, name: &'a str) -> Call<'a> {
        Call { store: self, act, name }
    }

    async fn put_now(&self, name: &ObjectName, data: Bytes, mode: PutMode) -> Result<(), StoreError> {
        let request = self.put_request(self.client().await?, name, mode).body(ByteStream::from(data));
        let call = self.call("write", name.as_str());
        let answer = call.result(request.send()).await?;
        tracing::debug!(%name, request = answer.request_id(), "wrote an object");
        Ok(())
    }

    fn put_request(&self, client: &Client, name: &ObjectName, mode: PutMode) -> PutObjectFluentBuilder {
        let encryption = &self.options().encryption;
        let request = client
            .put_object()
            .bucket(self.bucket())
            .key(self.key(name.as_str()))
            .set_server_side_encryption(encryption.method())
            .set_ssekms_key_id(encryption.kms_key());
        match mode {
            PutMode::CreateOnly => request.if_none_match("*"),
            PutMode::Replace => request,
        }
    }

    async fn list_now(&self, prefix: &str) -> Result<Vec<ObjectInfo>, StoreError> {
        let client = self.client().await?;
        let mut infos = Vec::new();
        let mut token = None;
        loop {
            let request = client
                .list_objects_v2()
                .bucket(self.bucket())
                .prefix(self.key(prefix))
                .set_continuation_token(token);
            let page = self.call("list", prefix).result(request.send()).await?;
            for object in page.contents() {
                let (Some(name), Some(size)) = (object.key().and_then(|key| self.name(key)), object.size())
                else {
                    continue;
                };
                infos.push(ObjectInfo { name, size_bytes: u64::try_from(size).unwrap_or(0) });
            }
            token = page.next_continuation_token().map(str::to_owned);
            if token.is_none() || page.is_truncated() != Some(true) {
                break;
            }
        }
        infos.sort_unstable();
        Ok(infos)
    }

    async fn delete_now(&self, name: &ObjectName) -> Result<(), StoreError> {
        let request = self.client().await?.delete_object().bucket(self.bucket()).key(self.key(name.as_str()));
        match self.call("delete", name.as_str()).result(request.send()).await {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(err) => Err(err),
        }
    }

    async fn sweep_now(&self, prefix: &str, before_unix_ms: u64) -> Result<usize, StoreError> {
        let client = self.client().await?;
        let (mut key_marker, mut id_marker) = (None, None);
        let mut old = Vec::new();
        loop {
            let request = client
                .list_multipart_uploads()
                .bucket(self.bucket())
                .prefix(self.key(prefix))
                .set_key_marker(key_marker)
                .set_upload_id_marker(id_marker);
            let page = self.call("list uploads of", prefix).result(request.send()).await?;
            for upload in page.uploads() {
                let begun = upload
                    .initiated()
                    .and_then(|at| at.to_millis().ok())
                    .and_then(|ms| u64::try_from(ms).ok());
                let name = upload.key().and_then(|key| self.name(key));
                if begun.is_some_and(|begun| begun < before_unix_ms)
                    && let (Some(name), Some(id)) = (name, upload.upload_id())
                {
                    old.push((name, id.to_owned()));
                }
            }
            key_marker = page.next_key_marker().map(str::to_owned);
            id_marker = page.next_upload_id_marker().map(str::to_owned);
            if key_marker.is_none() || page.is_truncated() != Some(true) {
                break;
            }
        }
        for (name, id) in &old {
            let key = self.key(name.as_str());
            let request = client.abort_multipart_upload().bucket(self.bucket()).key(key).upload_id(id);
            match self.call("abort the upload of", name.as_str()).result(request.send()).await {
                // Aborted or completed meanwhile.
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(old.len())
    }

    async fn stream_now(&self, name: &ObjectName) -> Result<ObjectStream, StoreError> {
        let reading = Reading::open(self, name).boxed().await?;
        Ok(stream::try_unfold(reading, Reading::next).boxed())
    }

    async fn get_now(&self, name: &ObjectName) -> Result<Bytes, StoreError> {
        let chunks: Vec<Bytes> = self.stream_now(name).await?.try_collect().await?;
        Ok(chunks.concat().into())
    }
}

impl SnapshotStore for S3Store {
    fn put<'a>(
        &'a self,
        name: &'a ObjectName,
        data: Bytes,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.put_now(name, data, mode).boxed()
    }

    fn upload<'a>(
        &'a self,
        name: &'a ObjectName,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<Box<dyn Upload>, StoreError>> {
        let upload = S3Upload::new(self.clone(), name.clone(), mode);
        async move { Ok(Box::new(upload) as Box<dyn Upload>) }.boxed()
    }

    fn get<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        self.get_now(name).boxed()
    }

    fn stream<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<ObjectStream, StoreError>> {
        self.stream_now(name).boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StoreError>> {
        self.list_now(prefix).boxed()
    }

    fn delete<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<(), StoreError>> {
        self.delete_now(name).boxed()
    }

    fn sweep<'a>(&'a self, prefix: &'a str, before_unix_ms: u64) -> BoxFuture<'a, Result<usize, StoreError>> {
        self.sweep_now(prefix, before_unix_ms).boxed()
    }
}

#[cfg(test)]
mod tests;
