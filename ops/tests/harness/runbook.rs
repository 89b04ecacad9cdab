//! Runs the commands of a runbook as an operator would type them: all of them, one after the other, in one shell.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use super::HOLDFAST;

/// Runs every `sh` block of the runbook with these variables; answers what was printed. What it starts in the background ends
/// with it.
#[track_caller]
pub(crate) fn run(runbook: &str, variables: &[(&str, String)]) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("runbooks").join(runbook);
    let script = format!("set -eux\n{}", commands(&fs::read_to_string(&path).unwrap()));
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let programs = Path::new(HOLDFAST).parent().unwrap().display().to_string();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(script)
        .env_remove("HOLDFAST_CONFIG")
        .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap_or_default()))
        .envs(variables.iter().map(|(name, value)| (*name, value)))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap());
    let mut shell = shell.spawn().unwrap();
    let group = Pid::from_raw(shell.id() as i32);
    let status = shell.wait().unwrap();
    // Those in the background; there may be none.
    let _ = killpg(group, Signal::SIGKILL);
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    assert!(status.success(), "{runbook}: {status}\n{}\n{}", read(&out), read(&err));
    read(&out)
}

/// The lines of all `sh` blocks.
fn commands(text: &str) -> String {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => lines.push(line),
            _ => {}
        }
    }
    assert!(!lines.is_empty(), "the runbook has no commands");
    lines.join("\n")
}
