//! Names and values as they may be shown on a terminal.
//!
//! Anybody may choose a lock's name, so it may hold characters that move the cursor or turn the reading direction.

use std::fmt::Write as _;

/// The text with every character that steers a terminal or hides itself written as `\u{…}`.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        } else {
            out.push(c);
        }
    }
    out
}

/// JSON text with such characters as `\uXXXX`: the same value for every reader, harmless on a terminal. In JSON text
/// they stand inside strings only, but for line ends and indentation, which stay.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a text has any such character.
pub(crate) fn needed(text: &str) -> bool {
    text.chars().any(|c| steers(c) && c != '\n')
}

/// Control characters, line and paragraph separators, bidirectional controls, and characters without width.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_shown_as_they_are() {
        for name in ["jobs/nightly", "a//b", "é", "鍵", "🔒", "with space", "back\\slash"] {
            assert_eq!(shown(name), name);
            assert_eq!(json(name), name);
        }
    }

    #[test]
    fn characters_that_steer_a_terminal_are_written_out() {
        assert_eq!(shown("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(shown("\u{202e}gpj.exe"), "\\u{202e}gpj.exe");
        assert_eq!(shown("zero\u{200b}width\u{9b}"), "zero\\u{200b}width\\u{9b}");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"name": "\u{202e}x\u{9b}\u{e0001}", "other": [1, "\u{7f}"]});
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!needed(&text), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
