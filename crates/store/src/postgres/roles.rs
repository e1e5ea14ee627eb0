//! Four roles at the server, each with what its programs do and no more: by table, and by column where a row holds what others
//! decide (`GRANTS`). `bench-coord migrate --roles PREFIX` names them; every migration from then on gives them again what they
//! are to have, so that new tables are neither closed to them nor open.
//!
//! The roles guard tables and columns, not rows: all runs of a store are one realm.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::{errors, place::Destination, reach, schema, version};
use crate::{StoreError, StoreResult};

/// What a role is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Looks at everything, changes nothing: `status`, `report`, `compare`.
    Read,
    /// Plans runs, holds them, ends them: `submit`, `resume`, `pause`, `cancel`.
    Submit,
    /// Works: checkpoints, results and what they cost.
    Work,
    /// Hands out, looks after, and changes results in hindsight: `serve`, `retry`, `import`, `gc`.
    Coordinate,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 4] = [Self::Read, Self::Submit, Self::Work, Self::Coordinate];

    /// The last word of the role's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Work => "work",
            Self::Coordinate => "coordinate",
        }
    }

    fn grants(self) -> impl Iterator<Item = &'static Grant> {
        GRANTS.iter().filter(move |grant| grant.parts.contains(&self))
    }
}

/// What some parts may do with a table, beside reading it.
struct Grant {
    parts: &'static [Part],
    table: &'static str,
    rights: &'static str,
}

const fn grant(parts: &'static [Part], table: &'static str, rights: &'static str) -> Grant {
    Grant { parts, table, rights }
}

const SUBMIT: &[Part] = &[Part::Submit, Part::Coordinate];
const WORK: &[Part] = &[Part::Work, Part::Coordinate];
const WORK_ALONE: &[Part] = &[Part::Work];
const COORDINATE: &[Part] = &[Part::Coordinate];
const WRITE: &[Part] = &[Part::Submit, Part::Work, Part::Coordinate];

/// Everything that is granted beside reading. Who locks rows needs the right to change one of their columns, whichever it is.
const GRANTS: &[Grant] = &[
    // what is asked, and what may be spent on it
    grant(
        SUBMIT,
        "runs",
        "INSERT (run_id, name, tags, user_name, spec, lineage, control_of, domain, imported, code_version, state, state_version, \
         created_us, active_us, active_since_us, resumed_times, planned, result_version, private_calls, question_limit, \
         retain_limit, group_no, reason), UPDATE (name, tags, spec, question_limit, retain_limit, planned, looks)",
    ),
    // `resume` raises the version of a result: its report is made anew
    grant(
        WRITE,
        "runs",
        "UPDATE (state, reason, state_version, resumed_times, result_version, finished_us, active_us, active_since_us)",
    ),
    grant(SUBMIT, "run_groups", "INSERT (group_id, cap), UPDATE (cap)"),
    grant(WORK, "run_groups", "UPDATE (group_id)"),
    // whoever writes may add events at any time: no verdict rests on one that came after the run's end, and of the graders' check the
    // first one counts
    grant(WRITE, "run_events", "INSERT (run_no, at_us, kind, message)"),
    grant(SUBMIT, "items", "INSERT"),
    grant(COORDINATE, "items", "DELETE"),
    grant(
        SUBMIT,
        "banks",
        "INSERT (run_no, bank_no, bank_id, content, questions, gold, segments, last_segment, generation, state, position, segment, \
         open_recalls, incarnation, namespaces, filled_name, filled_handle, filled_by, later)",
    ),
    // a look opens questions, or leaves them out
    grant(COORDINATE, "banks", "UPDATE (segments, last_segment, later)"),
    grant(
        WORK,
        "banks",
        "UPDATE (state, segment, position, open_recalls, reason, handle, generation, incarnation, namespaces)",
    ),
    grant(WRITE, "tasks", "INSERT (run_no, task_key, state, lease_epoch, ready_at, concluded), UPDATE (not_before)"),
    grant(
        WORK,
        "tasks",
        "UPDATE (lease_epoch, session, ready_at, published_at, open_children, attempts, losses, publish_count, state, concluded, \
         reason)",
    ),
    grant(COORDINATE, "tasks", "DELETE"),
    // what came of it
    grant(WORK, "checkpoints", "INSERT, DELETE"),
    grant(WORK, "texts", "INSERT"),
    // a retry of what came from an archive
    grant(COORDINATE, "texts", "DELETE"),
    grant(WORK, "facts", "INSERT"),
    grant(COORDINATE, "facts", "DELETE"),
    grant(COORDINATE, "summaries", "INSERT"),
    grant(SUBMIT, "run_counters", "INSERT (run_no)"),
    grant(WRITE, "run_counters", "UPDATE (banks_planned, entries_planned, last_commit_us)"),
    grant(
        WORK,
        "run_counters",
        "UPDATE (banks_ready, entries_retained, scored, abstained, infra_error, answered, headline_sum, unmeasured, spent, \
         uncertain, reserved, overdraft)",
    ),
    // what it cost
    grant(WORK_ALONE, "calls", "INSERT"),
    grant(COORDINATE, "calls", "UPDATE (outcome)"),
    grant(WORK_ALONE, "reservations", "INSERT"),
    grant(WORK, "reservations", "UPDATE (state), DELETE"),
    grant(WORK, "budgets", "INSERT, UPDATE (spent, reserved, uncertain)"),
    grant(WORK_ALONE, "paces", "INSERT, UPDATE (requests_us, tokens_us, doc)"),
    grant(WRITE, "paces", "UPDATE (blocked_us)"),
    grant(WORK_ALONE, "outages", "INSERT, UPDATE (held)"),
    grant(WRITE, "outages", "UPDATE (to_us, failed_probes, next_probe_us, prober, prober_us, reason)"),
    // who is there
    grant(
        WRITE,
        "sessions",
        "INSERT (session_id, worker, domain, info, counter, opened_us, renewed_us), UPDATE (counter, renewed_us, ended_us)",
    ),
    grant(WORK_ALONE, "sessions", "UPDATE (evidence, evidence_us)"),
    grant(WORK_ALONE, "session_marks", "INSERT, UPDATE (mark)"),
    grant(WORK, "session_marks", "DELETE"),
    grant(WORK, "incarnations", "UPDATE (incarnation, changed_us, note)"),
    grant(COORDINATE, "leaders", "INSERT, UPDATE (holder, epoch, counter, trouble, renewed_us)"),
    // what traces are made of
    grant(WORK_ALONE, "attempts", "INSERT"),
    grant(WORK, "latencies", "INSERT, UPDATE (questions)"),
    grant(WORK, "unsent_traces", "INSERT, UPDATE (due_us), DELETE"),
    grant(WORK, "trace_parts", "INSERT"),
];

