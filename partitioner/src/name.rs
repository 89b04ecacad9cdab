//! How a lock name is read for routing. Knows text, not maps or groups.

/// Longest lock name, in bytes of UTF-8. The shortest has one byte.
pub const MAX_NAME_BYTES: usize = 2047;

/// What the internal name of a native election queue begins with; the election's own name follows.
///
/// U+0001 is refused in names given by clients, so no lock can be mistaken for an election's queue.
pub const ELECTION_MARKER: &str = "\u{1}election/";

/// What the internal name of a claim begins with; the claim's own name follows.
pub const CLAIM_MARKER: &str = "\u{1}claim/";

/// Everything that internal names begin with and users' names cannot.
const MARKERS: [&str; 2] = [ELECTION_MARKER, CLAIM_MARKER];

/// The name that decides where `name` lives: an election and a claim route like the lock of the same name.
///
/// Strips one marker if it is there. [`locate`](crate::PartitionMap::locate) and
/// [`Range::contains`](crate::Range::contains) both do this themselves.
#[must_use]
pub fn routed_name(name: &str) -> &str {
    MARKERS.iter().find_map(|marker| name.strip_prefix(marker)).unwrap_or(name)
}

/// Whether a start is only part of a marker, so that it says nothing about the name behind it.
pub(crate) fn is_within_marker(start: &str) -> bool {
    MARKERS.iter().any(|marker| marker.starts_with(start))
}

/// The partition key of a routed name: `name` cut after `prefix` plus `depth` segments.
///
/// Segments are what stands between slashes, empty ones included; the slash that ends the key is not part of it. At
/// depth 1 below the empty prefix `jobs`, `jobs/` and `jobs/a/b` all have the key `jobs`. At depth 0 the key is the
/// prefix itself: everything below it stands together. A name with fewer segments is its own key, so a depth of
/// [`MAX_NAME_BYTES`] or more always means the whole name.
///
/// A name that does not begin with `prefix` is its own key; callers match the prefix first.
#[must_use]
pub fn partition_key<'n>(name: &'n str, prefix: &str, depth: u16) -> &'n str {
    let Some(rest) = name.strip_prefix(prefix) else { return name };
    if depth == 0 {
        return name.get(..prefix.len()).unwrap_or(name);
    }
    match rest.match_indices('/').nth(usize::from(depth) - 1) {
        Some((at, _)) => name.get(..prefix.len() + at).unwrap_or(name),
        None => name,
    }
}

/// Whether every name that begins with `start` has the same partition key, that of `start`.
pub(crate) fn key_is_decided(start: &str, prefix: &str, depth: u16) -> bool {
    match start.strip_prefix(prefix) {
        Some(rest) => depth == 0 || rest.match_indices('/').nth(usize::from(depth) - 1).is_some(),
        None => false,
    }
}

/// Whether a lock name may contain `c`: everything but the control characters U+0000–001F and U+007F–009F.
#[must_use]
pub const fn is_name_char(c: char) -> bool {
    !matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Why a text is no lock name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// It has no characters.
    #[error("a name has at least one byte, this one is empty")]
    Empty,
    /// It is too long.
    #[error("a name has at most {MAX_NAME_BYTES} bytes, this one has {bytes}")]
    TooLong {
        /// Its length in bytes of UTF-8.
        bytes: usize,
    },
    /// It holds a control character.
    #[error("a name holds no control characters, this one has U+{:04X} at byte {at}", u32::from(*.found))]
    ControlChar {
        /// The first such character.
        found: char,
        /// Where it begins, in bytes.
        at: usize,
    },
}

/// Checks a lock or election name as clients give it: 1 to [`MAX_NAME_BYTES`] bytes without control characters.
/// Slashes anywhere, `.`, and bidirectional characters are ordinary.
///
/// # Errors
/// The first fault found.
pub fn check_name(name: &str) -> Result<(), NameFault> {
    if name.is_empty() { Err(NameFault::Empty) } else { check_start(name) }
}

/// Checks what some name may begin with: like a name, but it may be empty.
///
/// # Errors
/// The first fault found.
pub fn check_start(start: &str) -> Result<(), NameFault> {
    if start.len() > MAX_NAME_BYTES {
        return Err(NameFault::TooLong { bytes: start.len() });
    }
    match start.char_indices().find(|(_, c)| !is_name_char(*c)) {
        Some((at, found)) => Err(NameFault::ControlChar { found, at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn partition_key_is_the_prefix_and_depth_segments() {
        for (name, prefix, depth, key) in [
            ("jobs/a/b", "", 1, "jobs"),
            ("jobs", "", 1, "jobs"),
            ("jobs/", "", 1, "jobs"),
            ("jobs/a/b", "jobs/", 1, "jobs/a"),
            ("jobs/a/b", "jobs/", 0, "jobs/"),
            ("jobs/a/b", "jobs/", 2, "jobs/a/b"),
            ("jobs/a/b", "jobs/", u16::MAX, "jobs/a/b"),
            ("jobs/a/b", "jo", 1, "jobs"),
            ("jobs/a/b", "jobs", 1, "jobs"),
            ("jobs/a/b", "jobs", 2, "jobs/a"),
            ("/a", "", 1, ""),
            ("a//b", "", 2, "a/"),
            ("a/", "", 2, "a/"),
            ("日本/語", "日", 1, "日本"),
            ("elsewhere/a", "jobs/", 1, "elsewhere/a"),
        ] {
            assert_eq!(partition_key(name, prefix, depth), key, "{name:?} below {prefix:?} at {depth}");
        }
    }

    #[test]
    fn a_start_decides_the_key_once_the_slash_that_ends_it_is_there() {
        assert!(key_is_decided("jobs/a", "", 1));
        assert!(key_is_decided("jobs/", "", 1));
        assert!(!key_is_decided("jobs", "", 1), "jobs2 has another key");
        assert!(key_is_decided("jobs/", "jobs/", 0));
        assert!(!key_is_decided("jo", "jobs/", 0), "not below the prefix");
    }

    #[test]
    fn only_a_leading_marker_makes_an_election_or_a_claim() {
        assert_eq!(routed_name("\u{1}election/jobs/a"), "jobs/a");
        assert_eq!(routed_name("\u{1}claim/jobs/a"), "jobs/a");
        assert_eq!(routed_name("election/jobs/a"), "election/jobs/a");
        assert_eq!(routed_name("jobs/\u{1}election/a"), "jobs/\u{1}election/a");
        assert_eq!(routed_name("\u{1}election"), "\u{1}election");
    }

    #[test]
    fn odd_names_are_names() {
        for name in ["a", "/", "//", ".", "..", "a//b", "a/", " ", "\u{202e}abc", "日本", "\u{a0}", "~"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
        assert_eq!(check_name(&"x".repeat(MAX_NAME_BYTES)), Ok(()));
    }

    #[test]
    fn empty_long_and_control_names_are_refused() {
        assert_eq!(check_name(""), Err(NameFault::Empty));
        assert_eq!(check_start(""), Ok(()));
        let long: String = "é".repeat(1024);
        assert_eq!(check_name(&long), Err(NameFault::TooLong { bytes: 2048 }));
        for found in ['\0', '\n', '\u{1f}', '\u{7f}', '\u{85}', '\u{9f}'] {
            let name: String = ['é', found].into_iter().collect();
            assert_eq!(check_name(&name), Err(NameFault::ControlChar { found, at: 2 }));
        }
        assert_eq!(
            check_name("a\tb").map_err(|fault| alloc::format!("{fault}")),
            Err("a name holds no control characters, this one has U+0009 at byte 1".into())
        );
    }
}
