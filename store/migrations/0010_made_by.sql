-- The name of the token with which a run or a session was made; '' for none. Those who may see
-- their own alone are shown by it. A run whose record can't be read is nobody's, and so is a
-- session without a turn.
ALTER TABLE runs ADD COLUMN made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN made_by TEXT NOT NULL DEFAULT '';

UPDATE runs SET made_by = coalesce(CAST(record AS TEXT) ->> '$.by', '')
  WHERE instr(record, CAST('"by":' AS BLOB)) > 0 AND json_valid(CAST(record AS TEXT));

UPDATE sessions SET made_by = coalesce(
  (SELECT made_by FROM runs WHERE session = sessions.id AND session <> '' ORDER BY created_at LIMIT 1), '');

CREATE INDEX runs_changed_by_maker_state ON runs (made_by, state, changed_at) WHERE made_by <> '' AND parent = '';
