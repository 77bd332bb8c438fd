-- Version 12: lists and counts by the team that owns; to whom a schedule belongs; who may answer a question; the audit.

DROP TRIGGER runs_came;
DROP TRIGGER runs_moved;
DROP TRIGGER runs_went;
DROP TABLE run_counts;

CREATE TABLE run_counts (
  team  TEXT    NOT NULL,
  unit  TEXT    NOT NULL,
  state TEXT    NOT NULL,
  runs  INTEGER NOT NULL,
  PRIMARY KEY (team, unit, state)
) STRICT, WITHOUT ROWID;

INSERT INTO run_counts SELECT team, unit, state, count(*) FROM runs WHERE parent = '' GROUP BY team, unit, state;

CREATE TRIGGER runs_came AFTER INSERT ON runs WHEN NEW.parent = '' BEGIN
  INSERT INTO run_counts VALUES (NEW.team, NEW.unit, NEW.state, 1) ON CONFLICT (team, unit, state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_moved AFTER UPDATE OF state ON runs WHEN NEW.parent = '' AND OLD.state <> NEW.state BEGIN
  UPDATE run_counts SET runs = runs - 1 WHERE team = OLD.team AND unit = OLD.unit AND state = OLD.state;
  INSERT INTO run_counts VALUES (NEW.team, NEW.unit, NEW.state, 1) ON CONFLICT (team, unit, state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_went AFTER DELETE ON runs WHEN OLD.parent = '' BEGIN
  UPDATE run_counts SET runs = runs - 1 WHERE team = OLD.team AND unit = OLD.unit AND state = OLD.state;
END;

CREATE INDEX runs_by_team               ON runs (team, created_at) WHERE team <> 'default';
CREATE INDEX runs_roots_by_team         ON runs (team, created_at) WHERE team <> 'default' AND parent = '';
CREATE INDEX runs_changed_by_team_state ON runs (team, state, changed_at) WHERE team <> 'default' AND parent = '';

ALTER TABLE schedules ADD COLUMN team TEXT NOT NULL DEFAULT 'default';
ALTER TABLE schedules ADD COLUMN made_by TEXT NOT NULL DEFAULT '';
UPDATE schedules SET made_by = coalesce(CAST(spec AS TEXT) ->> 'by', '') WHERE json_valid(CAST(spec AS TEXT));

ALTER TABLE questions ADD COLUMN approvers TEXT NOT NULL DEFAULT '';

CREATE TABLE audit (
  seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, also when all before were removed for their age
  at       INTEGER NOT NULL,
  team     TEXT    NOT NULL, -- to which the object belongs, or whoever was refused
  identity TEXT    NOT NULL,
  address  TEXT    NOT NULL,
  verb     TEXT    NOT NULL,
  noun     TEXT    NOT NULL,
  object   TEXT    NOT NULL, -- its id or its name; '' of several
  detail   TEXT    NOT NULL,
  result   TEXT    NOT NULL, -- done, or the status with which it was refused
  count    INTEGER NOT NULL, -- of refusals that are alike, within a minute
  trace    TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_identity ON audit (identity, seq);
CREATE INDEX audit_by_object   ON audit (object, seq) WHERE object <> '';
CREATE INDEX audit_by_team     ON audit (team, seq) WHERE team <> 'default';
CREATE INDEX audit_by_time     ON audit (at);

CREATE TABLE team_totals (
  team       TEXT    PRIMARY KEY,
  disk_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_weighed AFTER INSERT ON runs WHEN NEW.team <> 'default' AND NEW.disk_bytes <> 0 BEGIN
  INSERT INTO team_totals VALUES (NEW.team, NEW.disk_bytes) ON CONFLICT (team) DO UPDATE SET disk_bytes = disk_bytes + NEW.disk_bytes;
END;

CREATE TRIGGER runs_weighed_again AFTER UPDATE OF disk_bytes ON runs
WHEN NEW.team <> 'default' AND OLD.disk_bytes <> NEW.disk_bytes BEGIN
  INSERT INTO team_totals VALUES (NEW.team, NEW.disk_bytes - OLD.disk_bytes) ON CONFLICT (team) DO UPDATE SET disk_bytes = disk_bytes + NEW.disk_bytes - OLD.disk_bytes;
END;

CREATE TRIGGER runs_weighed_off AFTER DELETE ON runs WHEN OLD.team <> 'default' AND OLD.disk_bytes <> 0 BEGIN
  UPDATE team_totals SET disk_bytes = disk_bytes - OLD.disk_bytes WHERE team = OLD.team;
END;

CREATE TABLE usage (
  day     INTEGER NOT NULL, -- since 1970, in UTC: that of the end of a run, or of a call of a model
  team    TEXT    NOT NULL,
  made_by TEXT    NOT NULL,
  unit    TEXT    NOT NULL,
  outcome TEXT    NOT NULL, -- of runs; '' of calls of models
  model   TEXT    NOT NULL, -- of calls; '' of runs
  runs    INTEGER NOT NULL,
  waited  INTEGER NOT NULL, -- nanoseconds until programs started
  worked  INTEGER NOT NULL, -- nanoseconds from there to the end
  calls   INTEGER NOT NULL,
  tokens  INTEGER NOT NULL,
  cost    INTEGER NOT NULL,
  PRIMARY KEY (day, team, made_by, unit, outcome, model)
) STRICT, WITHOUT ROWID;

INSERT INTO usage SELECT finished_at / 86400000000000, team, made_by, unit, outcome, '', count(*),
  sum(iif(started_at > created_at, started_at - created_at, 0)), sum(iif(started_at > 0, max(0, finished_at - started_at), 0)), 0, 0, 0
FROM runs WHERE finished = 1 GROUP BY 1, 2, 3, 4, 5;

INSERT INTO usage SELECT at / 86400000000000, team, made_by, unit, '', coalesce(CAST(data AS TEXT) ->> 'model', 'unknown'), 0, 0, 0,
  count(*), sum(model_calls.tokens), sum(model_calls.cost)
FROM model_calls JOIN runs ON runs.seq = run WHERE settled = 1 AND (model_calls.tokens > 0 OR model_calls.cost > 0) GROUP BY 1, 2, 3, 4, 6;

CREATE TRIGGER runs_used AFTER UPDATE OF finished ON runs WHEN OLD.finished = 0 AND NEW.finished = 1 BEGIN
  INSERT INTO usage VALUES (NEW.finished_at / 86400000000000, NEW.team, NEW.made_by, NEW.unit, NEW.outcome, '', 1,
    iif(NEW.started_at > NEW.created_at, NEW.started_at - NEW.created_at, 0),
    iif(NEW.started_at > 0, max(0, NEW.finished_at - NEW.started_at), 0), 0, 0, 0)
  ON CONFLICT DO UPDATE SET runs = runs + 1, waited = waited + excluded.waited, worked = worked + excluded.worked;
END;

CREATE TRIGGER models_used AFTER INSERT ON model_calls WHEN NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> 'model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;

CREATE TRIGGER models_used_later AFTER UPDATE OF settled ON model_calls
WHEN OLD.settled = 0 AND NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> 'model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;
