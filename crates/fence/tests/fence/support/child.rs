//! This test binary again, as a child process that runs one test and can be killed.

use std::{
    io::{BufRead, BufReader, Lines, Read},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A child process. Killed when dropped.
pub(crate) struct TestChild {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _stdin: Option<ChildStdin>,
}

impl TestChild {
    /// Runs the test `name` with `environment`.
    pub(crate) fn start(name: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1", name])
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take();
        Self { child, lines, _stdin: stdin }
    }

    /// The rest of the next line that starts with `word`; `None` at the end of the output.
    pub(crate) fn next(&mut self, word: &str) -> Option<String> {
        for line in self.lines.by_ref() {
            if let Some(rest) = line.unwrap().strip_prefix(word) {
                return Some(rest.trim().to_owned());
            }
        }
        None
    }

    /// SIGKILL, and waits for the end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for TestChild {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In the child: ends the process as soon as the parent is gone.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
}

/// In the child: says something that [`TestChild::next`] finds, also behind the harness's unfinished line.
pub(crate) fn say(line: &str) {
    println!("\n{line}");
}
