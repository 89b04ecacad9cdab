//! Who may read from the terminal: exactly one process group at a time, handed to the command and taken back.
//!
//! Does nothing where there is no terminal.

use std::io::{self, IsTerminal as _};

use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};

/// The terminal on standard input, as seen by the wrapper.
#[derive(Debug)]
pub(crate) struct Terminal {
    is_terminal: bool,
    handed_over: bool,
}

impl Terminal {
    /// Looks at standard input. Blocks TTOU in this thread, because the wrapper takes the terminal back from the
    /// background; the command starts with a clean mask.
    pub(crate) fn of_stdin() -> Self {
        let is_terminal = io::stdin().is_terminal();
        if is_terminal {
            let mut mask = SigSet::empty();
            mask.add(Signal::SIGTTOU);
            let _ = mask.thread_block();
        }
        Self { is_terminal, handed_over: false }
    }

    /// Hands it to a command that is about to start, where the wrapper has it and is no part of a pipeline: in
    /// `holdfast lock x -- producer | less` it belongs to the pager.
    pub(crate) fn hand_to_new(&mut self, group: Pid) {
        if io::stdout().is_terminal() {
            self.hand_to(group);
        }
    }

    /// Hands it to a command that asked for it. Answers whether the wrapper had it to give.
    pub(crate) fn hand_to(&mut self, group: Pid) -> bool {
        let ours = self.is_terminal
            && tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp() || foreground == group);
        if ours && tcsetpgrp(io::stdin(), group).is_ok() {
            self.handed_over = true;
            return true;
        }
        false
    }

    /// Takes it back from the command, unless somebody else has it by now.
    pub(crate) fn take_back(&mut self, group: Pid) {
        if self.handed_over && tcgetpgrp(io::stdin()) == Ok(group) {
            let _ = tcsetpgrp(io::stdin(), getpgrp());
        }
        self.handed_over = false;
    }
}
