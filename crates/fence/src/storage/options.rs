//! What the Storage Service is told at its start.
//!
//! Where the values come from (flags, files, environment) is the caller's business.

use std::{fmt, net::SocketAddr, num::NonZeroUsize, path::PathBuf, str::FromStr, sync::Arc};

use crate::check::TokenCheck;

/// HTTP worker threads unless told otherwise. The database sets the pace.
const DEFAULT_WORKERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// Settings of [`serve`](crate::serve).
#[derive(Clone)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one. There is no authentication: whoever reaches the port can write.
    pub listen: SocketAddr,
    /// Where objects and marks are kept.
    pub database: Database,
    /// Asks the lock service about tokens above the mark. Without it any token above the mark is accepted.
    pub token_check: Option<Arc<dyn TokenCheck>>,
    /// HTTP worker threads.
    pub workers: NonZeroUsize,
}

impl Options {
    /// Two worker threads, no token check.
    pub fn new(listen: SocketAddr, database: Database) -> Self {
        Self { listen, database, token_check: None, workers: DEFAULT_WORKERS }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("listen", &self.listen)
            .field("database", &self.database)
            .field("token_check", &self.token_check.is_some())
            .field("workers", &self.workers)
            .finish()
    }
}

/// Where the Storage Service keeps its objects.
#[derive(Clone)]
pub enum Database {
    /// A SQLite file on a local disk, made if it is not there. Several services may share it.
    Sqlite(PathBuf),
    /// A PostgreSQL database, over an unencrypted connection.
    Postgres(Box<tokio_postgres::Config>),
}

/// A text that names no database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a database: {fault}; give postgres://USER@HOST/NAME, or sqlite:PATH, or the path of a sqlite file"
)]
pub struct InvalidDatabase {
    fault: String,
}

impl FromStr for Database {
    type Err = InvalidDatabase;

    /// `postgres://…` and `postgresql://…`, `sqlite:PATH`, or a path.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |fault: String| Err(InvalidDatabase { fault });
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return match text.parse() {
                Ok(config) => Ok(Self::Postgres(Box::new(config))),
                // The text itself may hold a password and is not shown.
                Err(error) => invalid(format!("the postgres URL cannot be read ({error})")),
            };
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
        if path.is_empty() || path == ":memory:" {
            return invalid(format!("{text:?} names no file"));
        }
        if let Some((scheme, _)) = path.split_once("://") {
            return invalid(format!("{scheme:?} is no known kind"));
        }
        Ok(Self::Sqlite(PathBuf::from(path)))
    }
}

/// Shows no password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(config) => {
                write!(f, "postgres:{:?}/{}", config.get_hosts(), config.get_dbname().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_read_from_its_url() {
        for (text, path) in
            [("a/b.db", "a/b.db"), ("sqlite:b.db", "b.db"), ("sqlite:///var/b.db", "/var/b.db")]
        {
            assert!(matches!(text.parse(), Ok(Database::Sqlite(found)) if found == *path), "{text}");
        }
        for text in ["postgres://u:secret@h:5433/d", "postgresql://u:secret@h/d"] {
            let database: Database = text.parse().unwrap();
            assert!(
                matches!(&database, Database::Postgres(config) if config.get_dbname() == Some("d")),
                "{text}"
            );
            assert!(!format!("{database:?}").contains("secret"));
        }
        for text in ["", "sqlite:", ":memory:", "mysql://h/d", "postgres://u@h:port/secret"] {
            let refused = text.parse::<Database>().unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }
}
