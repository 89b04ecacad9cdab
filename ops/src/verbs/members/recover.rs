//! `holdfast members recover --force`: a new cluster from what one survivor has, where the majority is lost for good.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use holdfast_locktable::ids::Revision;
use holdfast_node::{
    config::{MemberConfig, StorePlace},
    log::identity::{ClusterId, InvalidClusterId, LogIdentity},
    member::ground::snapshot_store,
    restore::{
        self, Prepared, incarnation,
        survivor::{self, Survivor},
    },
    snapshot::store::SnapshotStore,
};

use crate::{
    cli::Global,
    cluster,
    failure::{self, Ended, Failure},
    output,
    restoring::{GroupLine, NewCluster, Report, read_config},
    say,
};

const HELP: &str = "\
Only for a cluster that lost the majority of its members for good. While any two of three (three of five, …) can come back,
bring them back instead: nothing is lost then. If there are snapshots, they may be newer than what the survivor has.

What this does: it reads the data folder of one member that is down, and writes folders for a new cluster. All sessions have
ended, every token is above all that were handed out, and no lock is granted before the longest TTL has passed. What only the
lost members had is lost. Destroy their disks, or never start them again.

Examples:
  holdfast members recover --force --config /etc/holdfast/member.toml --to /srv/recovered --members 1
  holdfast members recover --force --config member-1/config.toml --to ./recovered --members-file new.toml --incarnation 4";

/// Build a new cluster from the data folder of one member, where the majority is lost for good
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RecoverArgs {
    /// Says that the majority is lost for good, and that what only it had may be lost
    #[arg(long)]
    force: bool,
    /// Configuration of the survivor (TOML), which must be down
    #[arg(short, long, value_name = "FILE", env = "HOLDFAST_CONFIG")]
    config: PathBuf,
    #[command(flatten)]
    new: NewCluster,
}

/// Recovers, and says what came of it.
pub(crate) fn run(global: &Global, args: &RecoverArgs) -> Ended {
    if !args.force {
        return Err(Failure::usage(
            "what only the lost members had may be lost: read `holdfast members recover --help`, and say --force",
        ));
    }
    cluster::block_on(async {
        let survivor_config = read_config(&args.config)?;
        let lost =
            survivor_config.cluster.parse().map_err(|e: InvalidClusterId| Failure::other(e.to_string()))?;
        let identity = LogIdentity { cluster: lost, member: survivor_config.member };
        say::line(&format!(
            "recovering from member {} alone: what only the others had is lost; never start them again",
            identity.member
        ));
        let survivor = survivor::read(&survivor_config.data_dir, identity.clone()).await;
        let survivor = survivor.map_err(|e| Failure::other(e.to_string()))?;
        for (group, undecided) in survivor.undecided.iter().filter(|(_, undecided)| **undecided > 0) {
            say::line(&format!(
                "group {group}: the last {undecided} entries are kept, and it is not known whether they were agreed on"
            ));
        }
        let report = recovered(args, &survivor_config, &identity.cluster, &survivor).await?;
        output::print(global.output, &report, Report::text)?;
        Ok(failure::OK)
    })
}

async fn recovered(
    args: &RecoverArgs,
    config: &MemberConfig,
    lost: &ClusterId,
    survivor: &Survivor,
) -> Result<Report, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::other(error.to_string());
    let (ground, given) = (args.new.ground(Some(&config.snapshots))?, args.new.incarnation);
    let register = Register::open(config, lost).await?;
    let number = register.number(given, survivor.found.highest_incarnation()).await?;
    let wanted = args.new.wanted(&ground);
    let prepared = restore::prepare_without_store(lost, &survivor.found, number, wanted);
    let prepared = prepared.map_err(|e| failed(&e))?;
    if let Some((store, origin)) = &register.at {
        let noted = restore::note(store.as_ref(), &prepared.cluster, origin, given.is_none()).await;
        noted.map_err(|e| failed(&e))?;
    }
    let members = ground.write(&prepared).await?;
    Ok(Report {
        cluster: prepared.cluster.to_string(),
        from_cluster: lost.to_string(),
        incarnation: number,
        tokens_above: Revision::start_of(number).unwrap_or_default().0,
        pause_ms: prepared.rebuilt.pause_ms.unwrap_or(0),
        groups: lines(&prepared, survivor, config.member),
        members,
        passed_over: Vec::new(),
    })
}

/// Where incarnations are claimed: the snapshot store of the lost cluster, if it is there.
struct Register {
    /// Why it does not have all that were given out, if so.
    doubt: Option<String>,
    /// The store, and the first of the clusters that were restored from each other.
    at: Option<(Arc<dyn SnapshotStore>, ClusterId)>,
}

impl Register {
    async fn open(config: &MemberConfig, lost: &ClusterId) -> Result<Self, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::other(error.to_string());
        // Opening a folder makes it.
        if let StorePlace::Folder(folder) = config.snapshot_place().map_err(Failure::other)?
            && !folder.is_dir()
        {
            let doubt = format!("the snapshot store {} is not there: bring it back", folder.display());
            return Ok(Self { doubt: Some(doubt), at: None });
        }
        let store = snapshot_store(config).map_err(|e| failed(&e))?;
        let origin = incarnation::origin_of(store.as_ref(), lost).await.map_err(|e| failed(&e))?;
        // A folder below its own data is no place where a recovery from another member would look.
        let own = config.snapshots.store.is_none();
        let doubt =
            own.then(|| format!("only member {} has the snapshot store of its own folder", config.member));
        Ok(Self { doubt, at: Some((store, origin)) })
    }

    /// The next number, or the one that was given, if it is above all that can be seen.
    async fn number(&self, given: Option<u64>, seen: u64) -> Result<u64, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::other(error.to_string());
        match (&self.at, given) {
            (Some((store, origin)), Some(given)) => {
                incarnation::check_given(store.as_ref(), origin, seen, given).await.map_err(|e| failed(&e))
            }
            (Some((store, origin)), None) if self.doubt.is_none() => {
                incarnation::claim(store.as_ref(), origin, seen).await.map_err(|e| failed(&e))
            }
            (None, Some(given)) if given > seen => Ok(given),
            (None, Some(given)) => Err(Failure::usage(format!(
                "--incarnation {given} is too low: the survivor is in incarnation {seen}"
            ))),
            (_, None) => Err(Failure::other(format!(
                "{}; nobody knows which incarnations are in use, and none is guessed; give a number with --incarnation that is \
                 above that of every cluster that was ever restored from this one (above {seen} at least)",
                self.doubt.as_deref().unwrap_or("there is no snapshot store")
            ))),
        }
    }
}

fn lines(prepared: &Prepared, survivor: &Survivor, member: u64) -> Vec<GroupLine> {
    let found = |group: &u32| survivor.found.groups.iter().find(|(id, _)| id.0 == *group);
    let line = |group: u32| {
        let (log_index, revision) = match found(&group) {
            Some((_, at)) => (at.index, at.state.revision().0),
            None => (survivor.found.meta.index, 0),
        };
        GroupLine { group, from: format!("member {member}"), log_index, revision }
    };
    prepared.rebuilt.groups.keys().map(|group| line(group.0)).collect()
}
