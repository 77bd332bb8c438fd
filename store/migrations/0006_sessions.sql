-- Conversations with agents: each of a session's turns is a run. A session that isn't closed
-- stays with its version of the unit. The private part is the orchestrator's.
CREATE TABLE sessions (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  unit       TEXT    NOT NULL,
  version    TEXT    NOT NULL,
  turns      INTEGER NOT NULL,
  closed     INTEGER NOT NULL CHECK (closed IN (0, 1)),
  reason     TEXT    NOT NULL, -- why it is closed
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL,
  private    BLOB
) STRICT;

CREATE INDEX sessions_open    ON sessions (seq) WHERE closed = 0;
CREATE INDEX sessions_closed  ON sessions (used_at) WHERE closed = 1;
CREATE INDEX sessions_by_unit ON sessions (unit, seq);

ALTER TABLE runs ADD COLUMN session TEXT NOT NULL DEFAULT ''; -- '' for none; no reference: a session may be deleted first
ALTER TABLE runs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;

CREATE INDEX runs_by_session ON runs (session, created_at) WHERE session <> '';
