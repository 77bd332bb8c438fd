-- Version 13: webhooks.

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
