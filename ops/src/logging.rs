//! Log lines of long-running verbs, on standard error.

use holdfast_node::config::{LogConfig, LogFormat, LogLevel};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Developers' filter for log lines, above the configured level, as `RUST_LOG` is elsewhere.
const FILTER_VARIABLE: &str = "HOLDFAST_LOG";

/// Writes log lines from here on.
pub(crate) fn start(config: &LogConfig) -> Result<(), Failure> {
    let level = match config.level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info,openraft=warn",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    let filter = match std::env::var(FILTER_VARIABLE) {
        Ok(filter) => EnvFilter::try_new(filter)
            .map_err(|e| Failure::usage(format!("{FILTER_VARIABLE} is no filter for log lines: {e}")))?,
        Err(_) => EnvFilter::new(level),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}
