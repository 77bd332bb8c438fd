-- What kind of question it is; '' of a node of a flow.
ALTER TABLE questions ADD COLUMN kind TEXT NOT NULL DEFAULT '';

CREATE INDEX questions_open_of ON questions (run) WHERE answered_at = 0 AND closed_at = 0;

-- The units that were switched off.
CREATE TABLE disabled_units (
  unit TEXT    PRIMARY KEY,
  at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
