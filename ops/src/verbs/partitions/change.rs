//! A change of the partition map from the operator's side: what it comes to, whether it shall be, and how it goes.

use std::time::Duration;

use clap::Args;
use holdfast_client::{Admin, PartitionChange, PartitionRequest};

use super::words;
use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output, say,
    verbs::ask::agreed,
};

/// How often a change is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How a change is made.
#[derive(Debug, Args)]
pub(super) struct How {
    /// Only show what would move
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask back
    #[arg(long)]
    pub(super) yes: bool,
    /// Return once it is under way, without waiting for its end
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

/// Why, where nobody says.
pub(super) const ASKED: &str = "asked for by an operator";

/// Plans a change, and unless that is all, asks back, begins it and follows it to its end.
pub(super) async fn carry_out(global: &Global, admin: &Admin, request: PartitionRequest, how: &How) -> Ended {
    let plan = admin.plan_partitions(request.clone()).await.map_err(|e| failed(&e))?;
    if how.dry_run {
        output::print(global.output, &plan, words::plan)?;
        return Ok(failure::OK);
    }
    if !how.yes && !agreed(&words::plan(&plan))? {
        say::line("nothing was changed");
        return Ok(failure::OK);
    }
    let begun =
        admin.change_partitions(request, how.reason.as_deref().unwrap_or(ASKED), &cluster::actor()).await;
    let begun = begun.map_err(|e| failed(&e))?;
    match begun.number {
        Some(number) if !how.no_wait => {
            let change = follow(admin, number).await?;
            output::print(global.output, &change, words::change)?;
            ended(&change)
        }
        Some(_) | None => {
            output::print(global.output, &begun, words::plan)?;
            Ok(failure::OK)
        }
    }
}

/// Waits for the end of a change, and says on the way what it is at.
async fn follow(admin: &Admin, number: u64) -> Result<PartitionChange, Failure> {
    let mut said = String::new();
    loop {
        let changes = admin.partition_changes().await.map_err(|e| failed(&e))?;
        if let Some(over) = changes.past.into_iter().find(|change| change.number == number) {
            return Ok(over);
        }
        if let Some(change) = changes.under_way.filter(|change| change.number == number) {
            let line = words::progress(&change);
            if line != said {
                say::line(&line);
                said = line;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn ended(change: &PartitionChange) -> Ended {
    match &change.end {
        Some(end) if end.how != "done" => {
            let why = end.why.as_deref().unwrap_or("no reason is known");
            Err(Failure::other(format!(
                "change {} has {} after {} of {} steps: {why}; what it moved stays moved, ask again for the rest",
                change.number, end.how, change.done, change.steps
            )))
        }
        Some(_) | None => Ok(failure::OK),
    }
}
