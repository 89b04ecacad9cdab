//! The deployment files are accepted by the tools that read them, and a plan, carried out, gives the cluster it promises.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "deploy/by_plan.rs"]
mod by_plan;
#[path = "deploy/files.rs"]
mod files;
mod harness;
#[path = "deploy/health.rs"]
mod health;
#[path = "deploy/planned.rs"]
mod planned;
#[path = "deploy/process.rs"]
mod process;
#[path = "deploy/supervised.rs"]
mod supervised;
