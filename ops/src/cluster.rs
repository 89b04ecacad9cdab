//! The way from a verb to the cluster: a client with the global options, and what its errors mean for scripts.
//!
//! Knows exit codes and the client's errors. Does not know any verb.

use std::{future::Future, time::Duration};

use holdfast_client::{AcquireError, Client, Error, ErrorCode};

use crate::{
    cli::Global,
    failure::{Ended, Failure, Kind},
    say,
};

/// Where the first member of `holdfast dev` listens.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7611";

/// A client of the cluster that the global options name. Nothing is sent yet.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    client_for(global, global.timeout)
}

/// A client whose requests may take as long as `patience`, once a member has answered within the usual time.
pub(crate) async fn patient(global: &Global, patience: Duration) -> Result<Client, Failure> {
    client(global)?.admin().status().await.map_err(|e| failed(&e))?;
    client_for(global, patience.max(global.timeout))
}

fn client_for(global: &Global, patience: Duration) -> Result<Client, Failure> {
    let named =
        global.endpoints.iter().map(|endpoint| endpoint.trim()).filter(|endpoint| !endpoint.is_empty());
    let mut endpoints: Vec<&str> = named.collect();
    if endpoints.is_empty() {
        endpoints.push(DEFAULT_ENDPOINT);
    }
    Client::builder()
        .endpoints(endpoints)
        .request_timeout(patience)
        .connect_timeout(global.timeout)
        .build()
        .map_err(|e| Failure::usage(e.to_string()))
}

/// Runs a verb on the main thread to its end. The parent-death signal of what it starts is tied to this thread.
pub(crate) fn block_on(work: impl Future<Output = Ended>) -> Ended {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start: {e}")))?
        .block_on(work)
}

/// A request's error as a failure with its exit code.
pub(crate) fn failed(error: &Error) -> Failure {
    let kind = match error {
        Error::Unreachable { .. } => Kind::Unreachable,
        Error::Api(error) => kind_of(error.code),
    };
    Failure::new(kind, error.to_string())
}

/// A refused acquire as a failure with its exit code. `code` replaces the one for "not acquired".
pub(crate) fn not_acquired(error: &AcquireError, code: Option<u8>) -> Failure {
    let kind = match error {
        AcquireError::Unreachable { .. } => Kind::Unreachable,
        AcquireError::Invalid(_) => Kind::Usage,
        AcquireError::Refused(error) if error.code == ErrorCode::PermissionDenied => Kind::Denied,
        AcquireError::Busy { .. }
        | AcquireError::Timeout { .. }
        | AcquireError::SessionLost { .. }
        | AcquireError::AlreadyHeld { .. }
        | AcquireError::AlreadyWaiting { .. }
        | AcquireError::Removed { .. }
        | AcquireError::Cancelled { .. }
        | AcquireError::Unknown { .. }
        | AcquireError::Refused(_) => Kind::NotAcquired(code),
    };
    Failure::new(kind, error.to_string())
}

fn kind_of(code: ErrorCode) -> Kind {
    match code {
        ErrorCode::InvalidArgument => Kind::Usage,
        ErrorCode::PermissionDenied => Kind::Denied,
        _ => Kind::Other,
    }
}

/// Says which groups could not answer, so that a list is not taken for complete.
pub(crate) fn warn_incomplete(groups: &[u32]) {
    if !groups.is_empty() {
        let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
        say::line(&format!(
            "warning: incomplete, these groups have no leader right now: {}",
            groups.join(", ")
        ));
    }
}

/// Who acts, for the audit log: `user@host`.
pub(crate) fn actor() -> String {
    use nix::unistd::{User, geteuid, gethostname};
    let user =
        User::from_uid(geteuid()).ok().flatten().map_or_else(|| geteuid().to_string(), |user| user.name);
    let host = gethostname().ok().and_then(|host| host.into_string().ok()).unwrap_or_default();
    format!("{user}@{host}")
}
