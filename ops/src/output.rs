//! Answers on standard output: a table for people, JSON or YAML for programs.
//!
//! Field names of JSON and YAML are published. Nothing else writes to standard output.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::{escape, failure::Failure};

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// JSON; one object per line where a verb prints line by line
    Json,
    /// YAML
    Yaml,
}

/// Columns for people. Every cell is escaped, so that names cannot steer the terminal.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    empty: &'static str,
}

impl Table {
    /// A table without rows, and the line that is shown while it has none.
    pub(crate) fn new(header: &[&'static str], empty: &'static str) -> Self {
        Self { header: header.to_vec(), rows: Vec::new(), empty }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| escape::shown(&cell)).collect());
    }

    /// The table as text, without line end.
    pub(crate) fn text(&self) -> String {
        if self.rows.is_empty() {
            return self.empty.to_owned();
        }
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING).set_header(&self.header).add_rows(&self.rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let text = table.to_string();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

/// Prints one answer.
pub(crate) fn print<T: Serialize>(
    format: Format,
    value: &T,
    table: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    write(&match format {
        Format::Table => table(value),
        Format::Json => json(&to_json(value)?, false),
        Format::Yaml => yaml(value)?,
    })
}

/// Prints one of a stream of answers: a line for people, one JSON object per line, or one YAML document.
pub(crate) fn print_next<T: Serialize>(
    format: Format,
    value: &T,
    line: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    write(&match format {
        Format::Table => escape::shown(&line(value)),
        Format::Json => json(&to_json(value)?, true),
        Format::Yaml => format!("---\n{}", yaml(value)?),
    })
}

fn to_json<T: Serialize>(value: &T) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::other(format!("cannot write the answer as JSON: {e}")))
}

fn json(value: &serde_json::Value, one_line: bool) -> String {
    escape::json(&if one_line { value.to_string() } else { format!("{value:#}") })
}

fn yaml<T: Serialize>(value: &T) -> Result<String, Failure> {
    let text = serde_yaml_ng::to_string(value)
        .map_err(|e| Failure::other(format!("cannot write the answer as YAML: {e}")))?;
    // YAML has no escapes outside quotes; JSON is YAML too, and has them.
    if escape::needed(&text) {
        return Ok(json(&to_json(value)?, false));
    }
    Ok(text.trim_end().to_owned())
}

/// Writes text and a line end. A reader that went away (`… | head`) ends the command silently, as it would end `cat`.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => Err(Failure::other(format!("cannot write to standard output: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_is_a_friendly_line() {
        assert_eq!(Table::new(&["NAME"], "no locks").text(), "no locks");
    }

    #[test]
    fn columns_line_up_and_cells_are_harmless() {
        let mut table = Table::new(&["NAME", "TOKEN"], "no locks");
        table.row(["a".into(), "17".into()]);
        table.row(["longer\u{202e}".into(), "4".into()]);
        assert_eq!(table.text(), "NAME            TOKEN\na               17\nlonger\\u{202e}  4");
    }

    #[test]
    fn yaml_with_hostile_names_is_escaped_and_still_yaml() {
        let value = serde_json::json!([{"name": "\u{202e}x"}]);
        let text = yaml(&value).unwrap();
        assert!(!escape::needed(&text), "{text}");
        assert_eq!(serde_yaml_ng::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
