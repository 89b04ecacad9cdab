//! How a lock name is read for routing. Knows text, not maps or groups.

/// Longest lock name, in bytes of UTF-8. The shortest has one byte.
pub const MAX_NAME_BYTES: usize = 2047;

/// What the internal name of a native election queue begins with; the election's own name follows.
///
/// U+0001 is refused in names given by clients, so no lock can be mistaken for an election's queue.
pub const ELECTION_MARKER: &str = "\u{1}election/";

/// The name that decides where `name` lives: an election routes like the lock of the same name.
///
/// Strips [`ELECTION_MARKER`] once if it is there. [`locate`](crate::PartitionMap::locate) and
/// [`Range::contains`](crate::Range::contains) both do this themselves.
#[must_use]
pub fn routed_name(name: &str) -> &str {
    name.strip_prefix(ELECTION_MARKER).unwrap_or(name)
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
