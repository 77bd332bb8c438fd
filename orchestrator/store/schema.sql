-- Times are nanoseconds since 1970 (UTC); 0 is no time.

CREATE TABLE runs (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  unit        TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  parent      TEXT    NOT NULL, -- '' for a root; no reference: a parent may be deleted first
  root        TEXT    NOT NULL,
  step        TEXT    NOT NULL DEFAULT '', -- of the flow that asked for it; '' for none
  state       TEXT    NOT NULL,
  outcome     TEXT    NOT NULL DEFAULT '', -- '' while it goes on
  error_kind  TEXT    NOT NULL DEFAULT '', -- '' without an error
  finished    INTEGER NOT NULL CHECK (finished IN (0, 1)),
  created_at  INTEGER NOT NULL,
  started_at  INTEGER NOT NULL DEFAULT 0, -- of the last attempt's program
  finished_at INTEGER NOT NULL,
  -- When a run that nobody called last entered a state, as it was stored: of two changes the later
  -- one has the greater number, whatever the clock did. 0 of a run that another one called.
  changed_at  INTEGER NOT NULL DEFAULT 0,
  disk_bytes  INTEGER NOT NULL,
  tokens      INTEGER NOT NULL DEFAULT 0, -- of models, that were charged; its own alone
  cost        INTEGER NOT NULL DEFAULT 0, -- of models, in billionths of the currency; its own alone
  session     TEXT    NOT NULL DEFAULT '', -- '' for none; no reference: a session may be deleted first
  turn        INTEGER NOT NULL DEFAULT 0,
  schedule    TEXT    NOT NULL DEFAULT '', -- '' for none; no reference: a schedule may be deleted first
  context     TEXT    NOT NULL DEFAULT '', -- to which conversation or group its client counts it; '' for none
  team        TEXT    NOT NULL DEFAULT 'default', -- that owns it
  -- The name of the token with which it was made; '' for none. Those who may see their own alone are
  -- shown by it. A run whose record can't be read is nobody's.
  made_by     TEXT    NOT NULL DEFAULT '',
  record      BLOB,             -- what is large comes last: lists and trees don't read up to there
  private     BLOB
) STRICT;

-- Every index ends in the order of the lists: created_at, then (as in any index) seq.
CREATE INDEX runs_by_time       ON runs (created_at);
CREATE INDEX runs_by_unit       ON runs (unit, created_at);
CREATE INDEX runs_by_state      ON runs (state, created_at);
CREATE INDEX runs_by_unit_state ON runs (unit, state, created_at);
CREATE INDEX runs_by_root       ON runs (root, created_at);
CREATE INDEX runs_roots         ON runs (created_at) WHERE parent = '';
CREATE INDEX runs_by_parent     ON runs (parent, created_at) WHERE parent <> '';
CREATE INDEX runs_unfinished    ON runs (created_at) WHERE finished = 0;
CREATE INDEX runs_finished      ON runs (finished_at) WHERE finished = 1;
CREATE INDEX runs_by_session    ON runs (session, created_at) WHERE session <> '';
CREATE INDEX runs_by_schedule   ON runs (schedule, created_at) WHERE schedule <> '';
CREATE INDEX runs_by_context    ON runs (context, created_at) WHERE context <> '';
CREATE INDEX runs_by_maker      ON runs (made_by, created_at) WHERE made_by <> '';

CREATE INDEX runs_changed_by_context     ON runs (context, changed_at) WHERE context <> '' AND parent = '';
CREATE INDEX runs_changed_by_state       ON runs (state, changed_at) WHERE parent = '';
CREATE INDEX runs_changed_by_unit_state  ON runs (unit, state, changed_at) WHERE parent = '';
CREATE INDEX runs_changed_by_maker_state ON runs (made_by, state, changed_at) WHERE made_by <> '' AND parent = '';
-- Without teams, these are empty.
CREATE INDEX runs_by_team               ON runs (team, created_at) WHERE team <> 'default';
CREATE INDEX runs_roots_by_team         ON runs (team, created_at) WHERE team <> 'default' AND parent = '';
CREATE INDEX runs_changed_by_team_state ON runs (team, state, changed_at) WHERE team <> 'default' AND parent = '';

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

