package orchestrator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/orchestrator/backup"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// entryOf is an entry of a backup.
type entryOf struct {
	tar.Header
	content string
}

func regular(name, content string) entryOf {
	return entryOf{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600}, content}
}

// packed is a backup of entries, as it was written if they are.
func packed(t testing.TB, entries ...entryOf) []byte {
	t.Helper()
	var raw bytes.Buffer
	zip := gzip.NewWriter(&raw)
	w := tar.NewWriter(zip)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

func entriesOf(t testing.TB, raw []byte) (entries []entryOf) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(zip)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entryOf{*h, string(content)})
	}
}

// signed has the digests that fit the entries.
func signed(entries []entryOf) []entryOf {
	lines := ""
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			sum := sha256.Sum256([]byte(e.content))
			lines += hex.EncodeToString(sum[:]) + "  " + e.Name + "\n"
		}
	}
	return append(slices.Clip(entries), regular("SHA256SUMS", lines))
}

func TestAChangedBackupIsRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	id := w.await(w.submit(orders{Mark: "a", File: "out.txt", Lines: 2})).ID
	file := filepath.Join(t.TempDir(), "backup")
	report, err := backup.Write(trusted.Context(t), w.opts.Home, backup.Target{File: file}, "test")
	if err != nil || report.Runs != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := entriesOf(t, raw)
	body := whole[:len(whole)-1]
	with := func(more ...entryOf) []entryOf { return signed(append(append([]entryOf{}, body...), more...)) }
	changed := func(name string, change func(*entryOf)) []entryOf {
		entries := append([]entryOf{}, whole...)
		for i := range entries {
			if entries[i].Name == name {
				change(&entries[i])
			}
		}
		return entries
	}
	output := "runs/" + id + "/output/out.txt"
	link := func(name, target string) entryOf {
		return entryOf{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}, ""}
	}
	version := "units/worker/0123456789abcdef/worker/"
	for name, c := range map[string]struct {
		entries []entryOf
		kind    fault.Kind
		says    string
	}{
		"a file was changed":      {changed(output, func(e *entryOf) { e.content = strings.ToUpper(e.content) }), fault.Input, "out.txt"},
		"a file is missing":       {append(append([]entryOf{}, whole[0]), whole[2:]...), fault.Input, ""},
		"the digests are missing": {body, fault.Input, "a whole backup"},
		"nothing is there":        {nil, fault.Input, "a whole backup"},
		"there is no database":    {signed(body[:1]), fault.Input, "a whole backup"},
		"something is behind it":  {append(append([]entryOf{}, whole...), regular("runs/"+id+"/input/more", "x")), fault.Input, ""},
		"a newer format":          {[]entryOf{regular("backup.json", `{"aod_backup": 2, "aod_version": "v9"}`)}, fault.Unsupported, "newer AOD"},
		"a name that leads out":   {with(regular("runs/"+id+"/input/../../../x", "x")), fault.Input, "no place"},
		"an absolute name":        {with(regular("/etc/passwd", "x")), fault.Input, "no place"},
		"a token":                 {with(regular("token", "x")), fault.Input, "no place"},
		"a log beside the store":  {with(regular("aod.db-wal", "x")), fault.Input, "no place"},
		"an attempt's files":      {with(regular("runs/"+id+"/1/x", "x")), fault.Input, "no place"},
		"a run without an id":     {with(regular("runs/x/input/x", "x")), fault.Input, "no place"},
		"a name that is too long": {with(regular("runs/"+id+"/input/"+strings.Repeat("x/", 3000)+"x", "x")), fault.Input, "no place"},
		"a session's container":   {with(regular("sessions/"+id+"/live/x", "x")), fault.Input, "no place"},
		"a session too deep":      {with(regular("sessions/"+id+"/home/"+strings.Repeat("x/", 100)+"x", "x")), fault.Input, "no place"},
		"a file twice":            {with(regular(output, "x")), fault.Input, "twice"},
		"a file below a file":     {with(regular(output+"/x", "x")), fault.Unavailable, ""},
		"a link out of a unit":    {with(link(version+"src/x", "../../x")), fault.Input, "a link that leads out"},
		"a link among files":      {with(link("runs/"+id+"/output/x", "out.txt")), fault.Input, "a link that leads out"},
		"a file behind a link":    {with(link(version+"x", "."), regular(version+"x/y", "y")), fault.Input, "twice"},
		"a hard link":             {with(entryOf{tar.Header{Typeflag: tar.TypeLink, Name: "runs/" + id + "/input/x", Linkname: "aod.db"}, ""}), fault.Input, "neither"},
		"a device":                {with(entryOf{tar.Header{Typeflag: tar.TypeChar, Name: "runs/" + id + "/input/x"}, ""}), fault.Input, "neither"},
		"another database":        {signed([]entryOf{whole[0], regular(layout.Database, strings.Repeat("garbage", 1000))}), fault.Input, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			bad := filepath.Join(t.TempDir(), "bad")
			if err := os.WriteFile(bad, packed(t, c.entries...), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := backup.Restore(trusted.Context(t), filepath.Join(data, "server"), bad, true)
			if !fault.Is(err, c.kind) || !strings.Contains(fault.Public(err).Msg, c.says) {
				t.Errorf("%s: %v", fault.KindOf(err), err)
			}
			if left, _ := os.ReadDir(data); len(left) != 0 {
				t.Errorf("it has left %v", left)
			}
		})
	}
	t.Run("one that is as it was isn't", func(t *testing.T) {
		home := filepath.Join(t.TempDir(), "server")
		good := filepath.Join(t.TempDir(), "good")
		if err := os.WriteFile(good, packed(t, whole...), 0o600); err != nil {
			t.Fatal(err)
		}
		done, err := backup.Restore(trusted.Context(t), home, good, false)
		if err != nil || done.Report != report || done.Aside != "" {
			t.Fatalf("%+v instead of %+v, %v", done, report, err)
		}
		content, err := os.ReadFile(filepath.Join(home, output))
		if err != nil || string(content) != "content of a" {
			t.Errorf("%q, %v", content, err)
		}
	})
}

// What a stranger calls a backup leads to an error, and to nothing outside of its directory.
func FuzzRestore(f *testing.F) {
	f.Add(packed(f, signed([]entryOf{regular("backup.json", `{"aod_backup": 1}`), regular("runs/01a2044e-1969-7341-b44f-88564b92b4f1/input/x", "x")})...))
	f.Add(packed(f))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		file := filepath.Join(dir, "backup")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(dir, "data")
		if _, err := backup.Restore(trusted.Context(t), filepath.Join(data, "server"), file, false); err == nil {
			t.Error("it was taken for a backup")
		}
		if left, _ := os.ReadDir(data); len(left) != 0 {
			t.Errorf("it has left %v", left)
		}
	})
}
