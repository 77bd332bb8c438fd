-- What a database of version 10 may have in it. Never changed.
INSERT INTO runs (seq, id, unit, kind, parent, root, state, finished, created_at, finished_at, disk_bytes, record, private) VALUES
  (1, 'r1', 'hello', 'capsule', '', 'r1', 'completed', 1, 1767323045000000678, 1767323105000000678, 7, CAST('{"n":1}' AS BLOB), CAST('{"p":1}' AS BLOB)),
  (2, 'r2', 'hello', 'capsule', 'r1', 'r1', 'running', 0, 1767323046000000678, 0, 3, CAST('{"n":2}' AS BLOB), NULL);
INSERT INTO inputs VALUES (1, CAST('{"in":1}' AS BLOB));
INSERT INTO outputs VALUES (1, CAST('{"out":1}' AS BLOB));
INSERT INTO events VALUES (1, 1, 1767323045000000678, 'state', CAST('{}' AS BLOB)), (1, 2, 1767323045000000678, 'end', NULL);
INSERT INTO keys VALUES ('k1', 'f1', 1);
INSERT INTO metadata VALUES (1, 'user_id', 'ada', 1767323045000000678), (2, 'user_id', 'bob', 1767323046000000678);
INSERT INTO model_calls VALUES (1, 1, 1767323045000000678, 12, 3400, 1, 0, CAST('{"n":1}' AS BLOB));
INSERT INTO steps VALUES (1, 1, 'read', 1, 'done', 'r2', 0, 'default', CAST('{"a":1}' AS BLOB), NULL, NULL, 0, 1767323045000000678, 1767323046000000678);
INSERT INTO questions VALUES (1, 'q1', 1, 'ask', 'Well?', NULL, NULL, CAST('["approve"]' AS BLOB), 0, 1767323045000000678, 1767323046000000678, CAST('{"action":"approve"}' AS BLOB), 0, '');
INSERT INTO questions VALUES (2, 'q2', 2, 'key', 'May I?', NULL, NULL, CAST('["approve","reject"]' AS BLOB), 0, 1767323046000000678, 0, NULL, 0, 'approval');
INSERT INTO disabled_units VALUES ('hello', 1767323046000000678);
INSERT INTO sessions VALUES (1, 's1', 'talker', 'v1', 2, 0, '', 1767323045000000678, 1767323046000000678, CAST('{"saved":1}' AS BLOB), 'ci');
UPDATE runs SET made_by = 'ci' WHERE seq = 2;
UPDATE runs SET session = 's1', turn = 1 WHERE seq = 2;
INSERT INTO schedules VALUES (1, 'nightly', 'hello', CAST('{"cron":"@daily"}' AS BLOB), CAST('{"in":1}' AS BLOB), '', 0, 1767323045000000678, 2, 1767323045000000678, 1767323045000000678, CAST('{"p":1}' AS BLOB));
INSERT INTO occurrences VALUES (1, 1, 1767323045000000678, 1767323045000000678, 4, 'started', 'r2', '', 0), (2, 1, 1767323046000000678, 1767323046000000678, 4, 'waiting', '', '', 0);
UPDATE runs SET schedule = 'nightly' WHERE seq = 2;
UPDATE runs SET changed_at = 1767323046000000679 WHERE seq = 1;
UPDATE runs SET context = 'c1' WHERE seq = 2;
UPDATE totals SET changed_at = 1767323046000000679;
INSERT INTO changes VALUES (1, 1767323045000000678, 'running'), (1, 1767323046000000679, 'completed');
INSERT INTO events VALUES (2, 1, 1767323046000000678, 'message', CAST('{"id":"m1"}' AS BLOB));
INSERT INTO pushes (seq, run, id, url, host, token, scheme, credentials, created_at) VALUES (1, 2, 'p1', 'https://hook.example/in', 'hook.example', 't', 'Bearer', 'c', 1767323045000000678);
INSERT INTO deliveries (push, event, at, tries, ended_at, delivered) VALUES (1, 1, 1767323045000000678, 1, 1767323046000000678, 1);
INSERT INTO deliveries (push, event, at) VALUES (1, 2, 1767323046000000678);
