//! What a store in a bucket is told: which bucket, where, and how objects are encrypted there.
//!
//! Credentials are no part of it: they come the way all programs for AWS find them.

use std::time::Duration;

use aws_sdk_s3::types::ServerSideEncryption;

/// Where a bucket is, and how to talk to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Options {
    /// The bucket.
    pub bucket: String,
    /// What the keys of all objects begin with, without a slash at its ends; may be empty.
    pub prefix: String,
    /// URL of the service; none: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or Amazon's for the region.
    pub endpoint: Option<String>,
    /// Region of the bucket; none: `AWS_REGION`, the profile, or the machine's own.
    pub region: Option<String>,
    /// Whether the bucket stands in the path of the URL; none: wherever an endpoint is given.
    pub path_style: Option<bool>,
    /// How the service encrypts objects.
    pub encryption: Encryption,
    /// Longest time of one call, with all its tries.
    pub timeout: Duration,
}

/// How the service encrypts objects at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// As the bucket says.
    BucketDefault,
    /// With keys of S3 itself.
    Aes256,
    /// With a key of the key management service.
    Kms {
        /// Its id or ARN; none: the account's default key.
        key: Option<String>,
    },
}

impl Encryption {
    pub(super) fn method(&self) -> Option<ServerSideEncryption> {
        match self {
            Encryption::BucketDefault => None,
            Encryption::Aes256 => Some(ServerSideEncryption::Aes256),
            Encryption::Kms { .. } => Some(ServerSideEncryption::AwsKms),
        }
    }

    pub(super) fn kms_key(&self) -> Option<String> {
        match self {
            Encryption::Kms { key } => key.clone(),
            Encryption::BucketDefault | Encryption::Aes256 => None,
        }
    }
}
