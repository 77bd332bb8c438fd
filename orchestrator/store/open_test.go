package store

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// raw opens the file as any program would, not by this package.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// rawExec is over before the Store opens the file.
func rawExec(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.Exec(text)
	must(t, err)
	must(t, db.Close())
}

func TestOpenMakesTheFileForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?%41#é", "aod.db")
	s := openAt(t, path)
	must(t, s.Runs.Insert(t.Context(), aRun(1), Key{}))
	for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, "aod.db": 0o600, "aod.db-wal": 0o600, "aod.db-shm": 0o600} {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%q has mode %s, want %s", name, info.Mode(), want)
		}
	}
}

func TestOpenTakesAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, openAt(t, path).Runs.Insert(t.Context(), aRun(1), Key{}))
}

func TestOpenRefuses(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T, path string)
		kind    fault.Kind
		hint    string
	}{
		{"a database of a newer version", func(t *testing.T, path string) {
			must(t, openAt(t, path).Close())
			rawExec(t, path, "PRAGMA user_version = 1000")
		}, fault.Unsupported, "newer AOD"},
		{"a database of an older version", func(t *testing.T, path string) {
			makeTen(t, path)
			rawExec(t, path, "PRAGMA user_version = 9")
		}, fault.Unsupported, "version 10 with an earlier AOD"},
		{"a database of something else", func(t *testing.T, path string) {
			rawExec(t, path, "CREATE TABLE runs (x)")
		}, fault.Conflict, "file of AOD's own"},
		{"a database that another application marked", func(t *testing.T, path string) {
			rawExec(t, path, "PRAGMA application_id = 7; PRAGMA user_version = 1")
		}, fault.Conflict, "file of AOD's own"},
		{"a directory in the file's place", func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
		}, fault.Unavailable, "directory of aod.db"},
		{"a directory whose parent is missing", func(t *testing.T, path string) {
			must(t, os.RemoveAll(filepath.Dir(filepath.Dir(path))))
		}, fault.Unavailable, "directory of aod.db"},
		{"a directory without permission", func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root may write anywhere")
			}
			must(t, os.Chmod(filepath.Dir(path), 0o500))
		}, fault.Unavailable, "directory of aod.db"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "parent", "dir", "aod.db")
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			c.prepare(t, path)
			_, err := Open(path, Options{})
			wantKind(t, err, c.kind)
			if hint := fault.Public(err).Hint; !strings.Contains(hint, c.hint) {
				t.Errorf("the hint is %q", hint)
			}
		})
	}
}

func TestAnOlderDatabaseIsRefusedByItsNameAndVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aod.db")
	makeTen(t, path)
	rawExec(t, path, "PRAGMA user_version = 7")
	before, err := os.ReadFile(path)
	must(t, err)
	_, err = Open(path, Options{})
	if said := fault.Public(err).Msg; said != "aod.db is a database of version 7, and this AOD needs version 10" {
		t.Errorf("it says %q", said)
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if !slices.Equal(before, after) {
		t.Error("it was changed")
	}
}

func TestARefusedDatabaseIsLeftAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	rawExec(t, path, "CREATE TABLE theirs (x)")
	before, err := os.ReadFile(path)
	must(t, err)
	_, err = Open(path, Options{})
	wantKind(t, err, fault.Conflict)
	after, err := os.ReadFile(path)
	must(t, err)
	if !slices.Equal(before, after) {
		t.Error("it was changed")
	}
}

func TestAFileOfGarbageIsDamageAndStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	garbage := []byte(strings.Repeat("garbage", 1000))
	must(t, os.WriteFile(path, garbage, 0o600))
	s := openAt(t, path)
	_, err := s.Runs.List(t.Context(), Filter{})
	wantKind(t, err, fault.Unavailable)
	wantKind(t, s.Health(t.Context()), fault.Unavailable)
	if hint := fault.Public(err).Hint; !strings.Contains(hint, "aod restore") {
		t.Errorf("the hint is %q", hint)
	}
	must(t, s.Close())
	after, err := os.ReadFile(path)
	must(t, err)
	if !slices.Equal(after, garbage) {
		t.Error("it was changed")
	}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "aod.db")
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				s, err := Open(path, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Runs.Insert(t.Context(), aRun(n), Key{}); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// readTestdata returns a file of testdata.
func readTestdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	return string(text)
}

// makeTen makes a database of version 10 as it was made by ten migrations, with some content.
func makeTen(t *testing.T, path string) {
	t.Helper()
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 10", applicationID)
	rawExec(t, path, readTestdata(t, "migrations.sql")+readTestdata(t, "v10.sql")+mark)
}

