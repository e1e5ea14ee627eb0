//! What goes into a statement and what comes out of it, the same for both databases.

use sqlx::{ColumnIndex, Database, TypeInfo as _, ValueRef as _, error::BoxDynError};

use crate::{StoreError, StoreResult};

/// An argument of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    /// A number.
    Int(Option<i64>),
    /// A fraction.
    Real(f64),
    /// `TEXT` of SQL, or NULL.
    Text(Option<String>),
    /// Bytes.
    Blob(Vec<u8>),
    /// A table (`@rows`).
    Rows(Batch),
}

/// Arguments of a statement, in the order of `$1`, `$2`, …
pub(crate) type Args = Vec<Arg>;

/// Makes [`Args`] of values.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::sql::Arg::from($value)),*] };
}
pub(crate) use args;

macro_rules! arg_from {
    ($($from:ty => |$value:ident| $make:expr;)*) => {
        $(impl From<$from> for Arg { fn from($value: $from) -> Self { $make } })*
    };
}
arg_from! {
    i64 => |v| Self::Int(Some(v));
    i32 => |v| Self::Int(Some(v.into()));
    u32 => |v| Self::Int(Some(v.into()));
    bool => |v| Self::Int(Some(v.into()));
    Option<i64> => |v| Self::Int(v);
    f64 => |v| Self::Real(v);
    String => |v| Self::Text(Some(v));
    &str => |v| Self::Text(Some(v.to_owned()));
    Option<String> => |v| Self::Text(v);
    Vec<u8> => |v| Self::Blob(v);
    Batch => |v| Self::Rows(v);
}

/// A table of arguments, kept by columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    /// The columns, all of one length.
    pub(crate) columns: Vec<Column>,
}

/// A column of a [`Batch`].
#[derive(Debug, Clone)]
pub(crate) enum Column {
    /// Numbers.
    Int(Vec<i64>),
    /// Texts, each of which may be missing.
    Text(Vec<Option<String>>),
    /// Bytes.
    Blob(Vec<Vec<u8>>),
}

impl Batch {
    /// Adds a column of numbers.
    pub(crate) fn int(mut self, values: impl IntoIterator<Item = i64>) -> Self {
        self.columns.push(Column::Int(values.into_iter().collect()));
        self
    }

    /// Adds a column of texts.
    pub(crate) fn text(mut self, values: impl IntoIterator<Item = String>) -> Self {
        self.columns.push(Column::Text(values.into_iter().map(Some).collect()));
        self
    }

    /// Adds a column of texts or nothing.
    pub(crate) fn opt_text(mut self, values: impl IntoIterator<Item = Option<String>>) -> Self {
        self.columns.push(Column::Text(values.into_iter().collect()));
        self
    }

    /// Adds a column of bytes.
    pub(crate) fn blob(mut self, values: impl IntoIterator<Item = Vec<u8>>) -> Self {
        self.columns.push(Column::Blob(values.into_iter().collect()));
        self
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| match column {
            Column::Int(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Blob(values) => values.len(),
        })
    }
}

/// A value that was read.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// No value, whatever the column's type.
    Null,
    /// A number.
    Int(i64),
    /// A fraction.
    Real(f64),
    /// `TEXT` of SQL.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Makes a cell of a value by the name of its type.
pub(crate) type ReadCell<'r, D> = fn(&str, <D as Database>::ValueRef<'r>) -> Result<Option<Cell>, BoxDynError>;

/// A row that was read. Texts and bytes are taken out, not copied: each column is read once.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    /// Reads a row of any database. `cell` makes cells of values that are not NULL, by the name of their type; it has none
    /// for types that the schema does not use.
    pub(crate) fn read<'r, R: sqlx::Row>(row: &'r R, cell: ReadCell<'r, R::Database>) -> StoreResult<Self>
    where
        usize: ColumnIndex<R>,
    {
        let corrupt = |e: BoxDynError| StoreError::Corrupt(e.to_string().into());
        let cells = (0..row.len()).map(|at| {
            let value = row.try_get_raw(at).map_err(|e| corrupt(e.into()))?;
            if value.is_null() {
                return Ok(Cell::Null);
            }
            let kind = value.type_info().into_owned();
            let read = cell(kind.name(), value).map_err(corrupt)?;
            read.ok_or_else(|| StoreError::Corrupt(format!("a value of type {}", kind.name()).into()))
        });
        cells.collect::<StoreResult<Vec<Cell>>>().map(Self)
    }

    fn wrong<T>(&self, column: usize, wanted: &str) -> StoreResult<T> {
        Err(StoreError::Corrupt(format!("column {column} of a row is not {wanted}: {:?}", self.0.get(column)).into()))
    }

    /// A number.
    pub(crate) fn int(&self, column: usize) -> StoreResult<i64> {
        match self.0.get(column) {
            Some(Cell::Int(value)) => Ok(*value),
            _ => self.wrong(column, "a whole number"),
        }
    }

    /// A number that fits a smaller type.
    pub(crate) fn small<T: TryFrom<i64>>(&self, column: usize) -> StoreResult<T> {
        T::try_from(self.int(column)?).or_else(|_| self.wrong(column, "a number in its range"))
    }

    /// A number or NULL.
    pub(crate) fn opt_int(&self, column: usize) -> StoreResult<Option<i64>> {
        if matches!(self.0.get(column), Some(Cell::Null)) { Ok(None) } else { self.int(column).map(Some) }
    }

    /// A fraction.
    pub(crate) fn real(&self, column: usize) -> StoreResult<f64> {
        match self.0.get(column) {
            Some(Cell::Real(value)) => Ok(*value),
            Some(Cell::Int(value)) => Ok(*value as f64),
            _ => self.wrong(column, "a number"),
        }
    }

    pub(crate) fn text(&mut self, column: usize) -> StoreResult<String> {
        match self.0.get_mut(column) {
            Some(Cell::Text(value)) => Ok(std::mem::take(value)),
            _ => self.wrong(column, "a text"),
        }
    }

    /// A text or NULL.
    pub(crate) fn opt_text(&mut self, column: usize) -> StoreResult<Option<String>> {
        if matches!(self.0.get(column), Some(Cell::Null)) { Ok(None) } else { self.text(column).map(Some) }
    }

    /// Bytes.
    pub(crate) fn blob(&mut self, column: usize) -> StoreResult<Vec<u8>> {
        match self.0.get_mut(column) {
            Some(Cell::Blob(value)) => Ok(std::mem::take(value)),
            _ => self.wrong(column, "bytes"),
        }
    }
}
