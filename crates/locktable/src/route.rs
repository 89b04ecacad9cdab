//! Which name a key routes by.
//!
//! Endpoints and apply use the same two functions, so that a key is looked for where it was put. Nothing here knows
//! which group a name belongs to.

use alloc::{borrow::Cow, string::String};

use crate::name::Name;

/// The internal name by which a single key routes: its lock's name where it is shaped like a lock key, whatever its lease;
/// else the whole key as a text.
pub fn of_key(key: &[u8]) -> Cow<'_, str> {
    match Name::split_key(key) {
        Some((name, _)) => Cow::Borrowed(name),
        None => String::from_utf8_lossy(key),
    }
}

/// The internal name by which a read of a range routes: of its only key, or of the queue `NAME` where all keys it can
/// hold begin with `NAME/`. `None` where it may span names that share nothing.
pub fn of_range<'a>(key: &'a [u8], range_end: &[u8]) -> Option<Cow<'a, str>> {
    if range_end.is_empty() {
        return Some(of_key(key));
    }
    let slash = key.iter().rposition(|&b| b == b'/')?;
    let name = key.get(..slash).filter(|name| !name.is_empty())?;
    let mut past = name.to_vec();
    past.push(b'/' + 1);
    (range_end > key && range_end <= past.as_slice()).then(|| String::from_utf8_lossy(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_key_routes_with_its_name_and_others_by_themselves() {
        assert_eq!(of_key(b"jobs/a/1f"), "jobs/a");
        assert_eq!(of_key(b"\x01election/a/1f"), "\u{1}election/a");
        assert_eq!(of_key(b"jobs/a/"), "jobs/a/");
        assert_eq!(of_key(b"/1f"), "/1f");
        assert_eq!(of_key(b"\xff/1f"), "\u{fffd}/1f");
    }

    #[test]
    fn the_range_of_a_queue_routes_with_its_name() {
        assert_eq!(of_range(b"jobs/", b"jobs0").as_deref(), Some("jobs"));
        assert_eq!(of_range(b"jobs/\0", b"jobs0").as_deref(), Some("jobs"));
        assert_eq!(of_range(b"jobs/1f", b"").as_deref(), Some("jobs"));
        assert_eq!(of_range(b"jobs", b"jobt"), None, "names that only begin alike");
        assert_eq!(of_range(b"jobs/", b"\0"), None, "everything from there on");
        assert_eq!(of_range(b"/", b"0"), None);
    }
}
