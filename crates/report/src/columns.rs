//! Questions as Parquet: the columns of [`crate::export`], texts as strings, scores as doubles, absent cells as nulls.

use std::{io::Write, sync::Arc};

use bench_proto::summary::QuestionLine;
use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as PhysicalType},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::Type,
};

use crate::export::{COLUMNS, Cell, MoreColumns, cells};

/// Questions of one row group: a bound on memory.
const GROUP: usize = 5_000;

/// Writes questions as a Parquet file.
pub struct ParquetQuestions<W: Write + Send> {
    out: SerializedFileWriter<W>,
    more: MoreColumns,
    rows: Vec<Vec<Cell>>,
}

impl<W: Write + Send> ParquetQuestions<W> {
    /// Writes the head of the file.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(out: W, more: MoreColumns) -> std::io::Result<Self> {
        let schema = Arc::new(schema(&more).map_err(std::io::Error::other)?);
        let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
        let out = SerializedFileWriter::new(out, schema, properties).map_err(std::io::Error::other)?;
        Ok(Self { out, more, rows: Vec::new() })
    }

    /// Adds a question.
    ///
    /// # Errors
    /// When a full group cannot be written.
    pub fn write(&mut self, line: &QuestionLine) -> std::io::Result<()> {
        self.rows.push(cells(line, &self.more));
        if self.rows.len() >= GROUP { self.write_group().map_err(std::io::Error::other) } else { Ok(()) }
    }

    /// Writes what is left and the foot of the file.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.write_group().and_then(|()| self.out.close().map(drop)).map_err(std::io::Error::other)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.out.next_row_group()?;
        let mut place = 0;
        while let Some(mut column) = group.next_column()? {
            let of_column = rows.iter().map(|row| &row[place]);
            match &rows[0][place] {
                Cell::Text(_) => {
                    let values: Vec<Option<ByteArray>> = of_column
                        .map(|cell| match cell {
                            Cell::Text(text) => text.as_ref().map(|text| ByteArray::from(text.as_str())),
                            Cell::Number(_) | Cell::Count(_) => None,
                        })
                        .collect();
                    let (values, levels) = present(values);
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
                Cell::Number(_) => {
                    let values = of_column.map(|cell| if let Cell::Number(number) = cell { *number } else { None });
                    let (values, levels) = present(values.collect());
                    column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                Cell::Count(_) => {
                    let values = of_column.map(|cell| match cell {
                        Cell::Count(count) => i64::try_from(*count).ok(),
                        Cell::Text(_) | Cell::Number(_) => None,
                    });
                    let (values, levels) = present(values.collect());
                    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
            }
            column.close()?;
            place += 1;
        }
        group.close().map(drop)
    }
}

/// The values that are there, and for each row whether it has one.
fn present<T>(values: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (values.into_iter().flatten().collect(), levels)
}

fn schema(more: &MoreColumns) -> Result<Type, ParquetError> {
    let column = |name: &str, physical: PhysicalType, text: bool| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(text.then_some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let kind = |name: &str| match name {
        "recall_ms" | "answer_ms" | "judge_ms" | "question_ms" | "usd" => PhysicalType::DOUBLE,
        "prompt_tokens" | "completion_tokens" | "attempts" => PhysicalType::INT64,
        _ => PhysicalType::BYTE_ARRAY,
    };
    let fixed = COLUMNS.iter().map(|name| column(name, kind(name), kind(name) == PhysicalType::BYTE_ARRAY));
    let facets = more.facet_columns().map(|name| column(&name, PhysicalType::BYTE_ARRAY, true));
    let scores = more.metric_columns().map(|name| column(&name, PhysicalType::DOUBLE, false));
    Type::group_type_builder("question")
        .with_fields(fixed.chain(facets).chain(scores).collect::<Result<_, _>>()?)
        .build()
}
