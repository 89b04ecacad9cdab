//! `holdfast node`: one member, until a signal or a fault ends it.

use clap::Args;
use holdfast_node::config::{LogConfig, LogFormat, LogLevel};
use tracing_subscriber::EnvFilter;

use super::config::{refusal, report_warnings};
use crate::{
    failure::{Ended, Failure},
    member,
    run::launch::die_with_parent,
    settings::{Settings, SettingsArgs},
};

/// Developers' filter for log lines, above the configured level, as `RUST_LOG` is elsewhere.
const FILTER_VARIABLE: &str = "HOLDFAST_LOG";

const HELP: &str = "\
The member ends cleanly on SIGTERM and SIGINT. Check its configuration first with `holdfast config check`.

Examples:
  holdfast node --config /etc/holdfast/member.toml
  HOLDFAST__MEMBER=2 holdfast node --config member.toml --set log.format=json";

/// Run one member of a cluster
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct NodeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// End as soon as this process, the direct parent, ends in any way
    #[arg(long, hide = true, value_name = "PID")]
    parent_pid: Option<i32>,
}

/// Runs the member to its end.
pub fn run(args: NodeArgs) -> Ended {
    if let Some(parent) = args.parent_pid {
        die_with_parent(parent)?;
    }
    let settings = Settings::load(&args.settings);
    if settings.is_refused() {
        return Err(Failure::other(refusal(&settings)));
    }
    report_warnings(&settings);
    start_logging(&settings.config.log)?;
    member::serve(settings.config)
}

fn start_logging(config: &LogConfig) -> Result<(), Failure> {
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