// schemaOf returns what the database is made of, one statement a line, in one way of writing it.
func schemaOf(t *testing.T, path string) (all []string) {
	t.Helper()
	rows, err := raw(t, path).Query(`SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY tbl_name, type, rowid`)
	must(t, err)
	defer func() { must(t, rows.Close()) }()
	for rows.Next() {
		var text string
		must(t, rows.Scan(&text))
		text = regexp.MustCompile(`--[^\n]*`).ReplaceAllString(text, "")
		text = strings.Join(strings.Fields(strings.ReplaceAll(text, `"`, "")), " ") // of what has got its name later
		all = append(all, regexp.MustCompile(` ?([(),]) ?`).ReplaceAllString(text, "$1"))
	}
	must(t, rows.Err())
	return all
}

func TestTheSchemaIsThatOfAllMigrations(t *testing.T) {
	t.Parallel()
	made, migrated := filepath.Join(t.TempDir(), "aod.db"), filepath.Join(t.TempDir(), "aod.db")
	must(t, openAt(t, made).Close())
	makeTen(t, migrated)
	must(t, openAt(t, migrated).Close())
	want := schemaOf(t, migrated)
	if diff := cmp.Diff(want, schemaOf(t, made)); diff != "" || len(want) < 40 {
		t.Errorf("of %d: %s", len(want), diff)
	}
}

func TestADatabaseOfVersionTenOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aod.db")
	makeTen(t, path)
	s := openAt(t, path)
	want := ended(aRun(0))
	want.ID, want.Root, want.Output = "r1", "r1", []byte(`{"out":1}`)
	want.Record = []byte(`{"n":1}`)
	want.Step, want.Outcome, want.StartedAt, want.Tokens, want.Cost = "", "", time.Time{}, 0, 0
	got, err := s.Runs.Get(t.Context(), "r1")
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := events(t, s, "r1"); len(got) != 2 {
		t.Errorf("its events are %v", got)
	}
	totals, err := s.Runs.Totals(t.Context())
	must(t, err)
	if diff := cmp.Diff(Totals{Runs: 2, Unfinished: 1, DiskBytes: 10}, totals); diff != "" {
		t.Error(diff)
	}
	if bytes, err := s.Runs.BytesBy(t.Context(), "ci"); bytes != 3 || err != nil {
		t.Errorf("those of a token take %d, %v", bytes, err)
	}
	open, err := s.Runs.Unfinished(t.Context())
	must(t, err)
	if len(open) != 1 || open[0].ID != "r2" {
		t.Errorf("unfinished: %+v", open)
	}
	must(t, s.Runs.Save(t.Context(), ended(open[0]), event("x")))
	must(t, s.Runs.Delete(t.Context(), "r1", "r2"))
	healthy(t, path)
}

func TestWhatARecordOfVersionTenSaysStandsInColumns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aod.db")
	makeTen(t, path)
	const whole = `{"step":"read[2]","outcome":"capsule_error","error":{"kind":"memory_limit","message":"x"},"started_at":"2026-01-02T03:04:05.678Z",` +
		`"models":{"charged":1234,"cost":0.000000021}}`
	records := []string{
		whole, `{"step":{"a":1},"outcome":null,"error":7,"started_at":"yesterday","models":{"charged":"many","cost":[]}}`, "garbage\xff", "",
	}
	for n, record := range records {
		rawExec(t, path, fmt.Sprintf(`INSERT INTO runs (id, unit, kind, parent, root, state, finished, created_at, finished_at, disk_bytes, record)
			VALUES ('x%d', 'hello', 'capsule', '', 'x', 'failed', 1, %d, %d, 0, x'%x')`, n, epoch.UnixNano()+int64(n), epoch.UnixNano(), record))
	}
	s := openAt(t, path)
	tree, all, err := s.Runs.Tree(t.Context(), "x", 100)
	must(t, err)
	if len(tree) != len(records) || all != int64(len(records)) {
		t.Fatalf("%d of %d: %+v", len(tree), all, tree)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	if r := tree[0]; r.Step != "read[2]" || r.Outcome != "capsule_error" || r.ErrorKind != "memory_limit" || !r.StartedAt.Equal(at) || r.Tokens != 1234 || r.Cost != 21 {
		t.Errorf("%+v", r)
	}
	for n, r := range tree[1:] {
		if r.Outcome != "" || r.ErrorKind != "" || !r.StartedAt.IsZero() || r.Tokens != 0 || r.Cost != 0 {
			t.Errorf("%s: %+v", records[n+1], r)
		}
		if kept, err := s.Runs.Get(t.Context(), r.ID); err != nil || string(kept.Record) != records[n+1] {
			t.Errorf("%q, %v", kept.Record, err)
		}
	}
}

