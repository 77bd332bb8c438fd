package servicetest_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/internal/access"

	_ "modernc.org/sqlite" // the driver of the store

	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// snapshot is all that a process leaves to the next one: the rows of its database, the files of its
// home, and its containers. It is JSON, read without any type of the product that is stored.
type snapshot struct {
	Rows       map[string][]map[string]any `json:"rows"` // by table
	Files      map[string]any              `json:"files"`
	Containers []keptContainer             `json:"containers,omitempty"`
	Images     []keptImage                 `json:"images,omitempty"`
}

// keptImage is what is known of an image to its engine.
type keptImage struct {
	ID     string            `json:"id"`
	Tags   []string          `json:"tags"`
	Labels map[string]string `json:"labels"`
}

// keptContainer is what is known of a container to its engine, as the next process finds it.
type keptContainer struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	State      string            `json:"state"`
	Image      string            `json:"image"`
	Labels     map[string]string `json:"labels"`
	Entrypoint []string          `json:"entrypoint"` // an old init
	Cmd        []string          `json:"cmd"`
	Env        []string          `json:"env"`
	WorkingDir string            `json:"working_dir,omitempty"`
	User       string            `json:"user"`
	Mounts     map[string]string `json:"mounts"` // by their targets
	LogBytes   int64             `json:"log_bytes"`
}

// derived are the tables and columns that the store's triggers count: who restores the rows gets them.
var derived = []string{"totals", "run_counts", "team_totals", "maker_totals", "usage", "feed", "sqlite_sequence"}

// ordered are the tables that have all ids. Others refer to their rows.
var ordered = []string{"sessions", "schedules", "runs", "questions", "pushes"}

// takeSnapshot reads the home of a Service that is closed, and the engine.
func takeSnapshot(h *servicetest.Harness) snapshot {
	h.Helper()
	return snapshot{Rows: readRows(h), Files: readFiles(h), Containers: readContainers(h), Images: readImages(h)}
}

func openDatabase(t testing.TB, home string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(home, layout.Database))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

func readRows(h *servicetest.Harness) map[string][]map[string]any {
	h.Helper()
	db := openDatabase(h, h.Settings.Home)
	defer db.Close()
	all := map[string][]map[string]any{}
	for _, table := range tablesOf(h, db) {
		if rows := readTable(h, db, table); len(rows) > 0 && !slices.Contains(derived, table) {
			all[table] = rows
		}
	}
	return all
}

func tablesOf(t testing.TB, db *sql.DB) (names []string) {
	t.Helper()
	for _, row := range query(t, db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
		names = append(names, row["name"].(string))
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "seal" }) // chance alone
}

// readTable returns the rows of a table in the order of its primary key. Documents are decoded.
func readTable(t testing.TB, db *sql.DB, table string) []map[string]any {
	t.Helper()
	rows := query(t, db, "SELECT * FROM "+table)
	for _, row := range rows {
		for column, value := range row {
			if raw, ok := value.([]byte); ok {
				row[column] = decoded(t, raw)
			}
		}
	}
	return rows
}

