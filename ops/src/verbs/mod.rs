//! One file per verb: its arguments, what it asks the cluster, how it shows the answer.

pub mod completions;
pub mod config;
pub mod node;
