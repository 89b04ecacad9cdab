//! What several tests need: a PostgreSQL server, an HTTP client, a child process, a load with its judge.

pub(crate) mod child;
pub(crate) mod http;
pub(crate) mod load;
pub(crate) mod postgres_server;
pub(crate) mod wait;

pub(crate) use wait::eventually;
