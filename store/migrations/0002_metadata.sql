-- What clients say of their runs. created_at is the run's, so that a list by a value has
-- its order from the index.
CREATE TABLE metadata (
  run        INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  key        TEXT    NOT NULL,
  value      TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX metadata_by_value ON metadata (key, value, created_at, run);
