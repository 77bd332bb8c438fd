-- Version 14.

-- The key that seals cursors: see seal.go.
CREATE TABLE seal (key BLOB NOT NULL) STRICT;
INSERT INTO seal VALUES (randomblob(32));