func query(t testing.TB, db *sql.DB, text string) (all []map[string]any) {
	t.Helper()
	rows, err := db.QueryContext(access.WithServer(context.Background()), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, column := range columns {
			row[column] = values[i]
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// decoded reads JSON with its numbers as they are written.
func decoded(t testing.TB, raw []byte) (value any) {
	t.Helper()
	if err := unmarshal(raw, &value); err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	return value
}

// noText stands for what is in a file that isn't text: an init.
const (
	noText = "<no text>"
	socket = "<socket>"
)

// unread are the files of a home that say nothing of what was accepted: the database, which is read
// otherwise, and the init, which is built with the program.
func unread(path string) bool {
	return strings.HasPrefix(path, layout.Database) || strings.HasPrefix(path, "bin/")
}

func readFiles(h *servicetest.Harness) map[string]any {
	h.Helper()
	files, home := map[string]any{}, h.Settings.Home
	err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, home), "/")
		if err != nil || name == "" || unread(name) {
			return err
		}
		switch {
		case entry.IsDir():
			files[name+"/"] = nil
		case !entry.Type().IsRegular():
			files[name] = socket
		default:
			files[name], err = readFile(h, path)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return files
}

// digested reports whether the bytes of a file have a digest that is stored: the list of a project, or
// a version of a unit.
func digested(path string) bool {
	return filepath.Base(path) == layout.Manifest || strings.Contains(path, "/"+layout.Units+"/") && filepath.Base(path) != "unit.json"
}

// readFile returns what is in a file: JSON and lines of JSON are decoded.
func readFile(t testing.TB, path string) (any, error) {
	t.Helper()
	raw, err := os.ReadFile(path)
	switch {
	case err != nil || len(raw) == 0:
		return "", err
	case strings.HasSuffix(path, ".jsonl"):
		var lines []any
		for line := range bytes.Lines(raw) {
			lines = append(lines, decoded(t, line))
		}
		return lines, nil
	case strings.HasSuffix(path, ".json") && json.Valid(raw) && !digested(path):
		return decoded(t, raw), nil
	case isFeed(path, raw):
		head, fed := raw[:initreport.FeedHeader], raw[initreport.FeedHeader:]
		return map[string]any{"head": hex.EncodeToString(head), "fed": string(fed)}, nil
	case !utf8.Valid(raw):
		return noText, nil
	}
	return string(raw), nil
}

// isFeed tells a stdin that grows: it begins with a length.
func isFeed(path string, raw []byte) bool {
	return strings.HasSuffix(path, "/aod/stdin") && len(raw) >= initreport.FeedHeader &&
		binary.BigEndian.Uint64(raw) <= uint64(len(raw))
}

func readContainers(h *servicetest.Harness) (all []keptContainer) {
	h.Helper()
	refs, err := h.Engine.ContainersByLabel(access.WithServer(context.Background()), map[string]string{runtime.LabelRun: ""})
	if err != nil {
		h.Fatal(err)
	}
	for _, ref := range refs {
		spec, _ := h.Engine.Spec(ref.ID)
		kept := keptContainer{
			ID: ref.ID, Name: spec.Name, State: ref.State, Image: spec.Image, Labels: spec.Labels,
			Entrypoint: spec.Entrypoint, Cmd: spec.Cmd, Env: spec.Env, WorkingDir: spec.WorkingDir, User: spec.User,
			Mounts: map[string]string{}, LogBytes: spec.LogBytes,
		}
		for _, m := range spec.Mounts {
			kept.Mounts[m.Target] = m.Source
		}
		all = append(all, kept)
	}
	slices.SortFunc(all, func(a, b keptContainer) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func readImages(h *servicetest.Harness) (all []keptImage) {
	h.Helper()
	images, err := h.Engine.ImagesByLabel(access.WithServer(context.Background()), map[string]string{runtime.LabelUnit: ""})
	if err != nil {
		h.Fatal(err)
	}
	for _, i := range images {
		all = append(all, keptImage{ID: i.ID, Tags: i.Tags, Labels: i.Labels})
	}
	slices.SortFunc(all, func(a, b keptImage) int { return slices.Compare(a.Tags, b.Tags) })
	return all
}

// spec is what the container was made of.
func (c keptContainer) spec() runtime.ContainerSpec {
	spec := runtime.ContainerSpec{
		Name: c.Name, Image: c.Image, Labels: c.Labels, Entrypoint: c.Entrypoint, Cmd: c.Cmd, Env: c.Env,
		WorkingDir: c.WorkingDir, User: c.User, LogBytes: c.LogBytes,
	}
	for _, target := range slices.Sorted(maps.Keys(c.Mounts)) {
		spec.Mounts = append(spec.Mounts, runtime.Mount{Source: c.Mounts[target], Target: target})
	}
	return spec
}

// restoreFiles makes the files of a home.
func (s snapshot) restoreFiles(t testing.TB, home string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		s.writeFile(t, filepath.Join(home, name), s.Files[name])
	}
}

// counted are columns that a trigger counts up from 0.
var counted = map[string]string{"pushes": "waiting"}

// restoreRows makes the database of a home, as this version makes it.
func (s snapshot) restoreRows(t testing.TB, home string) {
	t.Helper()
	made, err := store.Open(filepath.Join(home, layout.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	db := openDatabase(t, home)
	defer db.Close()
	exec(t, db, "PRAGMA foreign_keys = OFF")
	others := func(table string) bool { return slices.Contains(ordered, table) }
	for _, table := range slices.Concat(ordered, slices.DeleteFunc(slices.Sorted(maps.Keys(s.Rows)), others)) {
		blobs := blobColumns(t, db, table)
		for _, row := range s.Rows[table] {
			delete(row, counted[table])
			insert(t, db, table, blobs, row)
		}
	}
}

func (s snapshot) writeFile(t testing.TB, path string, content any) {
	t.Helper()
	switch content := content.(type) {
	case nil:
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	case string:
		if content != socket {
			servicetest.Write(t, path, content)
		}
	case []any:
		var lines strings.Builder
		for _, line := range content {
			lines.Write(append(servicetest.JSON(line), '\n'))
		}
		servicetest.Write(t, path, lines.String())
	case map[string]any:
		text := string(servicetest.JSON(content))
		if head, err := hex.DecodeString(fmt.Sprint(content["head"])); err == nil {
			text = string(head) + content["fed"].(string)
		}
		servicetest.Write(t, path, text)
	}
}

func exec(t testing.TB, db *sql.DB, text string, values ...any) {
	t.Helper()
	if _, err := db.ExecContext(access.WithServer(context.Background()), text, values...); err != nil {
		t.Fatal(err)
	}
}

func blobColumns(t testing.TB, db *sql.DB, table string) map[string]bool {
	t.Helper()
	blobs := map[string]bool{}
	for _, column := range query(t, db, "SELECT name, type FROM pragma_table_info('"+table+"')") {
		blobs[column["name"].(string)] = column["type"] == "BLOB"
	}
	return blobs
}

func insert(t testing.TB, db *sql.DB, table string, blobs map[string]bool, row map[string]any) {
	t.Helper()
	columns, values := slices.Sorted(maps.Keys(row)), []any{}
	for _, column := range columns {
		value := row[column]
		if blobs[column] && value != nil {
			value = []byte(servicetest.JSON(value))
		} else if number, ok := value.(json.Number); ok {
			value, _ = number.Int64()
		}
		values = append(values, value)
	}
	exec(t, db, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "),
		strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ")), values...)
}
