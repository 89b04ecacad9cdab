//! A lock in one Redis, as its users make it: SET NX PX with a value of one's own, and a script that deletes the key only
//! if the value is still that.
//!
//! There is no queue: whoever finds the lock held tries again after a short pause by chance. The time to live is not
//! renewed.

use std::{sync::Arc, time::Duration};

use holdfast_history::End;
use redis::{AsyncConnectionConfig, RedisError, Script, aio::MultiplexedConnection};
use tokio::time::sleep;

use super::{Driver, LockClient, Opened, Refusal, Standing};
use crate::failure::Failure;

/// An answer takes far less, but for an fsync that hangs.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Pause before a held lock is tried again, in microseconds.
const PAUSE_MICROS: std::ops::Range<u64> = 1_000..10_000;
/// Deletes the key if it still has the value.
const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Redis {
    connections: Vec<MultiplexedConnection>,
    ttl: Duration,
}

impl Redis {
    /// So many connections to the one endpoint.
    pub(crate) async fn new(endpoints: &[String], connections: u32, ttl: Duration) -> Result<Self, Failure> {
        let [endpoint] = endpoints else {
            return Err(Failure::Usage("a Redis lock is in one Redis: give one endpoint".into()));
        };
        let failed = |error: RedisError| Failure::Unreachable(format!("{endpoint} does not answer: {error}"));
        let client = redis::Client::open(endpoint.as_str())
            .map_err(|error| Failure::Usage(format!("{endpoint}: {error}")))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER_WITHIN))
            .set_response_timeout(Some(ANSWER_WITHIN));
        let mut made = Vec::new();
        for _ in 0..connections {
            let connection = client.get_multiplexed_async_connection_with_config(&config).await;
            made.push(connection.map_err(failed)?);
        }
        Ok(Self { connections: made, ttl })
    }
}

impl Driver for Redis {
    type Client = RedisClient;

    async fn client(&self, number: u32) -> Result<RedisClient, Failure> {
        let connection = self.connections.get(number as usize % self.connections.len().max(1));
        let connection =
            connection.ok_or_else(|| Failure::Usage("no connections: give at least one".into()))?.clone();
        let ttl_ms = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let script = Script::new(COMPARE_AND_DELETE);
        Ok(RedisClient { connection, ttl_ms, script, name: rand::random(), locks: 0, held: None })
    }
}

/// One client.
pub(crate) struct RedisClient {
    connection: MultiplexedConnection,
    ttl_ms: u64,
    script: Script,
    name: u64,
    locks: u64,
    held: Option<(Arc<str>, String)>,
}

impl LockClient for RedisClient {
    fn opened(&self) -> Option<Opened> {
        None
    }

    async fn acquire(&mut self, lock: &Arc<str>) -> Result<u64, Refusal> {
        self.locks += 1;
        let value = format!("{:x}-{}", self.name, self.locks);
        loop {
            let mut set = redis::cmd("SET");
            set.arg(&**lock).arg(&value).arg("NX").arg("PX").arg(self.ttl_ms);
            let set: Option<String> =
                set.query_async(&mut self.connection).await.map_err(|error| refused("acquire", &error))?;
            if set.is_some() {
                self.held = Some((lock.clone(), value));
                return Ok(0);
            }
            sleep(Duration::from_micros(rand::random_range(PAUSE_MICROS))).await;
        }
    }

    fn standing(&self) -> Option<Standing> {
        None
    }

    async fn release(&mut self) -> Result<(), Refusal> {
        let Some((lock, value)) = self.held.take() else { return Ok(()) };
        let mut invocation = self.script.prepare_invoke();
        invocation.key(&*lock).arg(value);
        let deleted: Result<i64, RedisError> = invocation.invoke_async(&mut self.connection).await;
        match deleted {
            Ok(0) => Err(Refusal::new(End::Error, "release: not held any more")),
            Ok(_) => Ok(()),
            Err(error) => Err(refused("release", &error)),
        }
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        self.held = None;
        Ok(())
    }

    async fn close(mut self) {
        // Where the answer is lost, the key ends by itself.
        let _ = self.release().await;
    }
}

fn refused(verb: &str, error: &RedisError) -> Refusal {
    Refusal::new(End::Unknown, format!("{verb}: {error}"))
}
