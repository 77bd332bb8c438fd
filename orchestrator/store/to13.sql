-- Version 13.

-- What a process that died had asked of models, and hadn't settled, is found at the next start.
CREATE INDEX model_calls_unsettled ON model_calls (run) WHERE settled = 0;

-- The usage of models has their names: version 12 looked for them at another place of a call, and called all "unknown".
DROP TRIGGER models_used;
DROP TRIGGER models_used_later;

INSERT INTO usage SELECT at / 86400000000000, team, made_by, unit, '', CAST(data AS TEXT) ->> '$.call.model', 0, 0, 0,
  count(*), sum(model_calls.tokens), sum(model_calls.cost)
FROM model_calls JOIN runs ON runs.seq = run
WHERE settled = 1 AND (model_calls.tokens > 0 OR model_calls.cost > 0) AND CAST(data AS TEXT) ->> '$.call.model' IS NOT NULL
GROUP BY 1, 2, 3, 4, 6;

UPDATE usage SET calls = usage.calls - known.calls, tokens = usage.tokens - known.tokens, cost = usage.cost - known.cost
FROM (
  SELECT day, team, made_by, unit, sum(calls) AS calls, sum(tokens) AS tokens, sum(cost) AS cost
  FROM usage WHERE model NOT IN ('', 'unknown') GROUP BY 1, 2, 3, 4
) AS known
WHERE model = 'unknown' AND usage.day = known.day AND usage.team = known.team AND usage.made_by = known.made_by
  AND usage.unit = known.unit;

DELETE FROM usage WHERE model = 'unknown' AND calls = 0;

CREATE TRIGGER models_used AFTER INSERT ON model_calls WHEN NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> '$.call.model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;

CREATE TRIGGER models_used_later AFTER UPDATE OF settled ON model_calls
WHEN OLD.settled = 0 AND NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> '$.call.model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;
