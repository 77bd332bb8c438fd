-- Version 11: what lists and trees show of a run stands in columns, before what is large; who answered a question; the
-- feed of what changes.

CREATE TABLE new_runs (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  unit        TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  parent      TEXT    NOT NULL,
  root        TEXT    NOT NULL,
  step        TEXT    NOT NULL DEFAULT '',
  state       TEXT    NOT NULL,
  outcome     TEXT    NOT NULL DEFAULT '',
  error_kind  TEXT    NOT NULL DEFAULT '',
  finished    INTEGER NOT NULL CHECK (finished IN (0, 1)),
  created_at  INTEGER NOT NULL,
  started_at  INTEGER NOT NULL DEFAULT 0,
  finished_at INTEGER NOT NULL,
  changed_at  INTEGER NOT NULL DEFAULT 0,
  disk_bytes  INTEGER NOT NULL,
  tokens      INTEGER NOT NULL DEFAULT 0,
  cost        INTEGER NOT NULL DEFAULT 0,
  session     TEXT    NOT NULL DEFAULT '',
  turn        INTEGER NOT NULL DEFAULT 0,
  schedule    TEXT    NOT NULL DEFAULT '',
  context     TEXT    NOT NULL DEFAULT '',
  team        TEXT    NOT NULL DEFAULT 'default', -- that owns it
  made_by     TEXT    NOT NULL DEFAULT '',
  record      BLOB,
  private     BLOB
) STRICT;

INSERT INTO new_runs (seq, id, unit, kind, parent, root, state, finished, created_at, finished_at, changed_at, disk_bytes,
  session, turn, schedule, context, made_by, record, private,
  step, outcome, error_kind, started_at, tokens, cost)
SELECT seq, id, unit, kind, parent, root, state, finished, created_at, finished_at, changed_at, disk_bytes,
  session, turn, schedule, context, made_by, record, private,
  coalesce(known ->> 'step', ''), coalesce(known ->> 'outcome', ''), coalesce(known ->> '$.error.kind', ''),
  coalesce(CAST(unixepoch(known ->> 'started_at', 'subsec') * 1000 AS INTEGER) * 1000000, 0),
  CAST(coalesce(known ->> '$.models.charged', 0) AS INTEGER),
  CAST(round(coalesce(known ->> '$.models.cost', 0) * 1e9) AS INTEGER)
FROM (SELECT *, iif(json_valid(CAST(record AS TEXT)), CAST(record AS TEXT), '{}') AS known FROM runs);

DROP TABLE runs;
ALTER TABLE new_runs RENAME TO runs;

CREATE INDEX runs_by_time       ON runs (created_at);
CREATE INDEX runs_by_unit       ON runs (unit, created_at);
CREATE INDEX runs_by_state      ON runs (state, created_at);
CREATE INDEX runs_by_unit_state ON runs (unit, state, created_at);
CREATE INDEX runs_by_root       ON runs (root, created_at);
CREATE INDEX runs_roots         ON runs (created_at) WHERE parent = '';
CREATE INDEX runs_by_parent     ON runs (parent, created_at) WHERE parent <> '';
CREATE INDEX runs_unfinished    ON runs (created_at) WHERE finished = 0;
CREATE INDEX runs_finished      ON runs (finished_at) WHERE finished = 1;
CREATE INDEX runs_by_session    ON runs (session, created_at) WHERE session <> '';
CREATE INDEX runs_by_schedule   ON runs (schedule, created_at) WHERE schedule <> '';
CREATE INDEX runs_by_context    ON runs (context, created_at) WHERE context <> '';
CREATE INDEX runs_by_maker      ON runs (made_by, created_at) WHERE made_by <> '';
CREATE INDEX runs_changed_by_context     ON runs (context, changed_at) WHERE context <> '' AND parent = '';
CREATE INDEX runs_changed_by_state       ON runs (state, changed_at) WHERE parent = '';
CREATE INDEX runs_changed_by_unit_state  ON runs (unit, state, changed_at) WHERE parent = '';
CREATE INDEX runs_changed_by_maker_state ON runs (made_by, state, changed_at) WHERE made_by <> '' AND parent = '';

CREATE TRIGGER runs_counted AFTER INSERT ON runs BEGIN
  UPDATE totals SET runs = runs + 1, unfinished = unfinished + (NEW.finished = 0), disk_bytes = disk_bytes + NEW.disk_bytes;
END;

CREATE TRIGGER runs_recounted AFTER UPDATE OF finished, disk_bytes ON runs
WHEN OLD.finished <> NEW.finished OR OLD.disk_bytes <> NEW.disk_bytes BEGIN
  UPDATE totals SET unfinished = unfinished + (NEW.finished = 0) - (OLD.finished = 0), disk_bytes = disk_bytes + NEW.disk_bytes - OLD.disk_bytes;
END;

CREATE TRIGGER runs_discounted AFTER DELETE ON runs BEGIN
  UPDATE totals SET runs = runs - 1, unfinished = unfinished - (OLD.finished = 0), disk_bytes = disk_bytes - OLD.disk_bytes;
END;