-- What was said to runs, and what they gave before their end; and where their attempts ended.
CREATE INDEX events_told ON events (run, type, seq) WHERE type IN ('message', 'artifact', 'attempt');

CREATE TABLE keys (
  value       TEXT    NOT NULL PRIMARY KEY,
  fingerprint TEXT    NOT NULL,
  run         INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_run ON keys (run);

-- One row, kept by the triggers, so that nobody has to count.
CREATE TABLE totals (
  runs         INTEGER NOT NULL,
  unfinished   INTEGER NOT NULL,
  disk_bytes   INTEGER NOT NULL,
  changed_at   INTEGER NOT NULL DEFAULT 0, -- the greatest of runs
  push_backlog INTEGER NOT NULL DEFAULT 0  -- deliveries that wait
) STRICT;

INSERT INTO totals (runs, unfinished, disk_bytes) VALUES (0, 0, 0);

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

-- In which state a run that nobody called was from when on: a list shows the runs as they were when its first
-- page was read.
CREATE TABLE changes (
  run   INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  at    INTEGER NOT NULL,
  state TEXT    NOT NULL,
  PRIMARY KEY (run, at)
) STRICT, WITHOUT ROWID;

-- How many runs that nobody called there are, kept by the triggers, so that nobody has to count.
CREATE TABLE run_counts (
  team  TEXT    NOT NULL,
  unit  TEXT    NOT NULL,
  state TEXT    NOT NULL,
  runs  INTEGER NOT NULL,
  PRIMARY KEY (team, unit, state)
) STRICT, WITHOUT ROWID;

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

-- What a process that died had asked of models, and hadn't settled, is found at the next start.
CREATE INDEX model_calls_unsettled ON model_calls (run) WHERE settled = 0;

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
  kind        TEXT    NOT NULL DEFAULT '', -- what kind of question it is; '' of a node of a flow
  answered_by TEXT    NOT NULL DEFAULT '', -- the name of the token with which it was answered; '' for none
  approvers   TEXT    NOT NULL DEFAULT '', -- who alone may answer it: a JSON list; '' is who may see the run
  UNIQUE (run, address)
) STRICT;

CREATE INDEX questions_open    ON questions (seq) WHERE answered_at = 0 AND closed_at = 0;
CREATE INDEX questions_open_of ON questions (run) WHERE answered_at = 0 AND closed_at = 0;

-- The units that were switched off.
CREATE TABLE disabled_units (
  unit TEXT    PRIMARY KEY,
  at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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
  private    BLOB,
  made_by    TEXT    NOT NULL DEFAULT '', -- as of runs; a session without a turn is nobody's
  team       TEXT    NOT NULL DEFAULT 'default'
) STRICT;

CREATE INDEX sessions_open    ON sessions (seq) WHERE closed = 0;
CREATE INDEX sessions_closed  ON sessions (used_at) WHERE closed = 1;
CREATE INDEX sessions_by_unit ON sessions (unit, seq);

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
  private       BLOB,
  team          TEXT    NOT NULL DEFAULT 'default', -- that owns it
  made_by       TEXT    NOT NULL DEFAULT '' -- as of runs
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

-- A webhook tells a receiver of the ends and the questions of the runs that a team has. What it tells of one run is a
-- push of that run, so that it comes in order. Its secret isn't here.
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
  webhook     INTEGER REFERENCES webhooks (seq) ON DELETE CASCADE, -- whose it is; NULL: a client of the run named the receiver
  UNIQUE (run, id)
) STRICT;

CREATE INDEX pushes_due ON pushes (next_at) WHERE waiting > 0;
CREATE INDEX pushes_by_webhook ON pushes (webhook, waiting) WHERE webhook IS NOT NULL;

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

