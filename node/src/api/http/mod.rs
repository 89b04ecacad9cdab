//! The HTTP listener: `/v1` JSON, Server-Sent Events, probes, metrics, and the document that describes them.
//!
//! Knows HTTP and JSON: how a request becomes typed values, how an answer or an error becomes a response. Decides nothing
//! about locks: that is the [endpoint](crate::endpoint).
//!
//! ```text
//!   socket ── listen ── server ── layers ── routes ── input ── handler ── Endpoint
//!                                                     │          │
//!                                             fields: every    sessions, locks, elections, claims, cluster, probes:
//!                                             bound, once      one file per resource: bodies, answers, handlers
//! ```
//!
//! Errors are [`problem`] documents, streams are [`sse`]. [`openapi`] makes the published document from the handlers; the
//! checked-in `node/openapi.json` is compared with it by a test and served as it is.

mod api;
mod claims;
mod cluster;
mod elections;
mod fields;
mod input;
mod layers;
mod listen;
mod locks;
pub mod openapi;
mod probes;
mod problem;
mod routes;
mod server;
mod sessions;
mod sse;
mod value;

pub use listen::{ListenError, listen};
pub use server::{HttpOptions, HttpServer, Limits, serve};

#[cfg(test)]
mod tests;
