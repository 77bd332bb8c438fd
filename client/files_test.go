package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

var content = bytes.Repeat([]byte("0123456789"), 100)

func fileOf(name string, content []byte) api.File {
	sum := sha256.Sum256(content)
	return api.File{Name: name, SizeBytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

func TestFileIsHeldAgainstItsRecord(t *testing.T) {
	file := fileOf("dir/a b.txt", content)
	cases := []struct {
		name, want string
		change     func(*api.File)
	}{
		{name: "as it is", change: func(*api.File) {}},
		{name: "too long", change: func(f *api.File) { f.SizeBytes-- }, want: "more than the 999 bytes"},
		{name: "too short", change: func(f *api.File) { f.SizeBytes++ }, want: "it has 1000 bytes"},
		{name: "another content", change: func(f *api.File) { f.SHA256 = strings.Repeat("0", 64) }, want: "SHA-256"},
		{name: "no digest", change: func(f *api.File) { f.SHA256 = "" }, want: "SHA-256"},
		{name: "a size below nothing", change: func(f *api.File) { f.SizeBytes = -1 }, want: "more than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if want := "/v1/runs/" + runID + "/files/dir/a%20b.txt"; r.URL.EscapedPath() != want {
					t.Errorf("asked for %s, want %s", r.URL.EscapedPath(), want)
				}
				_, _ = w.Write(content)
			})
			said := file
			c.change(&said)
			var got bytes.Buffer
			err := client.Files.Get(t.Context(), runID, said, &got)
			if c.want != "" {
				wantFault(t, err, fault.Internal, c.want)
				return
			}
			if err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes, error %v", got.Len(), err)
			}
		})
	}
}

func TestAFileGoesOnWhereTheConnectionWasLost(t *testing.T) {
	file := fileOf("x", content)
	for _, ranges := range []bool{true, false} {
		t.Run("with ranges: "+strconv.FormatBool(ranges), func(t *testing.T) {
			var asked []string
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Header.Get("Range")+r.Header.Get("If-Range"))
				w.Header().Set("ETag", `"`+file.SHA256+`"`)
				if len(asked) < 6 {
					w = &cutting{ResponseWriter: w, left: 150 * len(asked)}
				}
				if !ranges {
					w.Header().Set("Content-Length", "1000")
					_, _ = w.Write(content)
					return
				}
				http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(content))
			})
			var got bytes.Buffer
			if err := c.Files.Get(t.Context(), runID, file, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes, error %v", got.Len(), err)
			}
			if len(asked) < 3 || asked[0] != "" || asked[1] != `bytes=150-"`+file.SHA256+`"` {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}

// cutting ends the connection after some bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	_, _ = c.ResponseWriter.Write(p[:n])
	if n < len(p) {
		cut(c.ResponseWriter)
	}
	return n, nil
}

func (c *cutting) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

func TestAnotherPartThanTheOneAskedFor(t *testing.T) {
	var tries int
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries == 1 {
			_, _ = (&cutting{ResponseWriter: w, left: 100}).Write(content)
		}
		w.Header().Set("Content-Range", "bytes 0-999/1000")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(content)
	})
	wantFault(t, c.Files.Get(t.Context(), runID, fileOf("x", content), io.Discard), fault.Internal, "another part")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAFullDiskIsNotTheServersFault(t *testing.T) {
	var tries int
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		_, _ = w.Write(content)
	})
	wantFault(t, c.Files.Get(t.Context(), runID, fileOf("x", content), fullDisk{}), fault.Unavailable, "is the disk full?")
	if tries != 1 {
		t.Errorf("asked %d times", tries)
	}
}

func TestDownload(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	})
	dir := filepath.Join(t.TempDir(), "new", "out")
	if got, err := c.Files.Download(t.Context(), runID, nil, dir); err != nil || got != nil {
		t.Fatalf("files %v, error %v", got, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("a directory was made for nothing")
	}
	pointer := "/x"
	wanted := []api.File{fileOf("a.txt", []byte("a.txt")), fileOf("deep/er/b", []byte("b"))}
	wanted[0].Pointer = &pointer
	got, err := c.Files.Download(t.Context(), runID, wanted, dir)
	if err != nil {
		t.Fatal(err)
	}
	wanted[0].Path, wanted[1].Path = filepath.Join(dir, "a.txt"), filepath.Join(dir, "deep", "er", "b")
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
	for _, f := range got {
		if raw, err := os.ReadFile(f.Path); err != nil || string(raw) != filepath.Base(f.Name) {
			t.Errorf("%s: %q, %v", f.Path, raw, err)
		}
	}
}

func TestDownloadLeavesItsDirectoryForNoName(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "../x", "a/../../x", "/etc/passwd", "/io/input/x", `..\x`, "a\x00b", "a/", "x\x1b[2J", strings.Repeat("a/", 20) + "a",
	} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
			above := t.TempDir()
			_, err := c.Files.Download(t.Context(), runID, []api.File{fileOf("good", content), fileOf(name, content)}, filepath.Join(above, "out"))
			wantFault(t, err, fault.Unavailable, "is it a server that you trust?")
			if entries, _ := os.ReadDir(above); len(entries) > 0 {
				t.Errorf("left %v", entries)
			}
		})
	}
}

func TestDownloadFollowsNoLinkOut(t *testing.T) {
	above := t.TempDir()
	out, target := filepath.Join(above, "out"), filepath.Join(above, "precious")
	for _, dir := range []string{out, target} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	victim := filepath.Join(target, "file")
	if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), os.Symlink(target, filepath.Join(out, "dir")), os.Symlink(victim, filepath.Join(out, "link"))); err != nil {
		t.Fatal(err)
	}
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	_, err := c.Files.Download(t.Context(), runID, []api.File{fileOf("dir/file", content)}, out)
	wantFault(t, err, fault.Unavailable, "can't be written")
	got, err := c.Files.Download(t.Context(), runID, []api.File{fileOf("link", content)}, out)
	if err != nil || len(got) != 1 {
		t.Fatalf("files %v, error %v", got, err)
	}
	if raw, err := os.ReadFile(victim); err != nil || string(raw) != "mine" {
		t.Errorf("the victim holds %q, %v", raw, err)
	}
}

func TestNothingHalfIsLeftOfADownload(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "good") {
			_, _ = w.Write(content)
			return
		}
		_, _ = w.Write(content[:10])
	})
	out := t.TempDir()
	got, err := c.Files.Download(t.Context(), runID, []api.File{fileOf("good", content), fileOf("bad", content)}, out)
	wantFault(t, err, fault.Internal, "it has 10 bytes")
	entries, _ := os.ReadDir(out)
	if len(entries) != 1 || entries[0].Name() != "good" || len(got) != 1 {
		t.Errorf("left %v, told of %v", entries, got)
	}
}
