//! Sums that stay whole numbers of 64 bits, whatever stands in the rows: beyond that, SQLite makes a fraction of a sum and nothing
//! can read it any more, and Postgres refuses the statement for good.

/// Most that a sum of money or tokens says, and least below zero: four million dollars. The checks of the schema allow a little more.
pub(super) const MOST: i64 = 4_000_000_000_000_000_000;

/// Cuts off what no sum may hold.
pub(super) fn bounded(number: i64) -> i64 {
    number.clamp(-MOST, MOST)
}

/// `a + b`, where each is at most [`MOST`].
pub(super) fn plus(a: &str, b: &str) -> String {
    format!("CASE WHEN {a} + {b} > {MOST} THEN {MOST} WHEN {a} + {b} < -{MOST} THEN -{MOST} ELSE {a} + {b} END")
}

/// `sum(of)`, 0 of no rows; negative numbers are none of these columns' rows.
pub(super) fn sum(of: &str) -> String {
    const PART: i64 = 1_000_000;
    let last = MOST / PART - 1_000_000;
    format!(
        "CASE WHEN sum({of} / {PART}) > {last} THEN {MOST} \
         ELSE CAST(COALESCE(sum({of} / {PART}) * {PART} + sum({of} % {PART}), 0) AS BIGINT) END"
    )
}
