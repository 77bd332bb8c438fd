-- Schedules start runs of a unit at given times. Up to until_planned every time was looked at: an
-- occurrence is stored with that, and with its run, in one transaction.
CREATE TABLE schedules (
  seq           INTEGER PRIMARY KEY,
  name          TEXT    NOT NULL UNIQUE,
  unit          TEXT    NOT NULL,
  spec          BLOB    NOT NULL, -- JSON, without the input
  input         BLOB,
  files         TEXT    NOT NULL, -- the directory of its files; '' for none
  paused        INTEGER NOT NULL CHECK (paused IN (0, 1)),
  until_planned INTEGER NOT NULL,
  fired         INTEGER NOT NULL, -- how many occurrences it has had
  created_at    INTEGER NOT NULL,
  changed_at    INTEGER NOT NULL,
  private       BLOB
) STRICT;

CREATE TABLE occurrences (
  seq      INTEGER PRIMARY KEY,
  schedule INTEGER NOT NULL REFERENCES schedules (seq) ON DELETE CASCADE,
  planned  INTEGER NOT NULL,
  fired    INTEGER NOT NULL,
  late_ms  INTEGER NOT NULL,
  outcome  TEXT    NOT NULL,
  run      TEXT    NOT NULL, -- '' for none; no reference: a run may be pruned first
  reason   TEXT    NOT NULL,
  manual   INTEGER NOT NULL CHECK (manual IN (0, 1)),
  UNIQUE (schedule, planned)
) STRICT;

CREATE INDEX occurrences_by_schedule ON occurrences (schedule, seq);
CREATE INDEX occurrences_waiting     ON occurrences (schedule, seq) WHERE outcome = 'waiting';

ALTER TABLE runs ADD COLUMN schedule TEXT NOT NULL DEFAULT ''; -- '' for none; no reference: a schedule may be deleted first

CREATE INDEX runs_by_schedule ON runs (schedule, created_at) WHERE schedule <> '';
