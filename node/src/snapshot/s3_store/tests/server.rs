//! A real S3 server, SeaweedFS, with one bucket, for one test. `make tools` puts it into `target/tools`.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use tempfile::TempDir;

use super::super::{
    S3Store,
    options::{Encryption, S3Options},
};

const BUCKET: &str = "snapshots";
const ACCESS_KEY: &str = "holdfast";
const SECRET_KEY: &str = "holdfast-secret";
/// It starts within two seconds where nothing else runs.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Ports it listens on: of four services, each with a second one.
const PORTS: [&str; 8] = [
    "-master.port",
    "-master.port.grpc",
    "-volume.port",
    "-volume.port.grpc",
    "-filer.port",
    "-filer.port.grpc",
    "-s3.port",
    "-s3.port.grpc",
];
/// Which of them speaks S3.
const S3_PORT: usize = 6;

/// The server; it ends with this.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Server {
    /// Starts it, and makes the bucket.
    pub(super) async fn start() -> Server {
        let folder = TempDir::new().unwrap();
        let ports = free_ports();
        let identities = serde_json::json!({ "identities": [{
            "name": "holdfast",
            "credentials": [{ "accessKey": ACCESS_KEY, "secretKey": SECRET_KEY }],
            "actions": ["Admin", "Read", "Write", "List"],
        }] });
        std::fs::write(folder.path().join("identities.json"), identities.to_string()).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let process = Command::new(program())
            .arg("server")
            .args([
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-filer",
                "-s3",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
            ])
            .args(["-master.volumeSizeLimitMB=64", "-volume.max=8", "-volume.minFreeSpace=1MiB"])
            .args(PORTS.iter().zip(&ports).map(|(flag, port)| format!("{flag}={port}")))
            .arg(format!("-dir={}", folder.path().display()))
            .arg(format!("-s3.config={}", folder.path().join("identities.json").display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server =
            Server { process, address: SocketAddr::from((Ipv4Addr::LOCALHOST, ports[S3_PORT])), folder };
        server.make_bucket().await;
        server
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a store in its bucket is told.
    pub(super) fn options(&self) -> S3Options {
        S3Options {
            bucket: BUCKET.to_owned(),
            prefix: "a/prefix".to_owned(),
            endpoint: Some(format!("http://{}", self.address)),
            region: Some("us-east-1".to_owned()),
            path_style: None,
            encryption: Encryption::BucketDefault,
            timeout: Duration::from_secs(20),
        }
    }

    async fn make_bucket(&self) {
        let store = store(S3Options { timeout: Duration::from_secs(3), ..self.options() });
        let deadline = tokio::time::Instant::now() + STARTS_WITHIN;
        let mut pause = tokio::time::interval(Duration::from_millis(250));
        loop {
            pause.tick().await;
            match store.client().await.unwrap().create_bucket().bucket(BUCKET).send().await {
                Ok(_) => return,
                Err(err) if tokio::time::Instant::now() >= deadline => {
                    let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    panic!("the S3 server does not start: {err:?}\n{log}");
                }
                Err(_) => {}
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A store with the credentials that the server knows.
pub(super) fn store(options: S3Options) -> S3Store {
    store_as(options, Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test"))
}

/// A store with credentials that come from `provider`.
pub(super) fn store_as(
    options: S3Options,
    provider: impl aws_credential_types::provider::ProvideCredentials + 'static,
) -> S3Store {
    S3Store::with_credentials(options, Some(SharedCredentialsProvider::new(provider)))
}

fn program() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/weed");
    assert!(path.exists(), "there is no {}; run `make tools`", path.display());
    path
}

/// Ports that nobody uses now.
fn free_ports() -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        PORTS.iter().map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}
