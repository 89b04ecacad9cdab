//! Loads a member's configuration: defaults < file < environment < `--set`, with the source of every value.
//!
//! Collects everything that is wrong in all layers at once. The bounds of values are the configuration's own business.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use clap::Args;
use config::{Config, ConfigError, Environment, File, FileFormat, Map, Source as _, Value, ValueKind};
use holdfast_node::config::{Fault, MemberConfig};

mod keys;

/// Begins the name of every environment variable that sets a value: `HOLDFAST__RAFT__HEARTBEAT_INTERVAL`.
const ENVIRONMENT_PREFIX: &str = "HOLDFAST";
const SEPARATOR: &str = "__";

/// Where a member's configuration comes from.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingsArgs {
    /// Configuration file (TOML); without one, everything comes from the environment and --set
    #[arg(short, long, value_name = "FILE", env = "HOLDFAST_CONFIG")]
    config: Option<PathBuf>,
    /// Set one value, above file and environment; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Built in.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag => f.write_str("flag --set"),
        }
    }
}

/// A configuration, where its values come from, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The configuration; defaults stand in for values that could not be read.
    pub config: MemberConfig,
    /// Source of each value that is not built in, by key.
    sources: BTreeMap<String, Source>,
    /// Everything that is wrong or unwise.
    pub faults: Vec<Fault>,
}

impl Settings {
    /// Loads all layers. Never fails: what is wrong stands in `faults`.
    pub(crate) fn load(args: &SettingsArgs) -> Self {
        Self::load_with(
            args,
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        )
    }

    /// Loads a file alone, as a member on another host would that is told nothing else.
    #[cfg(test)]
    pub(crate) fn load_file(path: &Path) -> Self {
        let args = SettingsArgs { config: Some(path.to_owned()), set: Vec::new() };
        Self::load_with(&args, std::iter::empty())
    }

    fn load_with(args: &SettingsArgs, environment: impl Iterator<Item = (String, String)>) -> Self {
        let mut layers = Layers::default();
        if let Some(path) = &args.config {
            layers.file(path);
        }
        layers.environment(environment.collect());
        layers.flags(&args.set);
        layers.finish()
    }

    /// Every value in effect, with its source, in key order.
    pub(crate) fn explain(&self) -> Vec<(String, String, Source)> {
        let effective = keys::of_config(&self.config);
        let source = |key: &str| self.sources.get(key).cloned().unwrap_or(Source::Default);
        effective
            .into_iter()
            .map(|(key, value)| (source(&key), key, value))
            .map(|(s, k, v)| (k, v, s))
            .collect()
    }

    /// Whether a member refuses to start with it.
    pub(crate) fn is_refused(&self) -> bool {
        self.faults.iter().any(Fault::is_error)
    }
}

/// Values of all layers so far; a later layer replaces single values.
#[derive(Default)]
struct Layers {
    values: BTreeMap<String, (Value, Source)>,
    faults: Vec<Fault>,
}

impl Layers {
    fn file(&mut self, path: &Path) {
        // Reading it ourselves keeps "no such file" apart from "no TOML", and any extension means TOML.
        match std::fs::read_to_string(path) {
            Err(e) => {
                self.faults.push(Fault::error(path.display().to_string(), format!("cannot be read: {e}")))
            }
            Ok(text) => match File::from_str(&text, FileFormat::Toml).collect() {
                Ok(map) => self.add(map, |_| Source::File(path.to_owned())),
                Err(e) => self.faults.push(Fault::error(path.display().to_string(), plain(&e))),
            },
        }
    }

    fn environment(&mut self, variables: Map<String, String>) {
        let environment = Environment::with_prefix(ENVIRONMENT_PREFIX)
            .prefix_separator(SEPARATOR)
            .separator(SEPARATOR)
            .source(Some(variables));
        match environment.collect() {
            Ok(map) => {
                self.add(map, |key| Source::Environment(keys::variable(ENVIRONMENT_PREFIX, SEPARATOR, key)))
            }
            Err(e) => self.faults.push(Fault::error("environment", plain(&e))),
        }
    }

    fn flags(&mut self, set: &[(String, String)]) {
        let origin = "--set".to_owned();
        let map =
            set.iter().map(|(k, v)| (k.clone(), Value::new(Some(&origin), ValueKind::String(v.clone()))));
        self.add(map.collect(), |_| Source::Flag);
    }

    fn add(&mut self, map: Map<String, Value>, source: impl Fn(&str) -> Source) {
        for (key, value) in keys::flatten(map) {
            let source = source(&key);
            match keys::check(&key) {
                Err(message) => self.faults.push(Fault::error(key, format!("{message} ({source})"))),
                Ok(()) => match read_alone(&key, value.clone()) {
                    Err(message) => self.faults.push(Fault::error(key, format!("{message} ({source})"))),
                    Ok(()) => {
                        self.values.insert(key, (value, source));
                    }
                },
            }
        }
    }

    fn finish(mut self) -> Settings {
        let mut builder = Config::builder();
        let mut sources = BTreeMap::new();
        for (key, (value, source)) in self.values {
            sources.insert(key.clone(), source);
            match builder.clone().set_override(&key, value) {
                Ok(next) => builder = next,
                Err(e) => self.faults.push(Fault::error(key, plain(&e))),
            }
        }
        let config = builder.build().and_then(Config::try_deserialize::<MemberConfig>).unwrap_or_else(|e| {
            self.faults.push(Fault::error("members", plain(&e)));
            MemberConfig::default()
        });
        let known: BTreeSet<String> = self.faults.iter().map(|fault| fault.key.clone()).collect();
        // A value that could not be read was reported already; its stand-in is not worth a second line.
        let shadowed =
            |key: &str| known.iter().any(|k| k == key || (key == "members" && k.starts_with("members[")));
        self.faults.extend(config.validate().into_iter().filter(|fault| !shadowed(&fault.key)));
        Settings { config, sources, faults: self.faults }
    }
}

/// Reads one value as if it were the whole configuration: all others have defaults, so an error is this value's.
fn read_alone(key: &str, value: Value) -> Result<(), String> {
    Config::builder()
        .set_override(keys::first_member(key), value)
        .and_then(|builder| builder.build())
        .and_then(Config::try_deserialize::<MemberConfig>)
        .map(drop)
        .map_err(|e| plain(&e))
}

/// An error without the key and origin that we name ourselves.
fn plain(error: &ConfigError) -> String {
    match error {
        ConfigError::At { error, .. } => plain(error),
        ConfigError::Type { unexpected, expected, .. } => {
            format!("{unexpected} is no value for it: expected {expected}")
        }
        other => other.to_string(),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, for example raft.heartbeat_interval=200ms".into()),
    }
}

#[cfg(test)]
mod tests;