/// Longest prefix of the roles' names; Postgres cuts names of 63 bytes.
const LONGEST: usize = 40;

/// Names the store's roles `PREFIX_read`, `PREFIX_submit`, `PREFIX_work` and `PREFIX_coordinate`, makes those that are missing (without
/// a login), and gives each its rights; those of an earlier prefix lose theirs. Returns the names.
///
/// The grants of a newer schema are left as they are.
///
/// # Errors
/// [`StoreError::Open`] with the statements for a superuser, when roles are missing that the user of the URL may not make, when it does
/// not own the tables, and for other roles in a newer schema; [`StoreError::Schema`] before `migrate`.
pub async fn name(url: &str, prefix: &str) -> StoreResult<Vec<String>> {
    let fits = !prefix.is_empty()
        && prefix.len() <= LONGEST
        && prefix.starts_with(|c: char| c.is_ascii_lowercase())
        && prefix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !prefix.starts_with("pg_");
    if !fits {
        return Err(StoreError::Open(format!(
            "'{prefix}' cannot begin the names of roles: give up to {LONGEST} small letters, digits and _, such as bench"
        ).into()));
    }
    let super::Reached { place, mut conn, .. } = reach(url).await?;
    let failed = |e: sqlx::Error| errors::on_open(&place, &e);
    begin(&mut conn).await.map_err(failed)?;
    let found = version(&mut conn).await.map_err(failed)?;
    schema::must_fit(found)?;
    let before = named(&mut conn).await.map_err(failed)?;
    if found.version > schema::VERSION {
        // dropping the connection ends the transaction
        let there = before.as_deref() == Some(prefix) && missing(&mut conn, prefix).await.map_err(failed)?.is_empty();
        return if there { Ok(names(prefix)) } else { Err(is_newer(&place, found.version, prefix)) };
    }
    if let Some(old) = before.filter(|old| old != prefix) {
        for role in names(&old) {
            revoke(&mut conn, &role).await.map_err(failed)?;
        }
    }
    let note = format!(
        "INSERT INTO bench_roles (one, prefix) VALUES (1, '{prefix}') ON CONFLICT (one) DO UPDATE SET prefix = excluded.prefix"
    );
    run(&mut conn, &note).await.map_err(failed)?;
    make(&place, &mut conn, prefix).await?;
    refresh(&place, &mut conn).await?;
    run(&mut conn, "COMMIT").await.map_err(failed)?;
    Ok(names(prefix))
}

/// Begins a transaction that changes the schema or its grants; several machines may at once. The number is `bench` in ASCII; the lock
/// ends with the transaction, wherever that is. Anybody who may read can hold what it waits for, so it waits for ten minutes at most.
pub(super) async fn begin(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    run(
        conn,
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; \
         SET LOCAL lock_timeout = 600000; SELECT pg_advisory_xact_lock(422574744424)",
    )
    .await
}