-- Who has signed in at the page. token is the digest of the token with which that was done: what it may not do any
-- more, nobody may who signed in with it.
CREATE TABLE signins (
  digest     BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the secret in the browser's cookie
  token      BLOB    NOT NULL, -- its SHA-256, or what an issuer has told of the person: JSON, which is longer
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX signins_by_end ON signins (expires_at);

-- What changed: each thing has one row, to which a change gives the next number. Whoever has read up to a number goes on
-- from there: see Feed, which also writes the rows of units, since these lie in files.
CREATE TABLE feed (
  seq     INTEGER PRIMARY KEY, -- the next is one more than the newest, which is never removed
  noun    TEXT NOT NULL, -- run, question, session or unit
  id      TEXT NOT NULL, -- of a unit: its name
  unit    TEXT NOT NULL DEFAULT '',
  parent  TEXT NOT NULL DEFAULT '', -- of a question: its run
  root    TEXT NOT NULL DEFAULT '',
  state   TEXT NOT NULL DEFAULT '', -- of a unit: its version; 'gone' of what was removed
  outcome TEXT NOT NULL DEFAULT '',
  team    TEXT NOT NULL DEFAULT '', -- of a unit of the operator's: none
  made_by TEXT NOT NULL DEFAULT '',
  UNIQUE (noun, id)
) STRICT;

CREATE TRIGGER runs_fed AFTER INSERT ON runs BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, outcome, team, made_by)
  VALUES ('run', NEW.id, NEW.unit, NEW.parent, NEW.root, NEW.state, NEW.outcome, NEW.team, NEW.made_by);
END;

CREATE TRIGGER runs_fed_again AFTER UPDATE OF state, outcome ON runs
WHEN OLD.state <> NEW.state OR OLD.outcome <> NEW.outcome BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, outcome, team, made_by)
  VALUES ('run', NEW.id, NEW.unit, NEW.parent, NEW.root, NEW.state, NEW.outcome, NEW.team, NEW.made_by);
END;

CREATE TRIGGER runs_fed_last BEFORE DELETE ON runs BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, team, made_by)
  SELECT 'question', id, OLD.unit, OLD.id, OLD.root, 'gone', OLD.team, OLD.made_by FROM questions WHERE run = OLD.seq;
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, outcome, team, made_by)
  VALUES ('run', OLD.id, OLD.unit, OLD.parent, OLD.root, 'gone', OLD.outcome, OLD.team, OLD.made_by);
END;

CREATE TRIGGER runs_came AFTER INSERT ON runs WHEN NEW.parent = '' BEGIN
  INSERT INTO run_counts VALUES (NEW.team, NEW.unit, NEW.state, 1) ON CONFLICT (team, unit, state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_moved AFTER UPDATE OF state ON runs WHEN NEW.parent = '' AND OLD.state <> NEW.state BEGIN
  UPDATE run_counts SET runs = runs - 1 WHERE team = OLD.team AND unit = OLD.unit AND state = OLD.state;
  INSERT INTO run_counts VALUES (NEW.team, NEW.unit, NEW.state, 1) ON CONFLICT (team, unit, state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_went AFTER DELETE ON runs WHEN OLD.parent = '' BEGIN
  UPDATE run_counts SET runs = runs - 1 WHERE team = OLD.team AND unit = OLD.unit AND state = OLD.state;
END;

CREATE TRIGGER questions_fed AFTER INSERT ON questions BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, team, made_by)
  SELECT 'question', NEW.id, unit, id, root, 'open', team, made_by FROM runs WHERE seq = NEW.run;
END;

CREATE TRIGGER questions_fed_again AFTER UPDATE OF answered_at, closed_at ON questions
WHEN OLD.answered_at <> NEW.answered_at OR OLD.closed_at <> NEW.closed_at BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, parent, root, state, team, made_by)
  SELECT 'question', NEW.id, unit, id, root, iif(NEW.answered_at <> 0, 'answered', 'closed'), team, made_by
  FROM runs WHERE seq = NEW.run;
END;

CREATE TRIGGER sessions_fed AFTER INSERT ON sessions BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, state, team, made_by)
  VALUES ('session', NEW.id, NEW.unit, iif(NEW.closed, 'closed', 'open'), NEW.team, NEW.made_by);
END;

CREATE TRIGGER sessions_fed_again AFTER UPDATE OF turns, closed ON sessions
WHEN OLD.turns <> NEW.turns OR OLD.closed <> NEW.closed BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, state, team, made_by)
  VALUES ('session', NEW.id, NEW.unit, iif(NEW.closed, 'closed', 'open'), NEW.team, NEW.made_by);
END;

