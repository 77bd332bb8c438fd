-- Version 14.

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

INSERT INTO maker_totals SELECT made_by, sum(disk_bytes) FROM runs WHERE made_by <> '' AND disk_bytes <> 0 GROUP BY made_by;
