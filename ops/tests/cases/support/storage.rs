//! The Storage Service as a process, and writes to it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::Arc,
};

use holdfast_history::Fact;
use serde_json::{Value, json};

use super::{Record, World};
use crate::harness::{Answer, get, holdfast, post, put};

/// `holdfast storage serve` with a database of its own.
#[derive(Debug)]
pub(crate) struct Storage {
    record: Arc<Record>,
    child: Child,
    pub(crate) url: String,
}

impl Storage {
    /// Starts it. `asks` makes it check tokens it has not seen with the lock service.
    pub(crate) fn start(world: &World, asks: bool) -> Self {
        let mut command = holdfast();
        if asks {
            command.env("HOLDFAST_ENDPOINTS", world.endpoints().join(","));
        }
        command
            .args(["storage", "serve", "--listen", "127.0.0.1:0", "--database"])
            .arg(world.scratch().join("storage.db"))
            .arg(format!("--parent-pid={}", std::process::id()));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("ready http=").expect("the storage service is ready").to_owned();
        Self { record: world.record.clone(), child, url }
    }

    /// Writes an object.
    pub(crate) fn write(&self, object: &str, lock: &str, token: u64, data: &str) -> Answer {
        let sent = self.record.now();
        let body = json!({"lock": lock, "token": token, "data": data});
        let answer = put(&format!("{}/v1/objects/{object}", self.url), &body);
        self.record.note(Fact::FencedWrite {
            object: object.into(),
            lock: lock.into(),
            token,
            sent,
            accepted: answer.status == 200,
        });
        answer
    }

    /// Raises the mark of a lock, as a holder does before it reads.
    pub(crate) fn advance(&self, lock: &str, token: u64) -> Answer {
        post(&format!("{}/v1/fence", self.url), &json!({"lock": lock, "token": token}))
    }

    /// What an object holds.
    pub(crate) fn read(&self, object: &str) -> Value {
        get(&format!("{}/v1/objects/{object}", self.url)).expect(200)["data"].clone()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
