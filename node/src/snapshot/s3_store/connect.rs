//! Makes the client of a bucket: how it finds credentials and the region, how it connects, when it tries again.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_s3::{
    Client,
    config::{Builder, RequestChecksumCalculation, ResponseChecksumValidation, SharedCredentialsProvider},
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

use super::options::S3Options;
use crate::snapshot::store::{StoreCause, StoreError};

/// Tries of one call.
const ATTEMPTS: u32 = 5;
/// About the pause before the second try; random, and doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A service that is there answers sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// What services with an endpoint of their own take as region when nobody says one.
const ANY_REGION: &str = "us-east-1";

/// The client for the bucket that `options` name.
pub(super) async fn connect(
    options: &S3Options,
    credentials: Option<SharedCredentialsProvider>,
) -> Result<Client, StoreError> {
    let http =
        aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12()).http_client(http);
    if let Some(region) = &options.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(endpoint) = &options.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    if let Some(credentials) = credentials {
        loader = loader.credentials_provider(credentials);
    }
    let found = loader.load().await;
    let client = Builder::from(&found).region(region(options, &found)?);
    // Bodies are signed, and what was written is read again: services that know no newer checksums take it too.
    let client = client
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
        .force_path_style(options.path_style.unwrap_or(found.endpoint_url().is_some()))
        .timeout_config(timeouts(options.timeout))
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(ATTEMPTS)
                .with_initial_backoff(FIRST_PAUSE)
                .with_max_backoff(LONGEST_PAUSE),
        );
    Ok(Client::from_conf(client.build()))
}

/// One try gets a third of the call's time, so that a service that hangs leaves time for another.
fn timeouts(call: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT.min(call / 3))
        .operation_attempt_timeout(call / 3)
        .operation_timeout(call)
        .build()
}

fn region(options: &S3Options, found: &aws_config::SdkConfig) -> Result<Region, StoreError> {
    match (found.region(), found.endpoint_url()) {
        (Some(region), _) => Ok(region.clone()),
        (None, Some(_endpoint)) => Ok(Region::from_static(ANY_REGION)),
        (None, None) => Err(StoreError::Refused {
            act: "use",
            name: format!("s3://{}", options.bucket),
            cause: StoreCause::Region,
            reason: "no region is known".to_owned(),
        }),
    }
}
