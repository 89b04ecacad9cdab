//! The handle to a cluster. Knows how to begin each thing, and does none of them itself.

use std::{sync::Arc, time::Duration};

use crate::{
    admin::Admin,
    builder::ClientBuilder,
    call::Caller,
    channel::Pool,
    clock::Clock,
    error::ConfigError,
    observe::Observe,
    session::{SessionOptions, Streams},
    watch::{Watch, WatchOptions},
};

/// A handle to one Holdfast cluster. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use holdfast_client::Client;
///
/// let client = Client::connect(["http://127.0.0.1:7611"])?;
/// let session = client.session().open().await?;
/// let guard = session.lock("jobs/nightly").acquire().await?;
/// println!("holding {} with token {}", guard.name(), guard.token());
/// guard.release().await?;
/// session.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) caller: Caller,
    pub(crate) streams: Streams,
    pub(crate) clock: Clock,
}

impl Inner {
    pub(crate) fn new(pool: Pool, request: Duration, connect: Duration, clock: Clock, seed: u64) -> Self {
        let streams = Streams::new(pool.len());
        Self { caller: Caller::new(pool, request, connect, seed), streams, clock }
    }
}

impl Client {
    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    pub(crate) const fn of(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// A client of the cluster that these members belong to, with default options. No connection is made before it is
    /// used.
    ///
    /// # Errors
    /// No endpoint, or one that is no URL.
    pub fn connect<I: IntoIterator<Item: Into<String>>>(endpoints: I) -> Result<Self, ConfigError> {
        Self::builder().endpoints(endpoints).build()
    }

    /// A client with options.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Begins a session: set its options, then open it.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// use std::time::Duration;
    /// let session = client.session().ttl(Duration::from_secs(15)).label("importer").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn session(&self) -> SessionOptions {
        SessionOptions::new(self.clone())
    }

    /// Watches changes of locks whose name begins with `prefix` (all locks where it is empty), from now on or from the
    /// cursor of an earlier event.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::WatchError> {
    /// use futures::StreamExt;
    /// let mut watch = client.watch("jobs/", None);
    /// while let Some(event) = watch.next().await {
    ///     let event = event?;
    ///     println!("{} {}", event.what, event.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, prefix: impl Into<String>, from: Option<String>) -> Watch {
        self.watch_with(WatchOptions { prefix: prefix.into(), from, elections: false, exact: false })
    }

    /// Watches with all options: elections instead of locks, or exactly one name.
    ///
    /// ```no_run
    /// # fn example(client: holdfast_client::Client) {
    /// use holdfast_client::WatchOptions;
    /// let leaders = client.watch_with(WatchOptions { elections: true, ..WatchOptions::default() });
    /// # }
    /// ```
    pub fn watch_with(&self, options: WatchOptions) -> Watch {
        Watch::start(self.clone(), options)
    }

    /// The leader of an election now, and then each change of leader or value. Needs no session.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// use futures::StreamExt;
    /// let mut leaders = client.observe("scheduler");
    /// while let Some(leader) = leaders.next().await {
    ///     match leader? {
    ///         Some(leader) => println!("{} leads", leader.session),
    ///         None => println!("nobody leads"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self, election: impl Into<String>) -> Observe {
        Observe::start(self.clone(), election.into())
    }

    /// The verbs of operators: listing, forced release, members, snapshots, audit.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// for group in client.admin().groups().await? {
    ///     println!("group {} is led by {:?}", group.group, group.leader);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }
}
