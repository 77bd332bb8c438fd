package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const (
	anID    = "01a2044e-1969-7341-b44f-88564b92b4f1"
	inUnit  = "units/worker/0123456789abcdef/worker/"
	inHome  = "sessions/" + anID + "/home/"
	inInput = "runs/" + anID + "/input/"
)

// entry is one of a backup.
type entry struct {
	tar.Header
	content string
}

func regular(name, content string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600}, content}
}

func linkTo(name, target string) entry {
	return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}, ""}
}

func head() entry { return regular(headName, `{"aod_backup": 1}`) }

// tarOf is an archive of entries, before it is compressed.
func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
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
	return raw.Bytes()
}

func zipped(t testing.TB, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// signed are entries with the digests that fit them.
func signed(entries ...entry) []entry {
	var lines strings.Builder
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			sum := sha256.Sum256([]byte(e.content))
			lines.WriteString(hex.EncodeToString(sum[:]) + "  " + e.Name + "\n")
		}
	}
	return append(slices.Clone(entries), regular(sumsName, lines.String()))
}

// emptyStore is the file of a store without a run.
var emptyStore = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // of a test
	path := filepath.Join(dir, layout.Database)
	s, err := store.Open(path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// backupOf is a whole backup with a store, and further entries.
func backupOf(t testing.TB, more ...entry) []byte {
	t.Helper()
	raw, err := emptyStore()
	if err != nil {
		t.Fatal(err)
	}
	all := append([]entry{head()}, more...)
	return zipped(t, tarOf(t, signed(append(all, regular(layout.Database, string(raw)))...)...))
}

// restored restores a file of some bytes to a new home.
func restored(t *testing.T, raw []byte) (home string, done Restored, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(t.TempDir(), "data", "server")
	done, err = Restore(trusted.Context(t), home, file, false)
	if left, _ := os.ReadDir(filepath.Dir(home)); err != nil && len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
	return home, done, err
}

func TestAFileThatIsNoWholeBackup(t *testing.T) {
	body := []entry{head(), regular(inInput+"x", "content")}
	whole := zipped(t, tarOf(t, signed(body...)...))
	changedAt := func(at int) []byte {
		raw := slices.Clone(whole)
		raw[(at+len(raw))%len(raw)] ^= 0xff
		return raw
	}
	one := signed(body...)
	for name, c := range map[string]struct {
		raw  []byte
		says string
	}{
		"nothing":                        {nil, "a whole backup"},
		"a text":                         {[]byte("hello"), "a whole backup"},
		"an archive, not compressed":     {tarOf(t, signed(body...)...), "a whole backup"},
		"the half of one":                {whole[:len(whole)/2], ""},
		"all but its last byte":          {whole[:len(whole)-1], "a whole backup"},
		"one with another checksum":      {changedAt(-8), "a whole backup"},
		"compressed nothing":             {zipped(t, nil), "a whole backup"},
		"one with much behind it":        {zipped(t, append(tarOf(t, signed(body...)...), make([]byte, 1<<20)...)), "a whole backup"},
		"one without a head":             {zipped(t, tarOf(t, signed(body[1:]...)...)), "a whole backup"},
		"a head that comes second":       {zipped(t, tarOf(t, signed(body[1], body[0])...)), "a whole backup"},
		"a head that isn't JSON":         {zipped(t, tarOf(t, signed(regular(headName, "{"))...)), "a whole backup"},
		"a head of no format":            {zipped(t, tarOf(t, signed(regular(headName, "{}"))...)), "a whole backup"},
		"a head of a negative format":    {zipped(t, tarOf(t, signed(regular(headName, `{"aod_backup": -1}`))...)), "a whole backup"},
		"a head that is too large":       {zipped(t, tarOf(t, signed(regular(headName, `{"aod_backup": 1}`+strings.Repeat(" ", maxBackupHead)))...)), "a whole backup"},
		"a second head":                  {zipped(t, tarOf(t, signed(head(), head())...)), "no place"},
		"digests of more than it holds":  {zipped(t, tarOf(t, append(slices.Clone(body), regular(sumsName, one[2].content+one[2].content))...)), "a whole backup"},
		"digests of less than it holds":  {zipped(t, tarOf(t, append(slices.Clone(body), regular(sumsName, one[2].content[:len(one[2].content)/2]))...)), "damaged"},
		"digests in another order":       {zipped(t, tarOf(t, body[0], body[1], signed(body[1], body[0])[2])), "damaged"},
		"an entry behind the digests":    {zipped(t, tarOf(t, append(signed(body...), regular(inInput+"y", ""))...)), "a whole backup"},
		"a directory in place of digest": {zipped(t, tarOf(t, append(slices.Clone(body), entry{tar.Header{Typeflag: tar.TypeDir, Name: sumsName + "/"}, ""})...)), "no place"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := restored(t, c.raw)
			if public := fault.Public(err); !fault.Is(err, fault.Input) || !strings.Contains(public.Msg, c.says) || public.Hint == "" {
				t.Errorf("%v (%s)", err, public.Hint)
			}
		})
	}
}

