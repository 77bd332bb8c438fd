-- The steps of flows: the ends of nodes, of their tries and items, and what waits. The
-- documents are of package flow. seq grows with each change of a row, so that whoever has
-- read up to one number finds all that came later.
CREATE TABLE steps (
  run     INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  seq     INTEGER NOT NULL,
  address TEXT    NOT NULL,
  try     INTEGER NOT NULL,
  state   TEXT    NOT NULL,
  call    TEXT    NOT NULL, -- the id of the run that it called; no reference: that may be deleted first
  cached  INTEGER NOT NULL CHECK (cached IN (0, 1)),
  action  TEXT    NOT NULL,
  delta   BLOB,
  value   BLOB,
  error   BLOB,
  until   INTEGER NOT NULL,
  began   INTEGER NOT NULL,
  ended   INTEGER NOT NULL,
  PRIMARY KEY (run, address, try)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX steps_by_seq ON steps (run, seq);

-- What runs ask people. A question is open until it is answered or closed, and its run goes
-- on. The answer is stored before anything is done about it.
CREATE TABLE questions (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  run         INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  address     TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  show        BLOB,
  form        BLOB,
  answers     BLOB    NOT NULL,
  until       INTEGER NOT NULL,
  asked_at    INTEGER NOT NULL,
  answered_at INTEGER NOT NULL,
  answer      BLOB,
  closed_at   INTEGER NOT NULL,
  UNIQUE (run, address)
) STRICT;

CREATE INDEX questions_open ON questions (seq) WHERE answered_at = 0 AND closed_at = 0;
