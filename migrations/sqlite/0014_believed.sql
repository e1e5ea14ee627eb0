-- Sums that have become fractions. Providers' counts were believed whatever they said, and a sum beyond 64 bits is no integer in this
-- database: nothing could read it any more. The cost of such a call is unknown: it counts as nothing, with the reply kept.

UPDATE calls SET
    prompt_tokens     = CASE WHEN typeof(prompt_tokens) = 'integer' AND prompt_tokens BETWEEN 0 AND 1000000000 THEN prompt_tokens ELSE 0 END,
    completion_tokens = CASE WHEN typeof(completion_tokens) = 'integer' AND completion_tokens BETWEEN 0 AND 1000000000 THEN completion_tokens ELSE 0 END,
    cost              = CASE WHEN typeof(cost) = 'integer' AND cost BETWEEN 0 AND 10000000000000000 THEN cost ELSE 0 END
WHERE typeof(prompt_tokens) <> 'integer' OR typeof(completion_tokens) <> 'integer' OR typeof(cost) <> 'integer'
    OR prompt_tokens NOT BETWEEN 0 AND 1000000000 OR completion_tokens NOT BETWEEN 0 AND 1000000000
    OR cost NOT BETWEEN 0 AND 10000000000000000;

UPDATE run_counters SET
    spent     = (SELECT COALESCE(sum(cost), 0) FROM calls WHERE calls.run_no = run_counters.run_no),
    uncertain = CASE WHEN typeof(uncertain) = 'integer' AND uncertain < 1000000000000000000 THEN uncertain ELSE 0 END,
    reserved  = CASE WHEN typeof(reserved) = 'integer' AND reserved < 1000000000000000000 THEN reserved ELSE 0 END,
    overdraft = CASE WHEN typeof(overdraft) = 'integer' AND overdraft < 1000000000000000000 THEN overdraft ELSE 0 END
WHERE 'real' IN (typeof(spent), typeof(uncertain), typeof(reserved), typeof(overdraft))
    OR max(spent, uncertain, reserved, overdraft) >= 1000000000000000000;

UPDATE budgets SET
    spent     = CASE kind
                WHEN 1 THEN (SELECT COALESCE(sum(cost), 0) FROM calls WHERE run_no = scope AND phase = part)
                ELSE (SELECT COALESCE(sum(cost), 0) FROM calls WHERE at_us / 86400000000 = scope) END,
    uncertain = CASE WHEN typeof(uncertain) = 'integer' AND uncertain < 1000000000000000000 THEN uncertain ELSE 0 END,
    reserved  = CASE WHEN typeof(reserved) = 'integer' AND reserved < 1000000000000000000 THEN reserved ELSE 0 END
WHERE 'real' IN (typeof(spent), typeof(uncertain), typeof(reserved)) OR max(spent, uncertain, reserved) >= 1000000000000000000;

UPDATE bench_schema SET version = 14;
