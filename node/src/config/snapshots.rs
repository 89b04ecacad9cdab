//! Settings of snapshots for disaster recovery: where they are kept, how often they are taken, which stay.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Fault, MemberConfig};
use crate::snapshot::s3_store::options::{Encryption, S3Options};

/// Snapshots more often than this would be most of what the member does.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);
/// In less no store far away answers.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
/// What the address of a bucket begins with.
const BUCKET_SCHEME: &str = "s3://";

/// Snapshots for disaster recovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotsConfig {
    /// Where they are stored: a folder, or `s3://bucket/prefix`; `snapshots` below the data folder where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// URL of the S3 service; Amazon's, or what `AWS_ENDPOINT_URL` says, where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Region of the bucket; what `AWS_REGION`, the profile or the machine say where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether the bucket stands in the path of URLs and not in their host name; where it is not set, with an endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_style: Option<bool>,
    /// How the S3 service encrypts what it keeps.
    pub sse: Sse,
    /// Key of the key management service, its id or ARN; the account's default key where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse_kms_key: Option<String>,
    /// Longest time of one call to the S3 service, with all its tries. A part of 8 MiB has a third of it.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// How often each group's leader takes one.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// How many of each group are kept.
    pub keep: u32,
    /// None older than this is kept, but for the newest of each group; whatever their age where it is not set.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub max_age: Option<Duration>,
}

/// How an S3 service encrypts what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sse {
    /// As the bucket says.
    #[serde(rename = "none")]
    None,
    /// With keys of S3 itself.
    #[serde(rename = "AES256")]
    Aes256,
    /// With a key of the key management service.
    #[serde(rename = "aws:kms")]
    Kms,
}

/// Where snapshots are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// In a folder.
    Folder(PathBuf),
    /// In a bucket.
    Bucket(S3Options),
}

impl Default for SnapshotsConfig {
    fn default() -> Self {
        Self {
            store: None,
            endpoint: None,
            region: None,
            path_style: None,
            sse: Sse::None,
            sse_kms_key: None,
            timeout: Duration::from_secs(60),
            interval: Duration::from_secs(600),
            keep: 24,
            max_age: None,
        }
    }
}

impl MemberConfig {
    /// Where snapshots are stored.
    ///
    /// # Errors
    /// What is wrong with `snapshots.store`, for people.
    pub fn snapshot_place(&self) -> Result<StorePlace, String> {
        match self.snapshots.store.as_deref() {
            None => Ok(StorePlace::Folder(self.data_dir.join("snapshots"))),
            Some(text) => self.snapshots.place(text),
        }
    }
}

impl SnapshotsConfig {
    fn place(&self, text: &str) -> Result<StorePlace, String> {
        let Some(address) = text.strip_prefix(BUCKET_SCHEME) else {
            return match text {
                "" => Err("empty; leave it out for the folder below data_dir".to_owned()),
                other if other.contains("://") => {
                    Err(format!("{other:?} is neither a folder nor an address like s3://bucket/prefix"))
                }
                folder => Ok(StorePlace::Folder(folder.into())),
            };
        };
        let (bucket, prefix) = address.split_once('/').unwrap_or((address, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(plain) {
            return Err(format!(
                "{bucket:?} is no name of a bucket; use 3 to 63 of a-z, 0-9, '-' and '.', as in s3://bucket/prefix"
            ));
        }
        let prefix_is_name = prefix.parse::<crate::snapshot::store::ObjectName>().is_ok();
        if !prefix.is_empty() && (!prefix_is_name || prefix.len() > 512) {
            return Err(format!(
                "{prefix:?} is no prefix; use segments of a-z, A-Z, 0-9, '.', '_' and '-', separated by single slashes, at most 512 bytes"
            ));
        }
        Ok(StorePlace::Bucket(S3Options {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            path_style: self.path_style,
            encryption: match self.sse {
                Sse::None => Encryption::BucketDefault,
                Sse::Aes256 => Encryption::Aes256,
                Sse::Kms => Encryption::Kms { key: self.sse_kms_key.clone() },
            },
            timeout: self.timeout,
        }))
    }
}

/// What is wrong or unwise in this section.
pub(super) fn validate(config: &MemberConfig, faults: &mut Vec<Fault>) {
    let snapshots = &config.snapshots;
    let mut at_least = |key: &str, given: Duration, least: Duration| {
        if given < least {
            let text = humantime::format_duration;
            faults.push(Fault::error(
                key,
                format!("{} is too short; give at least {}", text(given), text(least)),
            ));
        }
    };
    at_least("snapshots.interval", snapshots.interval, SHORTEST_INTERVAL);
    at_least("snapshots.timeout", snapshots.timeout, SHORTEST_TIMEOUT);
    if let Some(max_age) = snapshots.max_age {
        at_least("snapshots.max_age", max_age, snapshots.interval);
    }
    if snapshots.keep == 0 {
        faults.push(Fault::error("snapshots.keep", "0 would delete each snapshot at once; keep at least 1"));
    }
    let place = config.snapshot_place();
    if let Err(message) = &place {
        faults.push(Fault::error("snapshots.store", message.clone()));
    }
    let url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    if let Some(endpoint) = snapshots.endpoint.as_deref().filter(|text| !url(text)) {
        faults.push(Fault::error(
            "snapshots.endpoint",
            format!("{endpoint:?} is no URL, like https://s3.example.com"),
        ));
    }
    if snapshots.sse_kms_key.is_some() && snapshots.sse != Sse::Kms {
        faults.push(Fault::error(
            "snapshots.sse_kms_key",
            "a key is used only with snapshots.sse = \"aws:kms\"; set it, or leave the key out",
        ));
    }
    if matches!(place, Ok(StorePlace::Folder(_))) {
        let for_buckets = [
            ("snapshots.endpoint", snapshots.endpoint.is_some()),
            ("snapshots.region", snapshots.region.is_some()),
            ("snapshots.path_style", snapshots.path_style.is_some()),
            ("snapshots.sse", snapshots.sse != Sse::None),
        ];
        for (key, _) in for_buckets.into_iter().filter(|(_, given)| *given) {
            faults.push(Fault::warning(
                key,
                "does nothing: snapshots.store is a folder, not s3://bucket/prefix",
            ));
        }
    }
}
