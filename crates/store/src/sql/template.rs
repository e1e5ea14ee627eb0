//! One SQL text for both databases. What differs is written as a mark and expanded once per dialect:
//!
//! | mark | meaning |
//! |---|---|
//! | `$1`, `$2`, … | the call's arguments, in order |
//! | `@rows($1: run int, facts text)` | argument 1 is a [`super::Batch`]: a table with these columns (`int`, `text`, `blob`) |
//! | `@locked(tasks $1: run int, task int)` | the same, its rows of the table `tasks` (or one of `KEYS`) locked in the order of their keys |
//! | `@share(s)` | locks the row of `s` against those who lock it to change it |
//! | `@now` | the store's clock in microseconds since 1970 |
//! | `@number(c.doc, times.question_us)` | the whole number at a path of a JSON text, 0 when it is not there; no other field has the name |
//! | `@each($1, b.task)` | the number `$1`, as if each row of the batch brought it (`b.task` is any number of the batch) |
//!
//! SQLite gets a batch as one JSON array (numbers) and one blob (all bytes, cut by `substr`); Postgres gets one array per
//! column for `UNNEST`. Either way the text is the same for any number of rows, so statements are prepared once.
//!
//! `@each` is about plans. A condition like `t.run_no = $1` lets a planner begin with the table instead of the batch, and one
//! that has no statistics of a run that is a minute old believes that it will find ten rows there, where a million are. What
//! comes from the batch can only be looked up row by row. SQLite needs none of it: its statistics are written by hand.
//!
//! `@locked` is about round trips: a change of rows that must be locked in one order is one statement instead of two. Only for
//! the rows that an UPDATE changes or a DELETE removes: what it reads besides is as old as the statement. SQLite has one writer
//! and locks nothing.

use std::{fmt::Write as _, sync::OnceLock};

/// The two families of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `json_each`, times bound by the client.
    Sqlite,
    /// `UNNEST`, times of the server.
    Postgres,
}

/// A statement, written once and expanded per dialect on first use.
pub(crate) struct Sql {
    write: fn() -> String,
    sqlite: OnceLock<Expanded>,
    postgres: OnceLock<Expanded>,
    locking: OnceLock<String>,
}

/// A statement as a database reads it.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Whether the current time is bound as one more argument at the end.
    pub(crate) binds_now: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Text,
    Blob,
}

type Columns<'a> = Vec<(&'a str, Kind)>;

/// The columns of a table's key, and those of the batch that name it.
const KEYS: [(&str, &[(&str, &str)]); 4] = [
    ("tasks", &[("run_no", "run"), ("task_key", "task")]),
    ("banks", &[("run_no", "run"), ("bank_no", "bank")]),
    ("unsent_traces", &[("run_no", "run"), ("task_key", "task")]),
    ("reservations", &[("attempt_id", "attempt")]),
];

impl Sql {
    /// A statement whose text is made by `write` (a function, because guards are generated).
    pub(crate) const fn new(write: fn() -> String) -> Self {
        Self { write, sqlite: OnceLock::new(), postgres: OnceLock::new(), locking: OnceLock::new() }
    }

    /// The text for Postgres that locks the rows it finds.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only Postgres locks rows"))]
    pub(crate) fn locking(&self) -> &str {
        self.locking.get_or_init(|| format!("{} FOR UPDATE", self.expanded(Dialect::Postgres).text))
    }

    /// The text for a dialect.
    pub(crate) fn expanded(&self, dialect: Dialect) -> &Expanded {
        let cell = match dialect {
            Dialect::Sqlite => &self.sqlite,
            Dialect::Postgres => &self.postgres,
        };
        cell.get_or_init(|| expand(&(self.write)(), dialect))
    }
}

