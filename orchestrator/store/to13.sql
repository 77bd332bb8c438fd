-- Version 13.

-- What a process that died had asked of models, and hadn't settled, is found at the next start.
CREATE INDEX model_calls_unsettled ON model_calls (run) WHERE settled = 0;

-- What runs took of processors is used, too.
ALTER TABLE usage ADD COLUMN cpu INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER runs_used;

CREATE TRIGGER runs_used AFTER UPDATE OF finished ON runs WHEN OLD.finished = 0 AND NEW.finished = 1 BEGIN
  INSERT INTO usage VALUES (NEW.finished_at / 86400000000000, NEW.team, NEW.made_by, NEW.unit, NEW.outcome, '', 1,
    iif(NEW.started_at > NEW.created_at, NEW.started_at - NEW.created_at, 0),
    iif(NEW.started_at > 0, max(0, NEW.finished_at - NEW.started_at), 0), 0, 0, 0,
    CASE WHEN json_valid(CAST(NEW.record AS TEXT)) THEN CAST(1e9 * (
      coalesce(CAST(NEW.record AS TEXT) ->> '$.usage.cpu_seconds', 0) +
      (SELECT coalesce(sum(value ->> '$.usage.cpu_seconds'), 0) FROM json_each(CAST(NEW.record AS TEXT), '$.attempts'))
    ) AS INTEGER) ELSE 0 END)
  ON CONFLICT DO UPDATE SET runs = runs + 1, waited = waited + excluded.waited, worked = worked + excluded.worked,
    cpu = cpu + excluded.cpu;
END;

-- The usage of models has their names: version 12 looked for them at another place of a call, and called all "unknown".
DROP TRIGGER models_used;
DROP TRIGGER models_used_later;

INSERT INTO usage SELECT at / 86400000000000, team, made_by, unit, '', CAST(data AS TEXT) ->> '$.call.model', 0, 0, 0,
  count(*), sum(model_calls.tokens), sum(model_calls.cost), 0
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
    0, 0, 0, 1, NEW.tokens, NEW.cost, 0 FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;

CREATE TRIGGER models_used_later AFTER UPDATE OF settled ON model_calls
WHEN OLD.settled = 0 AND NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> '$.call.model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost, 0 FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;

-- Webhooks: see schema.sql.
CREATE TABLE webhooks (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: a page begins after one
  id          TEXT    NOT NULL UNIQUE,
  team        TEXT    NOT NULL,
  made_by     TEXT    NOT NULL, -- as of runs
  only_by     TEXT    NOT NULL, -- it tells of what was made with this token alone; '' of all that the team has
  run         INTEGER REFERENCES runs (seq) ON DELETE CASCADE, -- it tells of this tree alone; NULL of all
  url         TEXT    NOT NULL,
  host        TEXT    NOT NULL, -- of the url
  events      TEXT    NOT NULL, -- the types that it tells of: a JSON list
  created_at  INTEGER NOT NULL,
  delivered   INTEGER NOT NULL DEFAULT 0,
  lost        INTEGER NOT NULL DEFAULT 0,
  failures    INTEGER NOT NULL DEFAULT 0, -- tries since the last delivery
  failing_at  INTEGER NOT NULL DEFAULT 0, -- the first of these; 0 for none
  tried_at    INTEGER NOT NULL DEFAULT 0, -- the last try
  status      INTEGER NOT NULL DEFAULT 0, -- its answer's; 0 for none
  outcome     TEXT    NOT NULL DEFAULT '', -- what became of it
  given_up_at INTEGER NOT NULL DEFAULT 0, -- 0: it goes on
  reason      TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX webhooks_by_team ON webhooks (team, seq);
CREATE INDEX webhooks_by_run  ON webhooks (run) WHERE run IS NOT NULL;

ALTER TABLE pushes ADD COLUMN webhook INTEGER REFERENCES webhooks (seq) ON DELETE CASCADE;
CREATE INDEX pushes_by_webhook ON pushes (webhook, waiting) WHERE webhook IS NOT NULL;
