-- All counters of a run stay whole, as its sums do since 0018: one that is no integer makes the run unreadable. What somebody has written
-- before is counted again. A generated column carries the check, as there; `unmeasured` came later than that one.
-- Processes of the release before write nothing that is refused. In ../postgres the types of the columns do the same.

UPDATE run_counters SET
    banks_planned    = (SELECT count(*) FROM banks WHERE banks.run_no = run_counters.run_no),
    banks_ready      = (SELECT count(*) FROM banks WHERE banks.run_no = run_counters.run_no AND state = 1 AND segment = last_segment),
    entries_planned  = CASE WHEN typeof(entries_planned) = 'integer' AND entries_planned BETWEEN 0 AND 4500000000000000000 THEN entries_planned
                       ELSE (SELECT COALESCE(sum(position), 0) FROM banks WHERE banks.run_no = run_counters.run_no) END,
    entries_retained = (SELECT COALESCE(sum(position), 0) FROM banks WHERE banks.run_no = run_counters.run_no),
    scored           = (SELECT count(*) FROM facts WHERE facts.run_no = run_counters.run_no AND outcome = 'scored'),
    abstained        = (SELECT count(*) FROM facts WHERE facts.run_no = run_counters.run_no AND outcome = 'abstained'),
    infra_error      = (SELECT count(*) FROM facts WHERE facts.run_no = run_counters.run_no AND outcome = 'infra_error'),
    answered         = CASE WHEN typeof(answered) = 'integer' AND answered BETWEEN 0 AND 4500000000000000000 THEN answered
                       ELSE (SELECT count(*) FROM facts WHERE facts.run_no = run_counters.run_no AND outcome IN ('scored', 'abstained')) END,
    headline_sum     = CASE WHEN typeof(headline_sum) = 'real' AND abs(headline_sum) <= 4.5e18 THEN headline_sum ELSE 0 END,
    unmeasured       = CASE WHEN typeof(unmeasured) = 'integer' AND unmeasured BETWEEN 0 AND 4500000000000000000 THEN unmeasured ELSE 0 END,
    last_commit_us   = CASE WHEN typeof(last_commit_us) = 'integer' AND last_commit_us BETWEEN 0 AND 4500000000000000000 THEN last_commit_us ELSE 0 END
WHERE NOT (typeof(banks_planned) = 'integer' AND banks_planned BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(banks_ready) = 'integer' AND banks_ready BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(entries_planned) = 'integer' AND entries_planned BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(entries_retained) = 'integer' AND entries_retained BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(scored) = 'integer' AND scored BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(abstained) = 'integer' AND abstained BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(infra_error) = 'integer' AND infra_error BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(answered) = 'integer' AND answered BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(headline_sum) = 'real' AND abs(headline_sum) <= 4.5e18
    AND typeof(unmeasured) = 'integer' AND unmeasured BETWEEN -4500000000000000000 AND 4500000000000000000
    AND typeof(last_commit_us) = 'integer' AND last_commit_us BETWEEN -4500000000000000000 AND 4500000000000000000);

ALTER TABLE run_counters ADD COLUMN whole_counts INTEGER GENERATED ALWAYS AS (1) VIRTUAL CONSTRAINT whole_counts
    CHECK (typeof(banks_planned) = 'integer' AND banks_planned BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(banks_ready) = 'integer' AND banks_ready BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(entries_planned) = 'integer' AND entries_planned BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(entries_retained) = 'integer' AND entries_retained BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(scored) = 'integer' AND scored BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(abstained) = 'integer' AND abstained BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(infra_error) = 'integer' AND infra_error BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(answered) = 'integer' AND answered BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(headline_sum) = 'real' AND abs(headline_sum) <= 4.5e18
        AND typeof(unmeasured) = 'integer' AND unmeasured BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(last_commit_us) = 'integer' AND last_commit_us BETWEEN -4500000000000000000 AND 4500000000000000000);

UPDATE bench_schema SET version = 23;
