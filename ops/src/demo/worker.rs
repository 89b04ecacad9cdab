//! The hidden verb that the demo's workers run: a client process that does what it is told on standard input, one word
//! and its arguments a line, and tells what happened on standard output, one JSON object a line.

use std::{sync::Arc, time::Duration};

use clap::Args;
use holdfast_client::{Client, Leadership, LockGuard, Session};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    sync::Mutex,
};

use super::web;
use crate::{
    cli::Global,
    cluster,
    failure::{self, Ended},
    output,
    run::launch::die_with_parent,
};

/// Its name on the command line.
pub(crate) const VERB: &str = "internal-demo-worker";

/// What the demo tells it.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The demo's process id.
    #[arg(long)]
    parent: i32,
    /// Its name in the story.
    #[arg(long)]
    label: String,
    /// TTL of its session in milliseconds.
    #[arg(long)]
    ttl_ms: u64,
    /// Base URL of the Storage Service.
    #[arg(long)]
    storage: String,
}

enum Held {
    Lock(LockGuard),
    Office(Leadership),
}

struct Worker {
    session: Session,
    storage: String,
    held: Mutex<Option<Held>>,
}

/// Works until standard input ends.
pub(crate) fn run(global: &Global, args: WorkerArgs) -> Ended {
    die_with_parent(args.parent)?;
    cluster::block_on(work(global, args))
}

async fn work(global: &Global, args: WorkerArgs) -> Ended {
    let client: Client = cluster::client(global)?;
    let ttl = Duration::from_millis(args.ttl_ms);
    let session =
        client.session().ttl(ttl).label(args.label).open().await.map_err(|e| cluster::failed(&e))?;
    tell(&json!({"event": "session", "session": session.id().to_string()}));
    let worker = Arc::new(Worker { session, storage: args.storage, held: Mutex::new(None) });
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        // Each order runs by itself: a worker that waits in line still hears the next one.
        tokio::spawn(obey(worker.clone(), words));
    }
    Ok(failure::OK)
}

async fn obey(worker: Arc<Worker>, words: Vec<String>) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["acquire", name] => worker.acquire(name).await,
        ["campaign", name, value] => worker.campaign(name, value).await,
        ["release"] => worker.release().await,
        ["write", object, lock, token, data] => worker.write(object, lock, token, data).await,
        other => tell(&json!({"event": "error", "why": format!("unknown order {other:?}")})),
    }
}

impl Worker {
    async fn acquire(&self, name: &str) {
        tell(&json!({"event": "asking", "name": name}));
        match self.session.lock(name).acquire().await {
            Ok(guard) => {
                tell(&json!({"event": "granted", "name": name, "token": guard.token()}));
                *self.held.lock().await = Some(Held::Lock(guard));
            }
            Err(error) => tell(&json!({"event": "error", "why": error.to_string()})),
        }
    }

    async fn campaign(&self, name: &str, value: &str) {
        match self.session.election(name).campaign(value.to_owned()).await {
            Ok(office) => {
                tell(&json!({"event": "elected", "name": name, "token": office.token()}));
                *self.held.lock().await = Some(Held::Office(office));
            }
            Err(error) => tell(&json!({"event": "error", "why": error.to_string()})),
        }
    }

    async fn release(&self) {
        let given_back = match self.held.lock().await.take() {
            Some(Held::Lock(guard)) => guard.release().await,
            Some(Held::Office(office)) => office.resign().await,
            None => Ok(false),
        };
        match given_back {
            Ok(released) => tell(&json!({"event": "released", "released": released})),
            Err(error) => tell(&json!({"event": "error", "why": error.to_string()})),
        }
    }

    /// Writes whatever it believes about its lock: it is the storage that must know better.
    async fn write(&self, object: &str, lock: &str, token: &str, data: &str) {
        let url = format!("{}/v1/objects/{object}", self.storage);
        let body = json!({"lock": lock, "token": token.parse::<u64>().unwrap_or_default(), "data": data});
        let answer = tokio::task::spawn_blocking(move || web::put(&url, &body)).await;
        let (status, body) = answer.map_or((0, Value::Null), |answer| (answer.status, answer.body));
        tell(&json!({"event": "written", "status": status, "answer": body}));
    }
}

fn tell(event: &Value) {
    // Without a reader the demo has ended, and this process with it.
    let _ = output::write(&event.to_string());
}
