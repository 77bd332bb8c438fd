package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestSubmit(t *testing.T) {
	var got, key string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, key = r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Type")+" "+string(raw), r.Header.Get("Idempotency-Key")
		w.WriteHeader(http.StatusAccepted)
		writeRecord(w, "idle")
	})
	record, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello", Input: json.RawMessage(`{"n":1e3}`), Timeout: 90 * time.Second})
	if err != nil || record.ID != runID || record.State != api.Idle {
		t.Fatalf("record %+v, error %v", record, err)
	}
	if want := `POST /v1/runs application/json {"unit":"hello","input":{"n":1e3},"timeout":"1m30s"}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if _, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello", Wait: time.Second}); err != nil || !strings.HasPrefix(got, "POST /v1/runs?wait=1s ") {
		t.Errorf("with a wait it sends %s, %v", got, err)
	}
	if len(key) < 20 {
		t.Errorf("the key is %q", key)
	}
}

func TestMetadataTravels(t *testing.T) {
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got = string(raw)
		w.WriteHeader(http.StatusAccepted)
		writeRecord(w, "idle")
	})
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	sub := Submission{Unit: "hello", Metadata: map[string]string{"user_id": "ada"}}
	for _, files := range [][]InputFile{nil, {{Field: "doc", Path: path}}} {
		sub.Files = files
		if _, err := c.Runs.Submit(t.Context(), sub); err != nil || !strings.Contains(got, `{"user_id":"ada"}`) || !strings.Contains(got, `metadata"`) {
			t.Errorf("%v, sent %s", err, got)
		}
	}
}

func TestASubmissionThatWasLostIsTheSameOneAgain(t *testing.T) {
	var keys []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) < 3 {
			cut(w)
		}
		writeRecord(w, "idle")
	})
	if _, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello"}); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("keys %q", keys)
	}
	first := keys[0]
	if _, err := c.Runs.Rerun(t.Context(), runID, api.Rerun{}); err != nil {
		t.Fatal(err)
	}
	if again := keys[3]; again == "" || again == first {
		t.Errorf("another submission has the key %q", again)
	}
}

func TestFilesAreStreamedAsAForm(t *testing.T) {
	dir := t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	paths := []string{filepath.Join(dir, `odd "name".csv`), filepath.Join(dir, "empty")}
	for i, content := range [][]byte{large, nil} {
		if err := os.WriteFile(paths[i], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type part struct {
		Name, File string
		Bytes      int
	}
	var got []part
	tries := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			cut(w)
		}
		if r.ContentLength <= int64(len(large)) {
			t.Errorf("the length was said to be %d", r.ContentLength)
		}
		form, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		for {
			p, err := form.NextPart()
			if err != nil {
				break
			}
			n, _ := io.Copy(io.Discard, p)
			got = append(got, part{p.FormName(), p.FileName(), int(n)})
		}
		writeRecord(w, "idle")
	})
	_, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello", Timeout: time.Second, Files: []InputFile{
		{Field: "data.table", Path: paths[0]}, {Field: "list", Path: paths[1]}, {Field: "list", Path: paths[0]},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []part{
		{"unit", "", 5},
		{"input", "", 2},
		{"timeout", "", 2},
		{"data.table", `odd "name".csv`, len(large)},
		{"list", "empty", 0},
		{"list", `odd "name".csv`, len(large)},
	}
	if diff := cmp.Diff(want, got); diff != "" || tries != 2 {
		t.Errorf("after %d tries: %s", tries, diff)
	}
}

func TestARefusedUploadIsNotSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	c := serve(t, answer(403, "application/problem+json", `{"code":"forbidden","detail":"not you"}`))
	var sent atomic.Int64
	transport := c.conn.http.Transport.(*http.Transport)
	transport.ExpectContinueTimeout = testkit.Patience // the server may take long to refuse
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return counting{conn, &sent}, err
	}
	_, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello", Files: []InputFile{{Field: "f", Path: path}}})
	wantFault(t, err, fault.Forbidden, "not you")
	if n := sent.Load(); n > 4<<10 {
		t.Errorf("%d bytes were sent all the same", n)
	}
}

// counting is a connection that counts what is written to it.
type counting struct {
	net.Conn
	sent *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.Conn.Write(p)
}

func TestFilesThatCannotBeSent(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := serve(t, func(_ http.ResponseWriter, _ *http.Request) { t.Error("something was sent") })
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "cannot read the file", dir: "not a regular file", fifo: "not a regular file",
	} {
		_, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello", Files: []InputFile{{Field: "f", Path: path}}})
		wantFault(t, err, fault.Input, want)
	}
}

func TestAFileThatShrinksIsNotSentAsIfItWereWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var tries int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tries++
		_, _ = r.Body.Read(make([]byte, 1))
		if err := os.Truncate(path, 10); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		writeRecord(w, "idle")
	})
	_, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello", Files: []InputFile{{Field: "f", Path: path}}})
	wantFault(t, err, fault.Input, "became shorter")
	if tries != 1 {
		t.Errorf("sent %d times", tries)
	}
}

func TestPutUnit(t *testing.T) {
	status := http.StatusCreated
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + string(raw)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"name":"hello","version":"abc"}`)
	})
	for _, created := range []bool{true, false} {
		info, isNew, err := c.Units.Put(t.Context(), "hello", strings.NewReader("a tar"))
		if err != nil || isNew != created || info.Version != "abc" {
			t.Errorf("info %+v, new %v, error %v", info, isNew, err)
		}
		if got != "PUT /v1/units/hello a tar" {
			t.Errorf("sent %s", got)
		}
		status = http.StatusOK
	}
}

func TestWhatIsWrongWithAnArchiveIsTheError(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	reader, writer := io.Pipe()
	go func() {
		_, _ = writer.Write([]byte("begin"))
		_ = writer.CloseWithError(fault.New(fault.Capsule, "it changed while it was read"))
	}()
	_, _, err := c.Units.Put(t.Context(), "hello", reader)
	wantFault(t, err, fault.Capsule, "it changed")
}

func TestPruneIsAskedOnce(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		asked = append(asked, string(raw))
		if len(asked) > 1 {
			cut(w)
		}
		_, _ = io.WriteString(w, `{"runs":2,"bytes":10,"dry_run":true}`)
	})
	report, err := c.Prune(t.Context(), api.PruneOptions{OlderThan: time.Hour, MaxBytes: 5, DryRun: true})
	if want := (api.PruneReport{Runs: 2, Bytes: 10, DryRun: true}); err != nil || report != want {
		t.Errorf("report %+v, error %v", report, err)
	}
	_, err = c.Prune(t.Context(), api.PruneOptions{})
	wantFault(t, err, fault.Unavailable, "does not answer")
	if diff := cmp.Diff([]string{`{"older_than":"1h0m0s","max_bytes":5,"dry_run":true}`, `{"dry_run":false}`}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestSilenceEndsACall(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errSilent)
	defer cancel()
	_, err := c.Runs.Get(ctx, runID)
	wantFault(t, err, fault.Unavailable, "does not answer")
}
