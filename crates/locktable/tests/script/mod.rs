//! The language of the stories.
//!
//! A line is a command, a comment (`#`), blank, or (indented) what the command above led to: `-> ` its outcome, `@REV` its
//! events, `* ` its facts. Sessions are `A` to `Z`, with the ids 0xa and up. Commands go to group 1 unless they begin with
//! `g2:`; `@term 4` sets the term of what follows. See `parse.rs` for the commands.

mod parse;
mod render;

use std::collections::BTreeMap;

use holdfast_locktable::{
    codec::{self, Digest},
    command::{Command, Own, Proposal},
    ids::{MoveNumber, SessionEpoch, SessionId, Term},
    invariants,
    table::{LockTable, Position},
};
use holdfast_partitioner::{GroupId, MapEpoch, Range};

/// All groups of a story.
pub(crate) struct World {
    groups: BTreeMap<u32, Group>,
    /// What is known of each session that was opened: home, epoch, TTL.
    sessions: BTreeMap<SessionId, (u32, SessionEpoch, u64)>,
    term: Term,
    requests: u32,
    /// Fingerprints of what was exported.
    imported: BTreeMap<MoveNumber, Digest>,
}

struct Group {
    table: LockTable,
    index: u64,
}

/// Runs a story and writes it anew with what happened.
pub(crate) fn replay(story: &str) -> String {
    let mut world = World {
        groups: BTreeMap::new(),
        sessions: BTreeMap::new(),
        term: Term(1),
        requests: 0,
        imported: BTreeMap::new(),
    };
    let mut written = String::new();
    for line in story.lines() {
        if line.starts_with(' ') {
            continue;
        }
        written += line;
        written += "\n";
        if !line.is_empty() && !line.starts_with('#') {
            for result in world.line(line) {
                written += &format!("  {result}\n");
            }
        }
    }
    written
}

impl World {
    fn line(&mut self, line: &str) -> Vec<String> {
        if let Some(term) = line.strip_prefix("@term ") {
            self.term = Term(term.parse().unwrap());
            return Vec::new();
        }
        let (group, words) = match line.strip_prefix('g').and_then(|rest| rest.split_once(": ")) {
            Some((number, rest)) => (number.parse().unwrap(), rest),
            None => (1, line),
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        if words[0] == "fresh" {
            self.groups.insert(group, Group { table: LockTable::new(GroupId(group)), index: 0 });
            return Vec::new();
        }
        self.group(group);
        if words[0] == "import" {
            return self.import(group, &words);
        }
        if words[0] == "learn-owed" {
            let ends = self.group(words[1].parse().unwrap()).table.owed_to(GroupId(group));
            return self.apply(group, &words, Command::LearnEnds { ends });
        }
        match parse::read(&self.groups[&group].table, &words) {
            Some(lines) => lines,
            None => {
                let command = parse::command(self, group, &words);
                self.apply(group, &words, command)
            }
        }
    }

    /// Imports what another group has exported: all parts, or one.
    fn import(&mut self, group: u32, words: &[&str]) -> Vec<String> {
        let source = words[3].parse().unwrap();
        let parts = parse::imports(&self.group(source).table, words);
        let digest = parts.iter().fold(Digest::NOTHING, |digest, part| digest.with(&part.moved));
        self.imported.insert(parts[0].move_number, digest);
        let wanted = parse::part(words);
        let parts =
            parts.into_iter().enumerate().filter(|(part, _)| wanted.is_none_or(|wanted| wanted == *part));
        parts.flat_map(|(_, part)| self.apply(group, words, Command::Import(part))).collect()
    }

    /// A group that owns everything, unless the story began it otherwise.
    fn group(&mut self, number: u32) -> &mut Group {
        let group = GroupId(number);
        self.groups.entry(number).or_insert_with(|| {
            let mut table = LockTable::new(group);
            let own = Own { group, map_epoch: MapEpoch::FIRST, ranges: vec![Range::everything()] };
            let proposal = Proposal { at_ms: 0, command: Command::Own(own) };
            table.apply(Position { index: 1, term: Term(1) }, &proposal).result.unwrap();
            Group { table, index: 1 }
        })
    }

    fn apply(&mut self, number: u32, words: &[&str], command: Command) -> Vec<String> {
        let term = self.term;
        let group = self.group(number);
        group.index += 1;
        let at = Position { index: group.index, term };
        let proposal = Proposal { at_ms: group.index * 1_000, command };
        let proposal = codec::decode_proposal(&codec::encode_proposal(&proposal)).unwrap();
        let before = group.table.digest();
        let applied = group.table.apply(at, &proposal);
        if applied.result.is_err() {
            assert_eq!(group.table.digest(), before, "refused, but changed: {words:?}");
        }
        invariants::check(&group.table).unwrap_or_else(|broken| panic!("{words:?}: {broken}"));
        group.table = LockTable::decode(&group.table.encode()).unwrap();
        if let (Command::OpenSession(open), true) = (&proposal.command, applied.result.is_ok()) {
            self.sessions.insert(open.session, (number, SessionEpoch(at.index), open.ttl_ms));
        }
        render::applied(&applied)
    }
}
