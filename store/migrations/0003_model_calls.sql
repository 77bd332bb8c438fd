-- What runs asked of models. A row is written before the request is forwarded, with the
-- worst that it can cost, and again when it is known what was spent: settled is 1 then.
-- Tokens and costs (billionths of the currency) are whole numbers.
CREATE TABLE model_calls (
  run       INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  n         INTEGER NOT NULL, -- 1, 2, 3, ... within the run
  at        INTEGER NOT NULL,
  tokens    INTEGER NOT NULL,
  cost      INTEGER NOT NULL,
  settled   INTEGER NOT NULL CHECK (settled IN (0, 1)),
  estimated INTEGER NOT NULL CHECK (estimated IN (0, 1)),
  data      BLOB, -- the call as its clients see it
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;
