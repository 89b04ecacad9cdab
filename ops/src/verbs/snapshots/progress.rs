//! A line on standard error that says that work goes on. Only on a terminal: elsewhere nothing is written.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the line moves where nothing else moves it.
const TICK: Duration = Duration::from_millis(100);

/// The line; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Of work whose length nobody knows.
    pub(super) fn of_unknown_length(what: &str) -> Progress {
        Progress::begin(ProgressBar::new_spinner(), what)
    }

    /// Of so many steps.
    pub(super) fn of(steps: u64, what: &str) -> Progress {
        let bar = ProgressBar::new(steps);
        // The template is fixed; without it the line would only look otherwise.
        if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Progress::begin(bar, what)
    }

    fn begin(bar: ProgressBar, what: &str) -> Progress {
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        Progress(bar)
    }

    /// One step is done.
    pub(super) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
