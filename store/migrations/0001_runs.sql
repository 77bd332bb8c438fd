-- Times are nanoseconds since 1970 (UTC); 0 is no time.

CREATE TABLE runs (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  unit        TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  parent      TEXT    NOT NULL, -- '' for a root; no reference: a parent may be deleted first
  root        TEXT    NOT NULL,
  state       TEXT    NOT NULL,
  finished    INTEGER NOT NULL CHECK (finished IN (0, 1)),
  created_at  INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  disk_bytes  INTEGER NOT NULL,
  record      BLOB,
  private     BLOB
) STRICT;

-- Every index ends in the order of the lists: created_at, then (as in any index) seq.
CREATE INDEX runs_by_time       ON runs (created_at);
CREATE INDEX runs_by_unit       ON runs (unit, created_at);
CREATE INDEX runs_by_state      ON runs (state, created_at);
CREATE INDEX runs_by_unit_state ON runs (unit, state, created_at);
CREATE INDEX runs_by_root       ON runs (root, created_at);
CREATE INDEX runs_by_parent     ON runs (parent, created_at) WHERE parent <> '';
CREATE INDEX runs_unfinished    ON runs (created_at) WHERE finished = 0;
CREATE INDEX runs_finished      ON runs (finished_at) WHERE finished = 1;

-- Large and seldom wanted: beside the rows, so that they don't slow a list or a save.
CREATE TABLE inputs (
  run  INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE outputs (
  run  INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE events (
  run  INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  seq  INTEGER NOT NULL, -- 1, 2, 3, ... within the run
  at   INTEGER NOT NULL,
  type TEXT    NOT NULL,
  data BLOB,
  PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
  value       TEXT    NOT NULL PRIMARY KEY,
  fingerprint TEXT    NOT NULL,
  run         INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_run ON keys (run);

-- One row, kept by the triggers, so that nobody has to count.
CREATE TABLE totals (
  runs       INTEGER NOT NULL,
  unfinished INTEGER NOT NULL,
  disk_bytes INTEGER NOT NULL
) STRICT;

INSERT INTO totals VALUES (0, 0, 0);

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