// Version 12 looked for the name of a model at another place.
func TestTheUsageOfModelsGetsTheirNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aod.db")
	makeTen(t, path) // with a call that says no model, of 12 tokens
	rawExec(t, path, `INSERT INTO model_calls VALUES
		(1, 2, 1767323045000000678, 5, 7, 1, 0, CAST('{"id":"x","call":{"model":"small"}}' AS BLOB)),
		(1, 3, 1767323045000000679, 6, 8, 1, 0, CAST('{"id":"y","call":{"model":"small"}}' AS BLOB)),
		(1, 4, 1767323045000000680, 100, 100, 0, 0, CAST('{"id":"z","call":{"model":"small"}}' AS BLOB))`)
	s := openAt(t, path)
	want := []Usage{{Model: "small", Calls: 2, Tokens: 11, Cost: 15}, {Model: "unknown", Calls: 1, Tokens: 12, Cost: 3400}}
	got, err := s.Usages.Sums(t.Context(), UsageFilter{By: []string{"model"}})
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	must(t, s.ModelCalls.SettleAll(t.Context())) // what its process left
	want[0] = Usage{Model: "small", Calls: 3, Tokens: 111, Cost: 115}
	got, err = s.Usages.Sums(t.Context(), UsageFilter{By: []string{"model"}})
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	calls, err := s.ModelCalls.List(t.Context(), "r1", 3, 0)
	must(t, err)
	if len(calls) != 1 || !calls[0].Settled || !calls[0].Estimated {
		t.Errorf("%+v", calls)
	}
}

func TestATreeIsCutAfterItsFirstRuns(t *testing.T) {
	t.Parallel()
	s := open(t)
	var want []string
	for n := range 5 {
		r := aRun(n)
		r.Root = "r"
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		want = append(want, r.ID)
	}
	must(t, s.Runs.Insert(t.Context(), aRun(9), Key{}))
	for most, all := range map[int]int64{3: 5, 5: 5, 6: 5} {
		tree, n, err := s.Runs.Tree(t.Context(), "r", most)
		must(t, err)
		var got []string
		for _, r := range tree {
			got = append(got, r.ID)
		}
		if n != all || !slices.Equal(got, want[:min(most, 5)]) {
			t.Errorf("of %d at most: %d, %v", most, n, got)
		}
	}
}

func TestOpeningAgainChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	for range 3 {
		s := openAt(t, path)
		must(t, s.Runs.Insert(t.Context(), aRun(1), Key{}))
		must(t, s.Close())
	}
	totals, err := openAt(t, path).Runs.Totals(t.Context())
	must(t, err)
	if totals.Runs != 3 {
		t.Errorf("there are %d runs", totals.Runs)
	}
}

// healthy checks what SQLite can check, and that the totals are those of the rows.
func healthy(t *testing.T, path string) {
	t.Helper()
	db := raw(t, path)
	var verdict string
	must(t, db.QueryRow("PRAGMA integrity_check").Scan(&verdict))
	if verdict != "ok" {
		t.Fatal(verdict)
	}
	var orphans, wrong int
	must(t, db.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&orphans))
	must(t, db.QueryRow(`SELECT count(*) FROM totals WHERE (runs, unfinished, disk_bytes) IS NOT
		(SELECT count(*), coalesce(sum(finished = 0), 0), coalesce(sum(disk_bytes), 0) FROM runs)`).Scan(&wrong))
	var unlike, lost int
	must(t, db.QueryRow(`SELECT count(*) FROM (SELECT team, unit, state, runs FROM run_counts WHERE runs <> 0
		EXCEPT SELECT team, unit, state, count(*) FROM runs WHERE parent = '' GROUP BY team, unit, state UNION ALL
		SELECT team, '', '', disk_bytes FROM team_totals WHERE disk_bytes <> 0
		EXCEPT SELECT team, '', '', sum(disk_bytes) FROM runs GROUP BY team UNION ALL
		SELECT '', made_by, '', disk_bytes FROM maker_totals WHERE disk_bytes <> 0
		EXCEPT SELECT '', made_by, '', sum(disk_bytes) FROM runs GROUP BY made_by)`).Scan(&unlike))
	must(t, db.QueryRow(`SELECT (SELECT push_backlog FROM totals) <> (SELECT count(*) FROM deliveries WHERE ended_at = 0)
		OR EXISTS (SELECT 1 FROM pushes WHERE waiting <> (SELECT count(*) FROM deliveries WHERE push = pushes.seq AND ended_at = 0))`).Scan(&lost))
	if orphans != 0 || wrong != 0 || unlike != 0 || lost != 0 {
		t.Fatalf("%d orphans; totals wrong: %d; counts wrong: %d, of deliveries: %d", orphans, wrong, unlike, lost)
	}
}