/// Expands all marks of a template.
fn expand(template: &str, dialect: Dialect) -> Expanded {
    let batches = declared_batches(template);
    let mut arguments = 0;
    visit(template, |mark| {
        if let Mark::Argument(n) | Mark::Rows(n, _) | Mark::Locked(_, n, _) = mark {
            arguments = arguments.max(n);
        }
    });
    // number of the first placeholder of each argument
    let mut first = vec![0];
    let mut next = 1;
    for n in 1..=arguments {
        first.push(next);
        next += match batches.iter().find(|(of, _)| *of == n) {
            None => 1,
            Some((_, columns)) if dialect == Dialect::Postgres => columns.len(),
            Some((_, columns)) => 1 + usize::from(columns.iter().any(|(_, kind)| *kind != Kind::Int)),
        };
    }
    let (mut text, mut binds_now) = (String::with_capacity(template.len() + 200), false);
    visit(template, |mark| match mark {
        Mark::Plain(plain) => text.push_str(plain),
        Mark::Argument(n) => push(&mut text, format_args!("${}", first[n])),
        Mark::Rows(n, columns) => push_rows(&mut text, dialect, first[n], &columns),
        Mark::Locked(table, n, columns) if dialect == Dialect::Postgres => {
            push_locked(&mut text, table, first[n], &columns)
        }
        Mark::Locked(_, n, columns) => push_rows(&mut text, dialect, first[n], &columns),
        Mark::Share(alias) if dialect == Dialect::Postgres => push(&mut text, format_args!("FOR KEY SHARE OF {alias}")),
        Mark::Share(_) => {}
        Mark::Number(column, path) => push_number(&mut text, dialect, column, path),
        Mark::EachOpens if dialect == Dialect::Postgres => text.push('('),
        Mark::EachEnds(number) if dialect == Dialect::Postgres => push(&mut text, format_args!(" + 0 * {number})")),
        Mark::EachOpens | Mark::EachEnds(_) => {}
        Mark::Now if dialect == Dialect::Postgres => {
            text.push_str("(extract(epoch FROM statement_timestamp()) * 1000000)::int8")
        }
        Mark::Now => {
            binds_now = true;
            push(&mut text, format_args!("${next}"));
        }
    });
    Expanded { text, binds_now }
}

fn push_rows(text: &mut String, dialect: Dialect, first: usize, columns: &Columns<'_>) {
    match dialect {
        Dialect::Sqlite => {
            text.push_str("(SELECT ");
            let mut cell = 0;
            for (i, (name, kind)) in columns.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                let bytes = first + 1;
                match kind {
                    Kind::Int if columns.len() == 1 => push(text, format_args!("value AS {name}")),
                    Kind::Int => push(text, format_args!("{comma}value->>{cell} AS {name}")),
                    Kind::Blob => push(
                        text,
                        format_args!("{comma}substr(${bytes}, value->>{cell}, value->>{}) AS {name}", cell + 1),
                    ),
                    Kind::Text => push(
                        text,
                        format_args!(
                            "{comma}CAST(substr(${bytes}, value->>{cell}, value->>{}) AS TEXT) AS {name}",
                            cell + 1
                        ),
                    ),
                }
                cell += if *kind == Kind::Int { 1 } else { 2 };
            }
            push(text, format_args!(" FROM json_each(${first}))"));
        }
        Dialect::Postgres => {
            text.push_str("(SELECT * FROM UNNEST(");
            for (i, (_, kind)) in columns.iter().enumerate() {
                let sql_type = match kind {
                    Kind::Int => "int8",
                    Kind::Text => "text",
                    Kind::Blob => "bytea",
                };
                push(text, format_args!("{}${}::{sql_type}[]", if i > 0 { ", " } else { "" }, first + i));
            }
            let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            push(text, format_args!(") AS u({}))", names.join(", ")));
        }
    }
}

/// A number out of a JSON text. Postgres refuses to look into documents that hold a U+0000, so its text is cut: a name between
/// quotes and before a colon stands in no text of a document, where quotes are escaped.
fn push_number(text: &mut String, dialect: Dialect, column: &str, path: &str) {
    let name = path.rsplit('.').next().unwrap_or(path);
    match dialect {
        Dialect::Sqlite => push(text, format_args!("COALESCE({column} ->> '$.{path}', 0)")),
        Dialect::Postgres => push(
            text,
            format_args!(
                "COALESCE(NULLIF(split_part(split_part(split_part({column}, '\"{name}\":', 2), ',', 1), '}}', 1), '')::int8, 0)"
            ),
        ),
    }
}