CREATE TRIGGER runs_came AFTER INSERT ON runs WHEN NEW.parent = '' BEGIN
  INSERT INTO run_counts VALUES (NEW.unit, NEW.state, 1) ON CONFLICT (unit, state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_moved AFTER UPDATE OF state ON runs WHEN NEW.parent = '' AND OLD.state <> NEW.state BEGIN
  UPDATE run_counts SET runs = runs - 1 WHERE unit = OLD.unit AND state = OLD.state;
  INSERT INTO run_counts VALUES (NEW.unit, NEW.state, 1) ON CONFLICT (unit, state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_went AFTER DELETE ON runs WHEN OLD.parent = '' BEGIN
  UPDATE run_counts SET runs = runs - 1 WHERE unit = OLD.unit AND state = OLD.state;
END;

ALTER TABLE sessions ADD COLUMN team TEXT NOT NULL DEFAULT 'default';

ALTER TABLE questions ADD COLUMN answered_by TEXT NOT NULL DEFAULT '';

CREATE TABLE signins (
  digest     BLOB    NOT NULL PRIMARY KEY,
  token      BLOB    NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX signins_by_end ON signins (expires_at);

CREATE TABLE feed (
  seq     INTEGER PRIMARY KEY, -- the next is one more than the newest, which is never removed
  noun    TEXT NOT NULL, -- run, question, session or unit
  id      TEXT NOT NULL, -- of a unit: its name
  unit    TEXT NOT NULL DEFAULT '',
  parent  TEXT NOT NULL DEFAULT '', -- of a question: its run
  root    TEXT NOT NULL DEFAULT '',
  state   TEXT NOT NULL DEFAULT '', -- of a unit: its version; 'gone' of what was removed
  outcome TEXT NOT NULL DEFAULT '',
  team    TEXT NOT NULL DEFAULT '', -- of a unit: none
  made_by TEXT NOT NULL DEFAULT '',
  UNIQUE (noun, id)
) STRICT;

CREATE TRIGGER runs_fed AFTER INSERT ON runs BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, outcome, team, made_by)
  VALUES ('run', NEW.id, NEW.unit, NEW.parent, NEW.root, NEW.state, NEW.outcome, NEW.team, NEW.made_by);
END;

CREATE TRIGGER runs_fed_again AFTER UPDATE OF state, outcome ON runs
WHEN OLD.state <> NEW.state OR OLD.outcome <> NEW.outcome BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, outcome, team, made_by)
  VALUES ('run', NEW.id, NEW.unit, NEW.parent, NEW.root, NEW.state, NEW.outcome, NEW.team, NEW.made_by);
END;

CREATE TRIGGER runs_fed_last BEFORE DELETE ON runs BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, team, made_by)
  SELECT 'question', id, OLD.unit, OLD.id, OLD.root, 'gone', OLD.team, OLD.made_by FROM questions WHERE run = OLD.seq;
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, outcome, team, made_by)
  VALUES ('run', OLD.id, OLD.unit, OLD.parent, OLD.root, 'gone', OLD.outcome, OLD.team, OLD.made_by);
END;

CREATE TRIGGER questions_fed AFTER INSERT ON questions BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, team, made_by)
  SELECT 'question', NEW.id, unit, id, root, 'open', team, made_by FROM runs WHERE seq = NEW.run;
END;

CREATE TRIGGER questions_fed_again AFTER UPDATE OF answered_at, closed_at ON questions
WHEN OLD.answered_at <> NEW.answered_at OR OLD.closed_at <> NEW.closed_at BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, team, made_by)
  SELECT 'question', NEW.id, unit, id, root, iif(NEW.answered_at <> 0, 'answered', 'closed'), team, made_by
  FROM runs WHERE seq = NEW.run;
END;

CREATE TRIGGER sessions_fed AFTER INSERT ON sessions BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, state, team, made_by)
  VALUES ('session', NEW.id, NEW.unit, iif(NEW.closed, 'closed', 'open'), NEW.team, NEW.made_by);
END;

CREATE TRIGGER sessions_fed_again AFTER UPDATE OF turns, closed ON sessions
WHEN OLD.turns <> NEW.turns OR OLD.closed <> NEW.closed BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, state, team, made_by)
  VALUES ('session', NEW.id, NEW.unit, iif(NEW.closed, 'closed', 'open'), NEW.team, NEW.made_by);
END;

CREATE TRIGGER sessions_fed_last AFTER DELETE ON sessions BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, state, team, made_by)
  VALUES ('session', OLD.id, OLD.unit, 'gone', OLD.team, OLD.made_by);
END;

CREATE TRIGGER units_fed AFTER INSERT ON disabled_units BEGIN
  INSERT INTO feed (noun, id) SELECT 'unit', NEW.unit WHERE NOT EXISTS (SELECT 1 FROM feed WHERE noun = 'unit' AND id = NEW.unit);
  UPDATE feed SET seq = (SELECT max(seq) + 1 FROM feed) WHERE noun = 'unit' AND id = NEW.unit;
END;

-- Not OR REPLACE: in an upsert, as this is, that of a trigger doesn't count.
CREATE TRIGGER units_fed_again AFTER UPDATE OF at ON disabled_units WHEN (OLD.at = 0) <> (NEW.at = 0) BEGIN
  INSERT INTO feed (noun, id) SELECT 'unit', NEW.unit WHERE NOT EXISTS (SELECT 1 FROM feed WHERE noun = 'unit' AND id = NEW.unit);
  UPDATE feed SET seq = (SELECT max(seq) + 1 FROM feed) WHERE noun = 'unit' AND id = NEW.unit;
END;
