//! Follows a runbook: runs each command that stands in it, as it stands there. What starts a member goes on in the background.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    HOLDFAST,
    harness::{Cluster, eventually},
};

const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// Variables of a runbook.
pub(crate) type Variables = [(&'static str, String)];

/// The commands of a runbook, by the heading that they stand under.
pub(crate) struct Runbook(Vec<(String, String)>);

/// Members that a test has started itself; ended when dropped.
#[derive(Default)]
pub(crate) struct Newcomers {
    next: u64,
    running: BTreeMap<u64, (Child, PathBuf)>,
}

impl Runbook {
    pub(crate) fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks").join(name);
        let (mut commands, mut heading, mut inside) = (Vec::new(), String::new(), false);
        for line in fs::read_to_string(path).unwrap().lines() {
            match line {
                "```sh" => inside = true,
                "```" => inside = false,
                command if inside => commands.push((heading.clone(), command.to_owned())),
                text => {
                    if let Some(title) = text.strip_prefix('#') {
                        title.trim_matches(['#', ' ']).clone_into(&mut heading);
                    }
                }
            }
        }
        Self(commands)
    }

    /// Runs the commands under a heading, each of which must succeed.
    #[track_caller]
    pub(crate) fn follow(
        &self,
        heading: &str,
        cluster: &Cluster,
        variables: &Variables,
        newcomers: &mut Newcomers,
    ) {
        let commands: Vec<&String> =
            self.0.iter().filter(|(under, _)| under == heading).map(|(_, command)| command).collect();
        assert!(!commands.is_empty(), "nothing stands under {heading}");
        for command in commands {
            let mut shell = shell(command, cluster, variables);
            if command.starts_with("holdfast node ") {
                newcomers.start(shell, cluster);
            } else {
                let done = shell.output().unwrap();
                let said = String::from_utf8_lossy(&done.stderr);
                assert!(done.status.success(), "{command}: {said}");
            }
        }
    }
}

fn shell(command: &str, cluster: &Cluster, variables: &Variables) -> Command {
    let folder = Path::new(HOLDFAST).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    // The shell becomes the command, so that it can be ended.
    shell.args(["-c", &format!("exec {command}")]).env("PATH", path).env_remove("HOLDFAST_CONFIG");
    shell.env("HOLDFAST_ENDPOINTS", cluster.endpoints()).envs(variables.iter().cloned()).stdin(Stdio::null());
    shell
}

impl Newcomers {
    /// Where the next member is to be.
    pub(crate) fn place(&mut self, cluster: &Cluster, id: u16) -> Vec<(&'static str, String)> {
        self.next = u64::from(id);
        let file = |kind: &str| cluster.scratch().join(format!("new-{id}{kind}")).display().to_string();
        let peer = cluster.grpc(id).trim_start_matches("http://").to_owned();
        let (host, port) = peer.rsplit_once(':').unwrap();
        let port: u16 = port.parse().unwrap();
        vec![
            ("HTTP", cluster.http(id)),
            ("GRPC", cluster.grpc(id)),
            ("PEER", format!("{host}:{}", port + 1)),
            ("DATA", file("")),
            ("CONFIG", file(".toml")),
        ]
    }

    fn start(&mut self, mut command: Command, cluster: &Cluster) {
        let log = cluster.scratch().join(format!("new-{}.log", self.next));
        let file = File::create(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        self.running.insert(self.next, (child, log));
    }

    /// Waits until a member ends by itself, and says why.
    #[track_caller]
    pub(crate) fn ends(&mut self, id: u64, why: &str) {
        let (mut child, log) = self.running.remove(&id).unwrap();
        eventually("the member ends", ENDS_WITHIN, || child.try_wait().unwrap().map(drop));
        let said = fs::read_to_string(log).unwrap();
        assert!(said.contains(why), "{said}");
    }
}

impl Drop for Newcomers {
    fn drop(&mut self) {
        for (child, _) in self.running.values_mut() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
