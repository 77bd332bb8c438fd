-- To which conversation or group a run's client counts it; '' for none.
ALTER TABLE runs ADD COLUMN context TEXT NOT NULL DEFAULT '';

-- When a run that nobody called last entered a state, as it was stored: of two changes the later
-- one has the greater number, whatever the clock did. 0 of a run that another one called.
ALTER TABLE runs ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;

UPDATE runs SET changed_at = max(created_at, coalesce((SELECT max(at) FROM events WHERE run = runs.seq AND type = 'state'), 0))
  WHERE parent = '';

CREATE INDEX runs_by_context            ON runs (context, created_at) WHERE context <> '';
CREATE INDEX runs_changed_by_context    ON runs (context, changed_at) WHERE context <> '' AND parent = '';
CREATE INDEX runs_changed_by_state      ON runs (state, changed_at) WHERE parent = '';
CREATE INDEX runs_changed_by_unit_state ON runs (unit, state, changed_at) WHERE parent = '';

-- The greatest of these numbers.
ALTER TABLE totals ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;

UPDATE totals SET changed_at = (SELECT coalesce(max(changed_at), 0) FROM runs);

-- In which state such a run was from when on: a list shows the runs as they were when its first
-- page was read.
CREATE TABLE changes (
  run   INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  at    INTEGER NOT NULL,
  state TEXT    NOT NULL,
  PRIMARY KEY (run, at)
) STRICT, WITHOUT ROWID;

INSERT INTO changes SELECT seq, changed_at, state FROM runs WHERE parent = '' AND finished = 0;

-- What was said to runs, and what they gave before their end; and where their attempts ended.
CREATE INDEX events_told ON events (run, type, seq) WHERE type IN ('message', 'artifact', 'attempt');

-- How many runs that nobody called there are, kept by the triggers, so that nobody has to count.
CREATE TABLE run_counts (
  unit  TEXT    NOT NULL,
  state TEXT    NOT NULL,
  runs  INTEGER NOT NULL,
  PRIMARY KEY (unit, state)
) STRICT, WITHOUT ROWID;

INSERT INTO run_counts SELECT unit, state, count(*) FROM runs WHERE parent = '' GROUP BY unit, state;

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