/// Gives the roles of this store, if it has named any, what this build's programs need, and takes everything else.
pub(super) async fn refresh(place: &Destination, conn: &mut PgConnection) -> StoreResult<()> {
    let failed = |e: sqlx::Error| errors::on_open(place, &e);
    let Some(prefix) = named(conn).await.map_err(failed)? else { return Ok(()) };
    let missing = missing(conn, &prefix).await.map_err(failed)?;
    if !missing.is_empty() {
        return Err(StoreError::Open(
            format!(
                "the roles of this store are not at the server: {}; run `bench-coord migrate --roles {prefix}`",
                missing.join(", ")
            )
            .into(),
        ));
    }
    for (part, role) in Part::ALL.into_iter().zip(names(&prefix)) {
        revoke(conn, &role).await.map_err(failed)?;
        run(conn, &granting(part, &role)).await.map_err(failed)?;
    }
    let shut = sqlx::raw_sql(AssertSqlSafe(format!(
        "SELECT current_schema() || ' TO ' || string_agg(rolname::text, ', ') FROM pg_roles WHERE rolname IN ({}) \
         AND NOT has_schema_privilege(rolname, current_schema(), 'USAGE')",
        quoted(&names(&prefix), '\'')
    )));
    match shut.fetch_one(conn).await.and_then(|row| row.try_get::<Option<String>, _>(0)).map_err(failed)? {
        None => Ok(()),
        Some(shut) => Err(StoreError::Open(format!(
            "the roles of the store {place} do not reach its tables; as the owner of the schema: GRANT USAGE ON SCHEMA {shut}"
        ).into())),
    }
}

/// This build does not know all that the programs of a newer one need.
fn is_newer(place: &Destination, found: i64, prefix: &str) -> StoreError {
    StoreError::Open(format!(
        "the schema of the store {place} is {found}, this build knows {}: run `bench-coord migrate --roles {prefix}` of the newer build",
        schema::VERSION
    ).into())
}

fn names(prefix: &str) -> Vec<String> {
    Part::ALL.map(|part| format!("{prefix}_{}", part.name())).to_vec()
}

/// Names between quotes; they hold none.
fn quoted(names: &[String], quote: char) -> String {
    names.iter().map(|name| format!("{quote}{name}{quote}")).collect::<Vec<_>>().join(", ")
}

async fn run(conn: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(conn).await.map(drop)
}

/// The prefix that the store has noted; a store of an earlier schema has no table for it.
async fn named(conn: &mut PgConnection) -> Result<Option<String>, sqlx::Error> {
    let row = sqlx::raw_sql("SELECT prefix FROM bench_roles").fetch_optional(conn).await?;
    row.map(|row| row.try_get(0)).transpose()
}

async fn missing(conn: &mut PgConnection, prefix: &str) -> Result<Vec<String>, sqlx::Error> {
    let wanted = names(prefix);
    let there = format!("SELECT rolname::text FROM pg_roles WHERE rolname IN ({})", quoted(&wanted, '\''));
    let rows = sqlx::raw_sql(AssertSqlSafe(there)).fetch_all(conn).await?;
    let there: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(wanted.into_iter().filter(|role| !there.contains(role)).collect())
}

/// Makes the roles that are missing. Roles belong to the server: stores beside this one may be making them at the same time.
async fn make(place: &Destination, conn: &mut PgConnection, prefix: &str) -> StoreResult<()> {
    let failed = |e: sqlx::Error| errors::on_open(place, &e);
    let missing = missing(conn, prefix).await.map_err(failed)?;
    let statements: String = missing.iter().map(|role| format!("CREATE ROLE {role} NOLOGIN; ")).collect();
    for role in &missing {
        let make = format!(
            "DO $$ BEGIN CREATE ROLE \"{role}\" NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        );
        run(conn, &make).await.map_err(|error| match errors::store_error(&error) {
            StoreError::Denied(_) => StoreError::Open(
                format!(
                    "the roles of the store {place} cannot be made by its user: let a superuser run `{}`, then repeat",
                    statements.trim_end()
                )
                .into(),
            ),
            _ => failed(error),
        })?;
    }
    Ok(())
}

async fn revoke(conn: &mut PgConnection, role: &str) -> Result<(), sqlx::Error> {
    // what was granted by column goes with it; a role that is gone has nothing
    let revoke = format!(
        "DO $$ BEGIN EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM \"{role}\"', current_schema()); \
         EXCEPTION WHEN undefined_object THEN NULL; END $$"
    );
    run(conn, &revoke).await
}

/// The statements that give a role its rights.
fn granting(part: Part, role: &str) -> String {
    let mut sql = format!(
        "DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO \"{role}\"', current_schema()); \
         EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO \"{role}\"', current_schema()); END $$; "
    );
    for Grant { table, rights, .. } in part.grants() {
        sql.push_str(&format!("GRANT {rights} ON {table} TO \"{role}\"; "));
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_granted_nothing_but_reading_and_a_coordinator_all_that_a_submitter_is() {
        assert_eq!(Part::Read.grants().count(), 0);
        assert!(Part::Submit.grants().all(|grant| grant.parts.contains(&Part::Coordinate)));
        assert!(granting(Part::Work, "w").ends_with("GRANT INSERT ON trace_parts TO \"w\"; "));
    }

    #[tokio::test]
    async fn prefixes_are_plain_words() {
        for wrong in ["", "Bench", "pg_bench", "b; DROP", "1b", "b\"", &"b".repeat(41)] {
            let refused = name("postgres://u@h/b", wrong).await.expect_err("is refused").to_string();
            assert!(refused.contains("cannot begin the names of roles"), "{refused}");
        }
    }
}
