-- Sums stay whole. Every process of this release keeps to that by itself; from here on the tables refuse what others would write. What
-- they have written before is mended as in 0014: the cost of such a call is unknown, and counts as nothing.
-- A table cannot be made STRICT later, and one that is built anew would be another to processes that are running: so a generated column,
-- which stores nothing and stands in no list of columns, carries the check.

UPDATE calls SET
    prompt_tokens     = CASE WHEN typeof(prompt_tokens) = 'integer' AND prompt_tokens BETWEEN 0 AND 1000000000 THEN prompt_tokens ELSE 0 END,
    completion_tokens = CASE WHEN typeof(completion_tokens) = 'integer' AND completion_tokens BETWEEN 0 AND 1000000000 THEN completion_tokens ELSE 0 END,
    cost              = CASE WHEN typeof(cost) = 'integer' AND cost BETWEEN 0 AND 10000000000000000 THEN cost ELSE 0 END
WHERE typeof(prompt_tokens) <> 'integer' OR typeof(completion_tokens) <> 'integer' OR typeof(cost) <> 'integer'
    OR prompt_tokens NOT BETWEEN 0 AND 1000000000 OR completion_tokens NOT BETWEEN 0 AND 1000000000
    OR cost NOT BETWEEN 0 AND 10000000000000000;

UPDATE reservations SET amount = 0 WHERE NOT (typeof(amount) = 'integer' AND amount BETWEEN -4500000000000000000 AND 4500000000000000000);

UPDATE run_counters SET
    spent     = CASE WHEN typeof(spent) = 'integer' AND spent BETWEEN -4500000000000000000 AND 4500000000000000000 THEN spent
                ELSE (SELECT min(COALESCE(sum(cost / 1000000) * 1000000 + sum(cost % 1000000), 0), 4000000000000000000) FROM calls WHERE calls.run_no = run_counters.run_no) END,
    uncertain = CASE WHEN typeof(uncertain) = 'integer' AND uncertain BETWEEN -4500000000000000000 AND 4500000000000000000 THEN uncertain ELSE 0 END,
    reserved  = CASE WHEN typeof(reserved) = 'integer' AND reserved BETWEEN -4500000000000000000 AND 4500000000000000000 THEN reserved ELSE 0 END,
    overdraft = CASE WHEN typeof(overdraft) = 'integer' AND overdraft BETWEEN -4500000000000000000 AND 4500000000000000000 THEN overdraft ELSE 0 END
WHERE NOT (typeof(spent) = 'integer' AND spent BETWEEN -4500000000000000000 AND 4500000000000000000)
    OR NOT (typeof(uncertain) = 'integer' AND uncertain BETWEEN -4500000000000000000 AND 4500000000000000000)
    OR NOT (typeof(reserved) = 'integer' AND reserved BETWEEN -4500000000000000000 AND 4500000000000000000)
    OR NOT (typeof(overdraft) = 'integer' AND overdraft BETWEEN -4500000000000000000 AND 4500000000000000000);

UPDATE budgets SET
    spent     = CASE WHEN typeof(spent) = 'integer' AND spent BETWEEN -4500000000000000000 AND 4500000000000000000 THEN spent WHEN kind = 1
                THEN (SELECT min(COALESCE(sum(cost / 1000000) * 1000000 + sum(cost % 1000000), 0), 4000000000000000000) FROM calls WHERE run_no = scope AND phase = part)
                ELSE (SELECT min(COALESCE(sum(cost / 1000000) * 1000000 + sum(cost % 1000000), 0), 4000000000000000000) FROM calls WHERE at_us / 86400000000 = scope) END,
    uncertain = CASE WHEN typeof(uncertain) = 'integer' AND uncertain BETWEEN -4500000000000000000 AND 4500000000000000000 THEN uncertain ELSE 0 END,
    reserved  = CASE WHEN typeof(reserved) = 'integer' AND reserved BETWEEN -4500000000000000000 AND 4500000000000000000 THEN reserved ELSE 0 END
WHERE NOT (typeof(spent) = 'integer' AND spent BETWEEN -4500000000000000000 AND 4500000000000000000)
    OR NOT (typeof(uncertain) = 'integer' AND uncertain BETWEEN -4500000000000000000 AND 4500000000000000000)
    OR NOT (typeof(reserved) = 'integer' AND reserved BETWEEN -4500000000000000000 AND 4500000000000000000);

ALTER TABLE calls ADD COLUMN whole INTEGER GENERATED ALWAYS AS (1) VIRTUAL
    CHECK (typeof(prompt_tokens) = 'integer' AND prompt_tokens BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(completion_tokens) = 'integer' AND completion_tokens BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(cost) = 'integer' AND cost BETWEEN -4500000000000000000 AND 4500000000000000000);
ALTER TABLE reservations ADD COLUMN whole INTEGER GENERATED ALWAYS AS (1) VIRTUAL
    CHECK (typeof(amount) = 'integer' AND amount BETWEEN -4500000000000000000 AND 4500000000000000000);
ALTER TABLE run_counters ADD COLUMN whole INTEGER GENERATED ALWAYS AS (1) VIRTUAL
    CHECK (typeof(spent) = 'integer' AND spent BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(uncertain) = 'integer' AND uncertain BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(reserved) = 'integer' AND reserved BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(overdraft) = 'integer' AND overdraft BETWEEN -4500000000000000000 AND 4500000000000000000);
ALTER TABLE budgets ADD COLUMN whole INTEGER GENERATED ALWAYS AS (1) VIRTUAL
    CHECK (typeof(spent) = 'integer' AND spent BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(uncertain) = 'integer' AND uncertain BETWEEN -4500000000000000000 AND 4500000000000000000
        AND typeof(reserved) = 'integer' AND reserved BETWEEN -4500000000000000000 AND 4500000000000000000);

UPDATE bench_schema SET version = 18;