/// The rows of a batch whose rows in a table are there, locked one after the other.
fn push_locked(text: &mut String, table: &str, first: usize, columns: &Columns<'_>) {
    let key = KEYS.iter().find(|(name, _)| *name == table).map(|(_, key)| key).expect("a table with a known key");
    text.push_str("(SELECT b.* FROM ");
    push_rows(text, Dialect::Postgres, first, columns);
    let on: Vec<String> = key.iter().map(|(column, of_batch)| format!("l.{column} = b.{of_batch}")).collect();
    let order: Vec<String> = key.iter().map(|(column, _)| format!("l.{column}")).collect();
    let (on, order) = (on.join(" AND "), order.join(", "));
    push(text, format_args!(" AS b JOIN {table} AS l ON {on} ORDER BY {order} FOR UPDATE OF l)"));
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}

enum Mark<'a> {
    Plain(&'a str),
    Argument(usize),
    Rows(usize, Columns<'a>),
    Locked(&'a str, usize, Columns<'a>),
    Share(&'a str),
    Number(&'a str, &'a str),
    EachOpens,
    EachEnds(&'a str),
    Now,
}

fn declared_batches(template: &str) -> Vec<(usize, Columns<'_>)> {
    let mut batches: Vec<(usize, Columns<'_>)> = Vec::new();
    visit(template, |mark| {
        if let Mark::Rows(n, columns) | Mark::Locked(_, n, columns) = mark {
            batches.push((n, columns));
        }
    });
    batches
}

/// Cuts a template at its marks. Templates are constants of this crate, so a malformed one is a bug that the test of all
/// statements meets.
fn visit<'a>(template: &'a str, mut see: impl FnMut(Mark<'a>)) {
    cut(template, &mut see);
}

fn cut<'a>(template: &'a str, see: &mut dyn FnMut(Mark<'a>)) {
    let mut rest = template;
    while let Some(at) = rest.find(['$', '@']) {
        see(Mark::Plain(&rest[..at]));
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("@now") {
            see(Mark::Now);
            rest = after;
        } else if let Some((inside, after)) = rest.strip_prefix("@rows($").and_then(|r| r.split_once(')')) {
            let (n, columns) = batch(inside);
            see(Mark::Rows(n, columns));
            rest = after;
        } else if let Some((inside, after)) = rest.strip_prefix("@locked(").and_then(|r| r.split_once(')')) {
            let (table, inside) = inside.split_once(" $").expect("@locked names its table");
            let (n, columns) = batch(inside);
            see(Mark::Locked(table, n, columns));
            rest = after;
        } else if let Some((alias, after)) = rest.strip_prefix("@share(").and_then(|r| r.split_once(')')) {
            see(Mark::Share(alias));
            rest = after;
        } else if let Some((inside, after)) = rest.strip_prefix("@number(").and_then(|r| r.split_once(')')) {
            let (column, path) = inside.split_once(", ").expect("@number names a column and a path");
            see(Mark::Number(column, path));
            rest = after;
        } else if let Some((value, after)) = rest.strip_prefix("@each(").and_then(|r| r.split_once(", ")) {
            let (number, after) = after.split_once(')').expect("@each names a number of the batch");
            see(Mark::EachOpens);
            cut(value, see);
            see(Mark::EachEnds(number));
            rest = after;
        } else {
            let digits = rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| end + 1);
            see(Mark::Argument(rest[1..digits].parse().expect("an argument has a number")));
            rest = &rest[digits..];
        }
    }
    see(Mark::Plain(rest));
}

/// Number and columns of a batch.
fn batch(inside: &str) -> (usize, Columns<'_>) {
    let (n, columns) = inside.split_once(':').expect("a batch names its columns");
    (n.parse().expect("a batch names its argument"), columns.split(',').map(column).collect())
}

fn column(declaration: &str) -> (&str, Kind) {
    let (name, kind) = declaration.trim().split_once(' ').expect("a column has a name and a type");
    let kind = match kind {
        "int" => Kind::Int,
        "text" => Kind::Text,
        "blob" => Kind::Blob,
        other => unreachable!("no column type {other}"),
    };
    (name, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str =
        "SELECT b.run, $2 FROM @rows($1: run int, facts text, body blob) AS b WHERE b.run < $3 AND $4 < @now";

    #[test]
    fn sqlite_gets_json_and_one_blob() {
        let expanded = expand(TEMPLATE, Dialect::Sqlite);
        assert!(expanded.binds_now);
        assert_eq!(
            expanded.text,
            "SELECT b.run, $3 FROM (SELECT value->>0 AS run, CAST(substr($2, value->>1, value->>2) AS TEXT) AS facts, \
             substr($2, value->>3, value->>4) AS body FROM json_each($1)) AS b WHERE b.run < $4 AND $5 < $6"
        );
        assert_eq!(
            expand("@rows($1: task int) AS b", Dialect::Sqlite).text,
            "(SELECT value AS task FROM json_each($1)) AS b"
        );
    }

    #[test]
    fn postgres_gets_one_array_per_column() {
        let expanded = expand(TEMPLATE, Dialect::Postgres);
        assert!(!expanded.binds_now);
        assert_eq!(
            expanded.text,
            "SELECT b.run, $4 FROM (SELECT * FROM UNNEST($1::int8[], $2::text[], $3::bytea[]) AS u(run, facts, body)) AS b \
             WHERE b.run < $5 AND $6 < (extract(epoch FROM statement_timestamp()) * 1000000)::int8"
        );
    }

    #[test]
    fn rows_are_locked_in_the_order_of_their_keys_where_others_write_too() {
        let template = "UPDATE tasks AS t FROM @locked(tasks $1: run int, task int) AS b";
        assert_eq!(
            expand(template, Dialect::Sqlite).text,
            "UPDATE tasks AS t FROM (SELECT value->>0 AS run, value->>1 AS task FROM json_each($1)) AS b"
        );
        assert_eq!(
            expand(template, Dialect::Postgres).text,
            "UPDATE tasks AS t FROM (SELECT b.* FROM (SELECT * FROM UNNEST($1::int8[], $2::int8[]) AS u(run, task)) AS b \
             JOIN tasks AS l ON l.run_no = b.run AND l.task_key = b.task ORDER BY l.run_no, l.task_key FOR UPDATE OF l) AS b"
        );
        assert_eq!(expand("SELECT 1 @share(s)", Dialect::Postgres).text, "SELECT 1 FOR KEY SHARE OF s");
        assert_eq!(expand("SELECT 1 @share(s)", Dialect::Sqlite).text, "SELECT 1 ");
        let number = "@number(c.doc, times.us) DESC";
        assert_eq!(expand(number, Dialect::Sqlite).text, "COALESCE(c.doc ->> '$.times.us', 0) DESC");
        assert_eq!(
            expand(number, Dialect::Postgres).text,
            "COALESCE(NULLIF(split_part(split_part(split_part(c.doc, '\"us\":', 2), ',', 1), '}', 1), '')::int8, 0) DESC"
        );
    }

    #[test]
    fn numbers_of_the_call_become_numbers_of_the_batch() {
        let template = "t.run_no = @each($1, b.task) AND t.state = @each(0, b.task) AND $2";
        assert_eq!(expand(template, Dialect::Sqlite).text, "t.run_no = $1 AND t.state = 0 AND $2");
        assert_eq!(
            expand(template, Dialect::Postgres).text,
            "t.run_no = ($1 + 0 * b.task) AND t.state = (0 + 0 * b.task) AND $2"
        );
    }
}
