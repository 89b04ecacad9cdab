//! What every source file must begin with, how long it may be, and what it must not contain.

use std::fs;
use std::path::Path;

use crate::Finding;
use crate::views::{Views, is_word};

/// A file longer than this holds more than one idea.
const MAX_LINES: usize = 500;

/// Notes about unfinished work, in comments or code: finish it, or open an issue.
const NOTES: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Macros of unfinished work.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// The files of test folders that may sleep: those that wait for a condition, with a deadline.
const WAIT_HELPERS: [&str; 2] = ["/wait.rs", "/wait/mod.rs"];

/// One Rust source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path relative to the root, with forward slashes.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its code and comments.
    pub views: Views,
}

impl SourceFile {
    /// A file with this text.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), views: Views::of(text) }
    }

    /// Numbers of the code lines that satisfy a test.
    pub(crate) fn lines_with<'f>(
        &'f self,
        matches: impl Fn(&str) -> bool + 'f,
    ) -> impl Iterator<Item = usize> + 'f {
        let numbered = (1..).zip(self.views.code.lines());
        numbered.filter(move |(_, line)| matches(line)).map(|(number, _)| number)
    }

    /// Whether the file belongs to tests only: in a folder `tests`, or named so.
    fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Whether it has asynchronous tests and all of them start with the clock of tokio paused.
    fn runs_on_paused_time(&self) -> bool {
        let tests = self.views.code.matches("#[tokio::test").count();
        tests > 0 && tests == self.views.code.matches("(start_paused = true)").count()
    }
}

/// Reads all Rust sources below `root`, but for build output and hidden folders.
///
/// # Errors
/// A file or folder that cannot be read, with its path.
pub fn read_all(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    read_folder(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_folder(root: &Path, folder: &str, files: &mut Vec<SourceFile>) -> Result<(), String> {
    let full = root.join(folder);
    let failed = |error: std::io::Error| format!("{}: {error}", full.display());
    for entry in fs::read_dir(&full).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && name != "target" && !name.starts_with('.') {
            read_folder(root, &path, files)?;
        } else if kind.is_file() && name.ends_with(".rs") {
            let text = fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
            files.push(SourceFile::new(&path, &text));
        }
    }
    Ok(())
}

/// All findings about one file.
#[must_use]
pub fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        let message = "begin with `//!`: what the file is for and what it refuses to know";
        findings.push(Finding::new(&file.path, 1, message));
    }
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        let message = format!("{lines} lines are more than {MAX_LINES}: split it by idea");
        findings.push(Finding::new(&file.path, MAX_LINES, message));
    }
    findings.extend(check_notes(file));
    findings.extend(check_code(file));
    findings.extend(check_sleeps(file));
    findings.extend(check_clock(file));
    findings
}

/// A test that sleeps on the real clock is slow when it is right and wrong when the machine is slow. On paused time a
/// sleep takes none, so files all of whose tests run on it may say `tokio::time::sleep`.
fn check_sleeps(file: &SourceFile) -> Vec<Finding> {
    if !file.is_test() || WAIT_HELPERS.iter().any(|helper| file.path.ends_with(helper)) {
        return Vec::new();
    }
    let paused = file.runs_on_paused_time();
    let sleeps = |line: &str| {
        let sleeps = has_word(line, "sleep") || has_word(line, "sleep_until");
        sleeps && !(paused && line.contains("time::sleep"))
    };
    let message = "tests do not sleep: wait for a condition with a deadline, in a helper `wait.rs`";
    file.lines_with(sleeps).map(|line| Finding::new(&file.path, line, message)).collect()
}

/// What the simulation runs on virtual time must not look at the real clock, or a seed no longer gives one run: there is a
/// thread of its own where it may, below the log.
fn check_clock(file: &SourceFile) -> Vec<Finding> {
    const ON_REAL_TIME: [&str; 2] = ["node/src/log/", "node/src/api/"];
    if !file.path.starts_with("node/src/")
        || file.is_test()
        || ON_REAL_TIME.iter().any(|own| file.path.starts_with(own))
    {
        return Vec::new();
    }
    let mut line = 1;
    let mut findings = Vec::new();
    for statement in file.views.code.split_inclusive(';') {
        let begin = line + statement.chars().take_while(|c| c.is_whitespace()).filter(|c| *c == '\n').count();
        line += statement.matches('\n').count();
        let named = statement.contains("std::time::Instant");
        if named || statement.trim_start().starts_with("use std::") && has_word(statement, "Instant") {
            findings.push(Finding::new(
                &file.path,
                begin,
                "`tokio::time::Instant`: the simulation has a time of its own",
            ));
        }
    }
    findings
}

fn check_notes(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, (code, comment)) in (1..).zip(file.views.code.lines().zip(file.views.comments.lines())) {
        for note in NOTES.iter().filter(|note| has_word(code, note) || has_word(comment, note)) {
            findings.push(Finding::new(&file.path, number, format!("`{note}`: finish it or open an issue")));
        }
    }
    findings
}