CREATE TRIGGER sessions_fed_last AFTER DELETE ON sessions BEGIN
  INSERT OR REPLACE INTO feed (noun, id, unit, state, team, made_by)
  VALUES ('session', OLD.id, OLD.unit, 'gone', OLD.team, OLD.made_by);
END;

CREATE TRIGGER units_fed AFTER INSERT ON disabled_units BEGIN
  INSERT INTO feed (noun, id) SELECT 'unit', NEW.unit WHERE NOT EXISTS (SELECT 1 FROM feed WHERE noun = 'unit' AND id = NEW.unit);
  UPDATE feed SET seq = (SELECT max(seq) + 1 FROM feed) WHERE noun = 'unit' AND id = NEW.unit;
END;

-- Not OR REPLACE: in an upsert, as this is, that of a trigger doesn't count.
CREATE TRIGGER units_fed_again AFTER UPDATE OF at ON disabled_units WHEN (OLD.at = 0) <> (NEW.at = 0) BEGIN
  INSERT INTO feed (noun, id) SELECT 'unit', NEW.unit WHERE NOT EXISTS (SELECT 1 FROM feed WHERE noun = 'unit' AND id = NEW.unit);
  UPDATE feed SET seq = (SELECT max(seq) + 1 FROM feed) WHERE noun = 'unit' AND id = NEW.unit;
END;

