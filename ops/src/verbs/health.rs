//! `holdfast health`: whether one member serves, for health checks of containers and for scripts.

use std::{
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use serde::Serialize;

use crate::{
    cli::{self, Global},
    failure::{self, Ended, Failure, Kind},
    output,
};

/// Pause before a member that does not serve yet is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

const HELP: &str = "\
A member serves once it has caught up with all its groups since its start and every group of the cluster has a leader. It
lives as long as its process and its disk work, whatever the other members do: restart it where it does not live, send
it no clients where it does not serve.

Exit codes: 0 it serves (with --live: it lives), 1 it says that it does not, and why, 2 wrong usage, 69 it did not answer.

Examples:
  holdfast health
  holdfast health --http http://10.0.0.1:7610 --wait 2m
  holdfast health --live -o json";

/// Ask one member whether it serves
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct HealthArgs {
    /// Base URL of the member's HTTP listener
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7610", value_parser = base_url)]
    http: String,
    /// Ask only whether it lives
    #[arg(long)]
    live: bool,
    /// Ask again until it does, for so long at most; 1 minute where no time is given
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1m", value_parser = cli::duration)]
    wait: Option<Duration>,
}

/// What is printed.
#[derive(Serialize)]
struct Health<'a> {
    member: &'a str,
    /// Whether it does what was asked for.
    ok: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// Asks, and asks again as long as that may help.
pub(crate) fn run(global: &Global, args: HealthArgs) -> Ended {
    let (route, does) = if args.live { ("livez", "live") } else { ("readyz", "serve") };
    let url = format!("{}/{route}", args.http.trim_end_matches('/'));
    let begun = Instant::now();
    let refused = loop {
        let Err(refused) = ask(&url, global.timeout) else {
            let health = Health { member: &args.http, ok: true, why: None };
            output::print(global.output, &health, |health| format!("{} {does}s", health.member))?;
            return Ok(failure::OK);
        };
        if args.wait.is_none_or(|wait| begun.elapsed() + ASK_AGAIN_AFTER > wait) {
            break refused;
        }
        thread::sleep(ASK_AGAIN_AFTER);
    };
    match refused {
        Refused::Says(why) => {
            let health = Health { member: &args.http, ok: false, why: Some(&why) };
            // People are told on standard error, with the exit code.
            if global.output != output::Format::Table {
                output::print(global.output, &health, |_| String::new())?;
            }
            Err(Failure::other(format!("{} does not {does}: {why}", args.http)))
        }
        Refused::Silent(why) => {
            Err(Failure::new(Kind::Unreachable, format!("no member answers at {}: {why}", args.http)))
        }
    }
}

/// Why a member is not taken for well.
enum Refused {
    /// It answered, and says why.
    Says(String),
    /// It did not answer.
    Silent(String),
}

fn ask(url: &str, within: Duration) -> Result<(), Refused> {
    let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(within));
    let agent: ureq::Agent = config.build().into();
    let mut answer = agent.get(url).call().map_err(|error| Refused::Silent(error.to_string()))?;
    let status = answer.status().as_u16();
    if status == 200 {
        return Ok(());
    }
    let problem = answer.body_mut().read_json::<serde_json::Value>().unwrap_or_default();
    let detail = problem.get("detail").and_then(|detail| detail.as_str()).map(str::to_owned);
    Err(Refused::Says(detail.unwrap_or_else(|| format!("it answered with HTTP status {status}"))))
}

fn base_url(text: &str) -> Result<String, String> {
    let plain = text.strip_prefix("http://").is_some_and(|rest| !rest.trim_end_matches('/').is_empty());
    let parsed =
        text.parse::<ureq::http::Uri>().ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    match parsed {
        Some(_) if plain => Ok(text.to_owned()),
        Some(_) | None => Err("write a URL like http://127.0.0.1:7610".into()),
    }
}
