-- A push tells a receiver what happens in a run, one event after the other. A delivery is stored
-- with its event, in one transaction.
CREATE TABLE pushes (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: a late word on one that was removed is of no other
  run         INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  id          TEXT    NOT NULL,
  url         TEXT    NOT NULL,
  host        TEXT    NOT NULL, -- of the url
  token       TEXT    NOT NULL, -- '' for none
  scheme      TEXT    NOT NULL, -- '' for none
  credentials TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  waiting     INTEGER NOT NULL DEFAULT 0, -- deliveries to come; kept by the triggers
  next_at     INTEGER NOT NULL DEFAULT 0, -- the first of them isn't tried before
  tried_at    INTEGER NOT NULL DEFAULT 0, -- the last try
  status      INTEGER NOT NULL DEFAULT 0, -- its answer's; 0 for none
  given_up_at INTEGER NOT NULL DEFAULT 0, -- 0: it goes on
  reason      TEXT    NOT NULL DEFAULT '',
  UNIQUE (run, id)
) STRICT;

CREATE INDEX pushes_due ON pushes (next_at) WHERE waiting > 0;

CREATE TABLE deliveries (
  push      INTEGER NOT NULL REFERENCES pushes (seq) ON DELETE CASCADE,
  event     INTEGER NOT NULL, -- of the push's run
  at        INTEGER NOT NULL, -- when the event was
  tries     INTEGER NOT NULL DEFAULT 0,
  ended_at  INTEGER NOT NULL DEFAULT 0, -- 0: it waits
  delivered INTEGER NOT NULL DEFAULT 0 CHECK (delivered IN (0, 1)),
  PRIMARY KEY (push, event)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_waiting ON deliveries (push, event) WHERE ended_at = 0;

ALTER TABLE totals ADD COLUMN push_backlog INTEGER NOT NULL DEFAULT 0; -- deliveries that wait

CREATE TRIGGER deliveries_counted AFTER INSERT ON deliveries WHEN NEW.ended_at = 0 BEGIN
  UPDATE pushes SET next_at = iif(waiting = 0, NEW.at, next_at), waiting = waiting + 1 WHERE seq = NEW.push;
  UPDATE totals SET push_backlog = push_backlog + 1;
END;

CREATE TRIGGER deliveries_recounted AFTER UPDATE OF ended_at ON deliveries WHEN OLD.ended_at = 0 AND NEW.ended_at <> 0 BEGIN
  UPDATE pushes SET waiting = waiting - 1 WHERE seq = NEW.push;
  UPDATE totals SET push_backlog = push_backlog - 1;
END;

CREATE TRIGGER deliveries_discounted AFTER DELETE ON deliveries WHEN OLD.ended_at = 0 BEGIN
  UPDATE pushes SET waiting = waiting - 1 WHERE seq = OLD.push;
  UPDATE totals SET push_backlog = push_backlog - 1;
END;
