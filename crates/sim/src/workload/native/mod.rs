//! The product's own Rust client in the simulation: not a copy of its rules, but `holdfast_client` itself, over gRPC, HTTP/2
//! and a simulated connection to the members' own gRPC services.
//!
//! ```text
//!   process ── life ── session ── works ── acquire, hold     holdfast_client ── channels ── wire ══ door ── node's gRPC
//!      │ stands still, dies, is cut off   │ what it believes: beliefs                          member's process
//! ```
//! - [`process`]: a process of its own, which may stand still, die, or be cut off. [`channels`]: its connections.
//! - [`life`]: what it does, over and over. [`session`]: one session. [`acquire`]: asking. [`hold`]: what it does with what
//!   it was granted. [`guard`]: locks and leaderships alike.
//! - [`watching`]: following all changes.
//! - [`beliefs`]: what all of them believe, for the checks. [`bound`]: that each call ends in time. [`audit`]: whether
//!   members know what a guard counts on.
//!
//! Asks the client what it believes; knows nothing of how it comes to that.

pub mod acquire;
pub mod audit;
pub mod beliefs;
pub mod bound;
pub mod channels;
pub mod guard;
pub mod hold;
pub mod life;
pub mod process;
pub mod session;
pub mod watching;