func TestALinkThatNoUnitOrProjectWouldHave(t *testing.T) {
	agent := regular(inUnit+"agent.yaml", "kind: capsule")
	for name, c := range map[string]struct {
		links []entry
		says  string // "": it is restored
	}{
		"beside a file of its unit":        {[]entry{linkTo(inUnit+"a", "agent.yaml")}, ""},
		"up and down in its unit":          {[]entry{linkTo(inUnit+"src/a", "../agent.yaml")}, ""},
		"out of its unit":                  {[]entry{linkTo(inUnit+"a", "../other")}, "leads out"},
		"to an absolute place":             {[]entry{linkTo(inUnit+"a", "/etc/passwd")}, "leads out"},
		"in place of a version":            {[]entry{linkTo("units/worker/0123456789abcdef", "other")}, "leads out"},
		"in place of a unit's directory":   {[]entry{linkTo(strings.TrimSuffix(inUnit, "/"), "src")}, "leads out"},
		"within a project of a run":        {[]entry{linkTo("runs/"+anID+"/base/a", "b")}, ""},
		"out of a project of a run":        {[]entry{linkTo("runs/"+anID+"/base/a", "../input")}, "leads out"},
		"within a project of a session":    {[]entry{linkTo("sessions/"+anID+"/base/a", "b")}, ""},
		"out of a project of a session":    {[]entry{linkTo("sessions/"+anID+"/base/d/a", "../../home")}, "leads out"},
		"in place of a project":            {[]entry{linkTo("runs/"+anID+"/base", "input")}, "leads out"},
		"in place of the store":            {[]entry{linkTo(layout.Database, "x")}, "leads out"},
		"in place of a session's home":     {[]entry{linkTo(strings.TrimSuffix(inHome, "/"), "base")}, "leads out"},
		"anywhere, from a session's home":  {[]entry{linkTo(inHome+"a", "/etc/passwd")}, ""},
		"twice under one name":             {[]entry{linkTo(inHome+"a", "b"), linkTo(inHome+"a", "c")}, "twice"},
		"behind a link to a unit":          {[]entry{linkTo(inHome+"a", "../../../"+inUnit), linkTo(inHome+"a/evil", "/etc/passwd")}, "lies behind a link"},
		"behind a link that comes later":   {[]entry{linkTo(inHome+"a/evil", "/etc/passwd"), linkTo(inHome+"a", "../../../"+inUnit)}, "lies behind a link"},
		"behind a link of the same place":  {[]entry{linkTo(inHome+"a", "."), linkTo(inHome+"a/b/c", "x")}, "lies behind a link"},
		"under a name that ends in a step": {[]entry{linkTo(inHome+"a/", "../../../"+inUnit), linkTo(inHome+"a/evil", "/etc/passwd")}, "lies behind a link"},
	} {
		t.Run(name, func(t *testing.T) {
			home, _, err := restored(t, backupOf(t, append([]entry{agent}, c.links...)...))
			if (err == nil) != (c.says == "") || err != nil && (!fault.Is(err, fault.Input) || !strings.Contains(fault.Public(err).Msg, c.says)) {
				t.Errorf("%v", err)
			}
			if target, err := os.Readlink(filepath.Join(home, filepath.FromSlash(inUnit), "evil")); err == nil {
				t.Errorf("a unit has a link to %s", target)
			}
		})
	}
}
