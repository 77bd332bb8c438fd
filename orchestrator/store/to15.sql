-- Version 15.

-- The machines that take runs from the server. Who may be one stands in the file of the tokens.
CREATE TABLE workers (
  name    TEXT    PRIMARY KEY,
  drained INTEGER NOT NULL CHECK (drained IN (0, 1)), -- 1: it takes nothing new
  about   BLOB, -- what it said of itself: JSON; NULL: nothing yet
  seen_at INTEGER NOT NULL -- when it was connected last
) STRICT, WITHOUT ROWID;
