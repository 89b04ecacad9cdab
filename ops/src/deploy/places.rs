//! Where keys stand in a TOML text: the line of a key, and the key of a place.
//!
//! Knows no key by name.

use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};

/// The keys of a text.
#[derive(Debug)]
pub(crate) struct Places<'t> {
    text: &'t str,
    /// Every key with the places of itself and of its value, in the order of the document tree.
    keys: Vec<(String, Range<usize>)>,
}

impl<'t> Places<'t> {
    /// Finds all keys.
    ///
    /// # Errors
    /// The text is no TOML.
    pub(crate) fn of(text: &'t str) -> Result<Self, Error> {
        let table = DeTable::parse(text)?;
        let mut keys = Vec::new();
        descend(String::new(), table.get_ref(), &mut keys);
        Ok(Self { text, keys })
    }

    /// The line of a key, from 1; where it is not there that of the innermost table that would hold it.
    pub(crate) fn line(&self, key: &str) -> usize {
        let holds = |known: &str| {
            key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let innermost =
            self.keys.iter().filter(|(known, _)| holds(known)).max_by_key(|(known, _)| known.len());
        innermost.map_or(1, |(_, place)| line_of(self.text, place.start))
    }

    /// The line of a place, and the innermost key there.
    pub(crate) fn at(&self, at: usize) -> (usize, String) {
        let here = self.keys.iter().filter(|(_, place)| place.contains(&at));
        let innermost = here.max_by_key(|(key, _)| key.len());
        (line_of(self.text, at), innermost.map(|(key, _)| key.clone()).unwrap_or_default())
    }
}

/// The line of a place in a text, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn descend(path: String, table: &DeTable<'_>, keys: &mut Vec<(String, Range<usize>)>) {
    for (key, value) in table {
        let key_path =
            if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
        // A table's key and value may stand apart; both are places of it, but not what lies between them.
        keys.push((key_path.clone(), key.span()));
        keys.push((key_path.clone(), value.span()));
        inside(key_path, value.get_ref(), keys);
    }
}

fn inside(path: String, value: &DeValue<'_>, keys: &mut Vec<(String, Range<usize>)>) {
    match value {
        DeValue::Table(table) => descend(path, table, keys),
        DeValue::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                let path = format!("{path}[{at}]");
                keys.push((path.clone(), value.span()));
                inside(path, value.get_ref(), keys);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "cluster = 'x'\n\n[ports]\nhttp = 1\n\n[[members]]\nid = 1\n\n[[members]]\nid = 2\nhost = 'b'\n";

    #[test]
    fn keys_have_the_line_they_stand_in() {
        let places = Places::of(TEXT).unwrap();
        let lines = ["cluster", "ports.http", "members[0].id", "members[1].host", "members[0].host", "zone"]
            .map(|key| places.line(key));
        assert_eq!(lines, [1, 4, 7, 11, 6, 1]);
    }

    #[test]
    fn places_have_the_innermost_key() {
        let places = Places::of(TEXT).unwrap();
        assert_eq!(places.at(TEXT.find("'b'").unwrap()), (11, "members[1].host".to_owned()));
        assert_eq!(places.at(TEXT.find("http").unwrap()), (4, "ports.http".to_owned()));
    }

    #[test]
    fn text_that_is_no_toml_is_an_error() {
        assert!(Places::of("cluster = ").is_err());
    }
}