fn check_code(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in MACROS {
        let calls = |line: &str| words(line, name).any(|end| line[end..].starts_with('!'));
        let found = file.lines_with(calls);
        findings.extend(found.map(|line| Finding::new(&file.path, line, format!("`{name}!` is left over"))));
    }
    let ignored = file.lines_with(|line| line.contains("#[ignore"));
    let message = "a test that is ignored proves nothing: run it or remove it";
    findings.extend(ignored.map(|line| Finding::new(&file.path, line, message)));
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    words(line, word).next().is_some()
}

/// Where the whole word ends, each time it stands in the line.
fn words<'l>(line: &'l str, word: &'l str) -> impl Iterator<Item = usize> + 'l {
    line.match_indices(word)
        .map(|(at, found)| (at, at + found.len()))
        .filter(|(at, end)| !line[..*at].ends_with(is_word) && !line[*end..].starts_with(is_word))
        .map(|(_, end)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines with findings in a file that begins well.
    fn lines(path: &str, body: &str) -> Vec<usize> {
        let file = SourceFile::new(path, &format!("//! A file.\n{body}"));
        check(&file).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_begins_with_its_purpose() {
        assert_eq!(check(&SourceFile::new("a.rs", "//! For that.\n")), []);
        for text in ["", "\n//! For that.\n", "// For that.\n", "use a::B;\n"] {
            assert_eq!(check(&SourceFile::new("a.rs", text)).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_file_has_500_lines_at_most() {
        assert_eq!(lines("a.rs", &"\n".repeat(499)), []);
        assert_eq!(lines("a.rs", &"\n".repeat(500)), [500]);
    }

    #[test]
    fn notes_are_found_as_whole_words_in_comments_and_code() {
        assert_eq!(lines("a.rs", "// TODO: later\n"), [2]);
        assert_eq!(lines("a.rs", "/* FIXME */ a();\n\n/// XXX\n"), [2, 4]);
        assert_eq!(lines("a.rs", "const TODO: u8 = 1;\n"), [2]);
        assert_eq!(lines("a.rs", "// TODOS and a_TODO\nlet a = \"TODO\";\n"), []);
    }

    #[test]
    fn leftover_macros_and_ignored_tests_are_found() {
        assert_eq!(lines("a.rs", "fn f() {\n    todo!()\n}\n"), [3]);
        assert_eq!(lines("a.rs", "std::dbg!(x);\nunimplemented!();\n").len(), 2);
        assert_eq!(lines("a.rs", "// todo!()\nmy_todo!();\nlet todo = 1;\n"), []);
        assert_eq!(lines("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n"), [3]);
    }

    #[test]
    fn tests_do_not_sleep_but_for_their_wait_helper() {
        for sleeping in [
            "std::thread::sleep(D);\n",
            "tokio::time::sleep(D).await;\n",
            "use std::thread::sleep;\n",
            "sleep_until(D);\n",
        ] {
            assert_eq!(lines("ops/tests/cluster.rs", sleeping), [2], "{sleeping:?}");
            assert_eq!(lines("node/src/lease/tests.rs", sleeping), [2], "{sleeping:?}");
            assert_eq!(lines("ops/tests/cluster/wait.rs", sleeping), []);
            assert_eq!(lines("ops/tests/wait/mod.rs", sleeping), []);
            assert_eq!(lines("node/src/lease/timer.rs", sleeping), []);
        }
        assert_eq!(lines("ops/tests/cluster.rs", "run(\"sleep\"); // sleep\nsleeper();\n"), []);
        assert_eq!(lines("ops/tests/await.rs", "thread::sleep(D);\n"), [2], "only files named `wait.rs`");
    }

    #[test]
    fn what_is_simulated_does_not_look_at_the_real_clock() {
        for real in ["use std::time::Instant;\n", "use std::{\n    time::{Duration, Instant},\n};\n"] {
            assert_eq!(lines("node/src/raft/ages.rs", real), [2], "{real:?}");
            assert_eq!(lines("node/src/raft/ages/tests.rs", real), []);
            assert_eq!(lines("node/src/log/pump.rs", real), []);
        }
        assert_eq!(lines("node/src/raft/ages.rs", "fn f() {\n    std::time::Instant::now();\n}\n"), [2]);
        assert_eq!(
            lines("node/src/raft/ages.rs", "use std::time::Duration;\nuse tokio::time::Instant;\n"),
            []
        );
    }

    #[test]
    fn tests_on_paused_time_may_let_it_pass() {
        let paused =
            "#[tokio::test(start_paused = true)]\nasync fn f() {\n    tokio::time::sleep(D).await;\n}\n";
        assert_eq!(lines("a/tests.rs", paused), []);
        assert_eq!(lines("a/tests.rs", &format!("{paused}#[tokio::test]\nasync fn g() {{}}\n")), [4]);
        assert_eq!(lines("a/tests.rs", &format!("{paused}thread::sleep(D);\n")), [6]);
    }
}
