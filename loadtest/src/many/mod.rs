//! Very many sessions: kept alive (`sessions`), or gone silent all at once (`silence`).
//!
//! - [`crowd`]: the sessions of one process, by the native client; [`children`]: the processes they are dealt out to.

mod children;
mod crowd;
mod sessions;
mod silence;

pub(crate) use self::{
    sessions::{SessionsArgs, run as sessions},
    silence::{SilenceArgs, run as silence},
};
