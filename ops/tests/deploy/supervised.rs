//! What a member tells its supervisor, heard on a socket as systemd would hear it.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    os::unix::net::UnixDatagram,
    path::Path,
    time::{Duration, Instant},
};

use holdfast_faults::{Shim, Switch};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use crate::{
    harness::{eventually, post},
    process::Process,
};

const SOON: Duration = Duration::from_secs(30);
/// How long the supervisor waits for a sign of life.
const PATIENCE: Duration = Duration::from_secs(3);

/// A member, and the ear of its supervisor.
struct Supervised {
    member: Process,
    ear: UnixDatagram,
    disk: Switch,
    http: String,
}

impl Supervised {
    /// A member of a cluster of one, in its own folder.
    fn start(folder: &Path) -> Self {
        let (socket, config) = (folder.join("notify"), folder.join("member.toml"));
        let ear = UnixDatagram::bind(&socket).unwrap();
        let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [http, grpc, peer] = sockets.map(|socket| socket.local_addr().unwrap());
        let text = format!(
            "member = 1\ndata_dir = {:?}\n[listen]\nhttp = \"{http}\"\ngrpc = \"{grpc}\"\npeer = \"{peer}\"\n[[members]]\n\
             id = 1\nhttp = \"http://{http}\"\ngrpc = \"http://{grpc}\"\npeer = \"{peer}\"\n",
            folder.join("data").display().to_string()
        );
        fs::write(&config, text).unwrap();
        let (shim, mut disk) = (Shim::compile(folder).unwrap(), None);
        let member = Process::start(&config, |node| {
            node.env("NOTIFY_SOCKET", &socket).env_remove("WATCHDOG_PID");
            node.env("WATCHDOG_USEC", PATIENCE.as_micros().to_string());
            disk = Some(shim.load(node, &folder.join("faults")).unwrap());
        });
        Self { member, ear, disk: disk.unwrap(), http: format!("http://{http}") }
    }

    /// What is said next, if anything is within the time.
    fn hear(&self, within: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        self.ear.set_read_timeout(Some(within)).unwrap();
        let length = self.ear.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).trim_end().to_owned())
    }

    /// Listens until this is said; answers all that was said before.
    #[track_caller]
    fn hear_until(&self, what: &str) -> Vec<String> {
        let mut before = Vec::new();
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match self.hear(left) {
                Some(said) if said == what => return before,
                Some(said) => before.push(said),
                None => panic!("{what} was not said, but {before:?}"),
            }
        }
    }
}

#[test]
fn it_says_when_it_serves_that_it_lives_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervised = Supervised::start(folder.path());
    let before: BTreeSet<String> = supervised.hear_until("READY=1").into_iter().collect();
    assert!(before.contains("STATUS=serving"), "{before:?}");
    supervised.hear_until("WATCHDOG=1");
    supervised.hear_until("WATCHDOG=1");
    kill(Pid::from_raw(supervised.member.0.id() as i32), Signal::SIGTERM).unwrap();
    supervised.hear_until("STOPPING=1");
    let status = eventually("the member ends", SOON, || supervised.member.0.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

/// The process runs and its timers go on; only its disk does not answer any more.
#[test]
fn a_member_whose_disk_hangs_does_not_say_that_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let supervised = Supervised::start(folder.path());
    supervised.hear_until("READY=1");
    supervised.hear_until("WATCHDOG=1");
    supervised.disk.delay_syncs(Duration::from_secs(3_600)).unwrap();
    let opening = std::thread::spawn({
        let url = format!("{}/v1/sessions", supervised.http);
        move || post(&url, &json!({"ttl_ms": 60_000}))
    });
    eventually("the commit thread hangs", SOON, || (supervised.disk.bitten().unwrap() > 0).then_some(()));
    // One sign of life may have been on its way.
    let silence = eventually("a silence that the supervisor would act on", SOON, || {
        let begun = Instant::now();
        let heard = std::iter::from_fn(|| supervised.hear(PATIENCE));
        heard.take_while(|said| said != "WATCHDOG=1").for_each(drop);
        (begun.elapsed() >= PATIENCE).then(|| begun.elapsed())
    });
    assert!(silence >= PATIENCE);
    supervised.disk.heal().unwrap();
    supervised.hear_until("WATCHDOG=1");
    opening.join().unwrap();
}
