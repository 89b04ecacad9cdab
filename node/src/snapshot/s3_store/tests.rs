//! The store in a bucket of a real S3 server, on a way to it that fails.

use std::time::{Duration, Instant};

use aws_credential_types::provider::{ProvideCredentials, error::CredentialsError, future};
use aws_sdk_s3::config::Credentials;

use self::{
    proxy::{Fault, Proxy},
    server::{Server, store, store_as},
};
use super::{
    super::store::{
        StoreCause,
        tests::{conforms, name},
    },
    options::Encryption,
    *,
};

mod proxy;
mod server;

/// Longest time of one call here: a third of it is one try.
const TIMEOUT: Duration = Duration::from_secs(6);
/// Longest time that anything may take that is bounded by [`TIMEOUT`] and a few more tries, on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// Two parts of an upload and a rest.
fn large() -> Bytes {
    (0..4_500_000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<u8>>().into()
}

async fn upload(store: &S3Store, object: &ObjectName, data: &Bytes) -> Result<(), StoreError> {
    let mut upload = store.upload(object, PutMode::CreateOnly).await?;
    for chunk in data.chunks(1_000_000) {
        if let Err(err) = upload.write(data.slice_ref(chunk)).await {
            upload.abort().await;
            return Err(err);
        }
    }
    upload.finish().await
}

/// Has no credentials.
#[derive(Debug)]
struct Nobody;

impl ProvideCredentials for Nobody {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err(CredentialsError::not_loaded("nobody has any")))
    }
}

fn cause<T: std::fmt::Debug>(result: Result<T, StoreError>, advice: &str) -> StoreCause {
    let err = result.unwrap_err();
    assert!(err.to_string().contains(advice), "{err}");
    err.cause()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_is_a_store_and_says_what_is_wrong_with_it() {
    let server = Server::start().await;
    conforms(&store(server.options())).await;

    let mut encrypted = server.options();
    encrypted.encryption = Encryption::Aes256;
    encrypted.prefix = "elsewhere".to_owned();
    let seen = store(encrypted).list("").await.unwrap();
    assert_eq!(seen, [], "a prefix is a store of its own");

    let mut no_bucket = server.options();
    no_bucket.bucket = "nobody-made-it".to_owned();
    let missing = store(no_bucket).list("").await;
    assert_eq!(cause(missing, "create the bucket, or correct snapshots.store"), StoreCause::Bucket);

    for (key, secret) in [("holdfast", "wrong"), ("nobody", "wrong")] {
        let wrong = store_as(server.options(), Credentials::new(key, secret, None, None, "test"));
        let refused = wrong.put(&name("a"), "x".into(), PutMode::Replace).await;
        assert_eq!(cause(refused, "check AWS_ACCESS_KEY_ID"), StoreCause::Credentials);
    }
    let none = store_as(server.options(), Nobody).list("").await;
    assert_eq!(cause(none, "check AWS_ACCESS_KEY_ID"), StoreCause::Credentials);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_on_the_way_is_survived_or_said_in_time() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.address()).await;
    let mut options = server.options();
    options.endpoint = Some(proxy.url());
    options.timeout = TIMEOUT;
    let (store, direct) = (store(options), store(server.options()));
    let data = large();

    proxy.fail(Fault::SlowDown, 2);
    store.put(&name("slow"), "x".into(), PutMode::CreateOnly).await.unwrap();
    proxy.fail(Fault::SlowDown, u32::MAX);
    let refused = store.put(&name("slower"), "x".into(), PutMode::CreateOnly).await;
    assert_eq!(cause(refused, "take snapshots less often"), StoreCause::Throttled);

    // Lost in the middle of the second part: that part is sent again.
    proxy.fail(Fault::Cut { after_bytes: 12_000_000 }, 1);
    upload(&store, &name("cut"), &data).await.unwrap();
    assert!(direct.get(&name("cut")).await.unwrap() == data, "what arrived is what was sent");
    proxy.fail(Fault::Cut { after_bytes: 100_000 }, u32::MAX);
    let lost = upload(&store, &name("lost"), &data).await;
    assert_eq!(cause(lost, "snapshots.endpoint can be reached"), StoreCause::Connection);

    // Lost while it is read: reading goes on behind what has come.
    proxy.fail(Fault::CutAnswer { after_bytes: 5_000_000 }, 2);
    assert!(store.get(&name("cut")).await.unwrap() == data, "no byte is lost or comes twice");

    let began = Instant::now();
    proxy.fail(Fault::Hang, u32::MAX);
    let hung = store.put(&name("hung"), "x".into(), PutMode::CreateOnly).await;
    assert_eq!(cause(hung, "or raise snapshots.timeout"), StoreCause::Timeout);
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());

    proxy.heal();
    let mut names: Vec<String> =
        direct.list("").await.unwrap().into_iter().map(|info| info.name.to_string()).collect();
    names.retain(|name| name != "slow" && name != "cut");
    assert_eq!(names, Vec::<String>::new(), "half an object is none");
    direct.sweep("", u64::MAX).await.unwrap();
    assert_eq!(direct.sweep("", u64::MAX).await.unwrap(), 0);
    store.put(&name("slower"), "x".into(), PutMode::CreateOnly).await.unwrap();
}
