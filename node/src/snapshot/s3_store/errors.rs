//! Sorts what the service, the connection and the clock said into the errors of snapshot stores.

use std::{error::Error, future::Future};

use aws_sdk_s3::{
    config::http::HttpResponse,
    error::{DisplayErrorContext, ProvideErrorMetadata, SdkError},
};
use futures::FutureExt as _;

use super::S3Store;
use crate::snapshot::store::{StoreCause, StoreError};

/// One call, for what is said about it.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) store: &'a S3Store,
    pub(super) act: &'static str,
    pub(super) name: &'a str,
}

impl Call<'_> {
    /// Carries the call out. The SDK bounds its time.
    pub(super) async fn result<T, E>(
        self,
        call: impl Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    ) -> Result<T, StoreError>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        // Boxed: the SDK's futures are large.
        call.boxed().await.map_err(|err| self.error(&err))
    }

    /// What an error means here.
    pub(super) fn error<E>(self, err: &SdkError<E, HttpResponse>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        match err {
            SdkError::ServiceError(answer) => {
                let status = answer.raw().status().as_u16();
                let (code, message) = (answer.err().code(), answer.err().message());
                self.answered(status, code, message)
            }
            SdkError::ResponseError(answer) => {
                self.answered(answer.raw().status().as_u16(), None, Some("its answer cannot be read"))
            }
            SdkError::TimeoutError(_) => self.unavailable(
                StoreCause::Timeout,
                format!("no answer within {}", humantime::format_duration(self.store.options().timeout)),
            ),
            _ => {
                let text = DisplayErrorContext(err).to_string();
                let credentials = chain(err)
                    .any(|source| source.is::<aws_credential_types::provider::error::CredentialsError>());
                if credentials {
                    return self
                        .refused(StoreCause::Credentials, format!("no credentials: {}", innermost(err)));
                }
                tracing::debug!(error = text, "a call to the snapshot store failed");
                self.unavailable(StoreCause::Connection, innermost(err))
            }
        }
    }

    fn answered(self, status: u16, code: Option<&str>, message: Option<&str>) -> StoreError {
        let reason = match (code, message) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(one), None) | (None, Some(one)) => format!("{one} (HTTP status {status})"),
            (None, None) => format!("HTTP status {status}"),
        };
        match (code.unwrap_or_default(), status) {
            ("NoSuchKey", _) => self.not_found(),
            // Somebody took it for one that nobody continues.
            ("NoSuchUpload", _) if self.act == "write" => self.unavailable(StoreCause::Other, reason),
            ("NoSuchUpload", _) => self.not_found(),
            // It was replaced while it was read.
            ("PreconditionFailed", _) | (_, 412) if self.act == "read" => {
                self.unavailable(StoreCause::Other, reason)
            }
            ("PreconditionFailed", _) | (_, 412) => self.already_exists(),
            ("NoSuchBucket", _) => self.refused(StoreCause::Bucket, reason),
            (
                "InvalidAccessKeyId"
                | "SignatureDoesNotMatch"
                | "ExpiredToken"
                | "InvalidToken"
                | "TokenRefreshRequired",
                _,
            )
            | (_, 401) => self.refused(StoreCause::Credentials, reason),
            ("RequestTimeTooSkewed" | "RequestExpired", _) => self.refused(StoreCause::Clock, reason),
            (
                "AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException",
                _,
            )
            | (_, 301) => self.refused(StoreCause::Region, reason),
            ("QuotaExceeded" | "XMinioStorageFull" | "EntityTooLarge" | "InsufficientStorage", _)
            | (_, 507) => self.unavailable(StoreCause::Space, reason),
            (
                "SlowDown" | "ServiceUnavailable" | "Throttling" | "ThrottlingException" | "TooManyRequests",
                _,
            )
            | (_, 429 | 503) => self.unavailable(StoreCause::Throttled, reason),
            ("RequestTimeout", _) => self.unavailable(StoreCause::Timeout, reason),
            // Whatever answers to a list or a write like this is no store of objects.
            (_, 404) if self.act.starts_with("list") || self.act == "write" => {
                self.refused(StoreCause::Other, reason)
            }
            (_, 404) => self.not_found(),
            (_, 403) => self.refused(StoreCause::Permission, reason),
            // Another writer was at the same object.
            (_, 409) => self.unavailable(StoreCause::Other, reason),
            (_, 400..=499) => self.refused(StoreCause::Other, reason),
            _ => self.unavailable(StoreCause::Other, reason),
        }
    }

    pub(super) fn unavailable(self, cause: StoreCause, reason: String) -> StoreError {
        StoreError::Unavailable { act: self.act, name: self.address(), cause, reason }
    }

    fn refused(self, cause: StoreCause, reason: String) -> StoreError {
        StoreError::Refused { act: self.act, name: self.address(), cause, reason }
    }

    fn not_found(self) -> StoreError {
        match self.name.parse() {
            Ok(name) => StoreError::NotFound { name },
            Err(err) => err,
        }
    }

    fn already_exists(self) -> StoreError {
        match self.name.parse() {
            Ok(name) => StoreError::AlreadyExists { name },
            Err(err) => err,
        }
    }

    fn address(self) -> String {
        format!("s3://{}/{}", self.store.bucket(), self.store.key(self.name))
    }
}

fn chain<'a>(err: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(err), |err: &&'a (dyn Error + 'static)| (*err).source())
}

/// What was behind it all: the outer errors only say that a call failed.
fn innermost(err: &(dyn Error + 'static)) -> String {
    chain(err).last().map(ToString::to_string).unwrap_or_default()
}
