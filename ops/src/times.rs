//! Lengths of time and sizes for people.

use std::time::Duration;

/// A length of time with at most two units: `1m 3s`, `250ms`.
pub(crate) fn length(ms: u64) -> String {
    let rounded = match ms {
        0..1_000 => ms,
        1_000..3_600_000 => ms / 1_000 * 1_000,
        _ => ms / 60_000 * 60_000,
    };
    let text = humantime::format_duration(Duration::from_millis(rounded)).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// The end of the year 9999, beyond which dates have no agreed form; milliseconds since 1970.
const LAST_POINT_MS: u64 = 253_402_300_799_999;

/// A point in time, UTC; `?` for one that no clock shows.
pub(crate) fn point(ms_since_1970: u64) -> String {
    if ms_since_1970 > LAST_POINT_MS {
        return "?".to_owned();
    }
    let point = std::time::UNIX_EPOCH + Duration::from_millis(ms_since_1970);
    humantime::format_rfc3339_seconds(point).to_string()
}

/// A number of bytes.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units_at_most() {
        assert_eq!(length(0), "0s");
        assert_eq!(length(250), "250ms");
        assert_eq!(length(63_700), "1m 3s");
        assert_eq!(length(90_061_000), "1day 1h");
    }

    #[test]
    fn points_are_utc() {
        assert_eq!(point(0), "1970-01-01T00:00:00Z");
        assert_eq!(point(LAST_POINT_MS), "9999-12-31T23:59:59Z");
        assert_eq!(point(LAST_POINT_MS + 1), "?");
        assert_eq!(point(u64::MAX), "?");
    }
}