-- Who did what, and who was refused. Nothing changes a row; those that are old enough are removed.
CREATE TABLE audit (
  seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, also when all before were removed for their age
  at       INTEGER NOT NULL,
  team     TEXT    NOT NULL, -- to which the object belongs, or whoever was refused
  identity TEXT    NOT NULL,
  address  TEXT    NOT NULL,
  verb     TEXT    NOT NULL,
  noun     TEXT    NOT NULL,
  object   TEXT    NOT NULL, -- its id or its name; '' of several
  detail   TEXT    NOT NULL,
  result   TEXT    NOT NULL, -- done, or the status with which it was refused
  count    INTEGER NOT NULL, -- of refusals that are alike, within a minute
  trace    TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_identity ON audit (identity, seq);
CREATE INDEX audit_by_object   ON audit (object, seq) WHERE object <> '';
CREATE INDEX audit_by_team     ON audit (team, seq) WHERE team <> 'default';
CREATE INDEX audit_by_time     ON audit (at);

-- What the runs of each team take, but for the default one: the totals have the rest. Kept by the triggers.
CREATE TABLE team_totals (
  team       TEXT    PRIMARY KEY,
  disk_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_weighed AFTER INSERT ON runs WHEN NEW.team <> 'default' AND NEW.disk_bytes <> 0 BEGIN
  INSERT INTO team_totals VALUES (NEW.team, NEW.disk_bytes) ON CONFLICT (team) DO UPDATE SET disk_bytes = disk_bytes + NEW.disk_bytes;
END;

CREATE TRIGGER runs_weighed_again AFTER UPDATE OF disk_bytes ON runs
WHEN NEW.team <> 'default' AND OLD.disk_bytes <> NEW.disk_bytes BEGIN
  INSERT INTO team_totals VALUES (NEW.team, NEW.disk_bytes - OLD.disk_bytes) ON CONFLICT (team) DO UPDATE SET disk_bytes = disk_bytes + NEW.disk_bytes - OLD.disk_bytes;
END;

CREATE TRIGGER runs_weighed_off AFTER DELETE ON runs WHEN OLD.team <> 'default' AND OLD.disk_bytes <> 0 BEGIN
  UPDATE team_totals SET disk_bytes = disk_bytes - OLD.disk_bytes WHERE team = OLD.team;
END;

-- What was used, by day: it stays when runs are removed. Kept by the triggers.
CREATE TABLE usage (
  day     INTEGER NOT NULL, -- since 1970, in UTC: that of the end of a run, or of a call of a model
  team    TEXT    NOT NULL,
  made_by TEXT    NOT NULL,
  unit    TEXT    NOT NULL,
  outcome TEXT    NOT NULL, -- of runs; '' of calls of models
  model   TEXT    NOT NULL, -- of calls; '' of runs
  runs    INTEGER NOT NULL,
  waited  INTEGER NOT NULL, -- nanoseconds until programs started
  worked  INTEGER NOT NULL, -- nanoseconds from there to the end
  calls   INTEGER NOT NULL,
  tokens  INTEGER NOT NULL,
  cost    INTEGER NOT NULL,
  cpu     INTEGER NOT NULL DEFAULT 0, -- nanoseconds of processors that programs took, as far as their sandboxes could tell
  PRIMARY KEY (day, team, made_by, unit, outcome, model)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_used AFTER UPDATE OF finished ON runs WHEN OLD.finished = 0 AND NEW.finished = 1 BEGIN
  INSERT INTO usage VALUES (NEW.finished_at / 86400000000000, NEW.team, NEW.made_by, NEW.unit, NEW.outcome, '', 1,
    iif(NEW.started_at > NEW.created_at, NEW.started_at - NEW.created_at, 0),
    iif(NEW.started_at > 0, max(0, NEW.finished_at - NEW.started_at), 0), 0, 0, 0,
    CASE WHEN json_valid(CAST(NEW.record AS TEXT)) THEN CAST(1e9 * (
      coalesce(CAST(NEW.record AS TEXT) ->> '$.usage.cpu_seconds', 0) +
      (SELECT coalesce(sum(value ->> '$.usage.cpu_seconds'), 0) FROM json_each(CAST(NEW.record AS TEXT), '$.attempts'))
    ) AS INTEGER) ELSE 0 END)
  ON CONFLICT DO UPDATE SET runs = runs + 1, waited = waited + excluded.waited, worked = worked + excluded.worked,
    cpu = cpu + excluded.cpu;
END;

CREATE TRIGGER models_used AFTER INSERT ON model_calls WHEN NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> '$.call.model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost, 0 FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;

CREATE TRIGGER models_used_later AFTER UPDATE OF settled ON model_calls
WHEN OLD.settled = 0 AND NEW.settled = 1 AND (NEW.tokens > 0 OR NEW.cost > 0) BEGIN
  INSERT INTO usage SELECT NEW.at / 86400000000000, team, made_by, unit, '', coalesce(CAST(NEW.data AS TEXT) ->> '$.call.model', 'unknown'),
    0, 0, 0, 1, NEW.tokens, NEW.cost, 0 FROM runs WHERE seq = NEW.run
  ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
END;

-- The key that seals cursors: see seal.go.
CREATE TABLE seal (key BLOB NOT NULL) STRICT;
INSERT INTO seal VALUES (randomblob(32));

-- What the runs made with each token take. Kept by the triggers.
CREATE TABLE maker_totals (
  made_by    TEXT    PRIMARY KEY,
  disk_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_weighed_by AFTER INSERT ON runs WHEN NEW.made_by <> '' AND NEW.disk_bytes <> 0 BEGIN
  INSERT INTO maker_totals VALUES (NEW.made_by, NEW.disk_bytes) ON CONFLICT (made_by) DO UPDATE SET disk_bytes = disk_bytes + NEW.disk_bytes;
END;

CREATE TRIGGER runs_weighed_again_by AFTER UPDATE OF disk_bytes ON runs
WHEN NEW.made_by <> '' AND OLD.disk_bytes <> NEW.disk_bytes BEGIN
  INSERT INTO maker_totals VALUES (NEW.made_by, NEW.disk_bytes - OLD.disk_bytes) ON CONFLICT (made_by) DO UPDATE SET disk_bytes = disk_bytes + NEW.disk_bytes - OLD.disk_bytes;
END;

CREATE TRIGGER runs_weighed_off_by AFTER DELETE ON runs WHEN OLD.made_by <> '' AND OLD.disk_bytes <> 0 BEGIN
  UPDATE maker_totals SET disk_bytes = disk_bytes - OLD.disk_bytes WHERE made_by = OLD.made_by;
END;

-- The machines that take runs from the server. Who may be one stands in the file of the tokens.
CREATE TABLE workers (
  name    TEXT    PRIMARY KEY,
  drained INTEGER NOT NULL CHECK (drained IN (0, 1)), -- 1: it takes nothing new
  about   BLOB, -- what it said of itself: JSON; NULL: nothing yet
  seen_at INTEGER NOT NULL -- when it was connected last
) STRICT, WITHOUT ROWID;
