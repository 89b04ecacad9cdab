//! Code and comments of a Rust source told apart. Knows just enough of the language: comments, strings, characters.

/// Two copies of a source with the same lines; in each, everything that does not belong is blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// The code, without comments and without what stands in string and character literals.
    pub code: String,
    /// The comments, doc comments included.
    pub comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Code,
    Comment,
    Literal,
}

impl Views {
    /// Tells a source apart. Text that is not Rust gives some views, never an error.
    #[must_use]
    pub fn of(source: &str) -> Self {
        let mut views = Self { code: String::new(), comments: String::new() };
        let mut rest = source;
        let mut inside_word = false;
        while !rest.is_empty() {
            let (sort, length) = if inside_word { (Sort::Code, first_len(rest)) } else { next_piece(rest) };
            let (piece, after) = rest.split_at(length);
            views.push(sort, piece);
            inside_word = sort == Sort::Code && piece.ends_with(is_word);
            // A prefix such as the `r` of a raw string begins a word and is looked at before that.
            inside_word &= after.starts_with(is_word);
            rest = after;
        }
        views
    }

    fn push(&mut self, sort: Sort, piece: &str) {
        for c in piece.chars() {
            let blank = if c == '\n' { c } else { ' ' };
            self.code.push(if sort == Sort::Code { c } else { blank });
            self.comments.push(if sort == Sort::Comment { c } else { blank });
        }
    }
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn first_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// What begins here, and how many bytes of it belong together.
fn next_piece(rest: &str) -> (Sort, usize) {
    if rest.starts_with("//") {
        return (Sort::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Sort::Comment, block_comment_len(rest));
    }
    if let Some(length) = raw_string_len(rest).or_else(|| string_len(rest)).or_else(|| char_len(rest)) {
        return (Sort::Literal, length);
    }
    (Sort::Code, first_len(rest))
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += first_len(tail);
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#` and the same after `b` or `c`.
fn raw_string_len(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let text = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - text.len();
    Some(text.find(&end).map_or(rest.len(), |at| start + at + end.len()))
}

/// `"…"` with escapes, and the same after `b` or `c`.
fn string_len(rest: &str) -> Option<usize> {
    let text = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('"')?;
    let start = rest.len() - text.len();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(start + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// `'x'`, `'\n'`, `b'x'`; not a lifetime.
fn char_len(rest: &str) -> Option<usize> {
    let text = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('\'')?;
    let start = rest.len() - text.len();
    let first = text.chars().next()?;
    let skipped = if first == '\\' { 1 + first_len(&text[1..]) } else { first.len_utf8() };
    let end = text.get(skipped..)?.find('\'')?;
    // Only an escape such as `\u{1f600}` has more than one character.
    (first == '\\' || end == 0).then_some(start + skipped + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_views(source: &str, code: &str, comments: &str) {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let views = Views::of(source);
        assert_eq!(squeezed(&views.code), code, "code of {source:?}");
        assert_eq!(squeezed(&views.comments), comments, "comments of {source:?}");
        assert_eq!(views.code.lines().count(), source.lines().count());
    }

    #[test]
    fn comments_are_told_from_code() {
        assert_views("a(); // b\n/// c\nd();", "a(); d();", "// b /// c");
        assert_views("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        assert_views("a /* open\nb", "a", "/* open b");
    }

    #[test]
    fn literals_belong_to_neither() {
        assert_views(r#"a("// no", b"x\"y", c) // d"#, "a( , , c)", "// d");
        assert_views("a(r#\"b \" // \"#, r\"c\\\", br##\"\"# \"##) // d", "a( , , )", "// d");
        assert_views(r#"a('"', '\'', b'\\', '\u{1f600}', 'é') // d"#, "a( , , , , )", "// d");
    }

    #[test]
    fn lifetimes_and_words_ending_in_a_prefix_are_code() {
        assert_views(
            "fn f<'a>(x: &'a str, y: &'static str) {}",
            "fn f<'a>(x: &'a str, y: &'static str) {}",
            "",
        );
        assert_views("for\"x\" // y", "for", "// y");
        assert_views("let r = r#type; // y", "let r = r#type;", "// y");
        assert_views("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }", "");
    }
}
