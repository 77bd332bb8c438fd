package httpapi

import (
	"archive/tar"
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// part is one of a form; a filename makes it a file.
type part struct{ name, filename, content string }

// form returns a body and its Content-Type header.
func formOf(t testing.TB, parts ...part) (body, header string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name="%s"`, p.name)
		if p.filename != "" {
			disposition += fmt.Sprintf(`; filename="%s"`, p.filename)
		}
		h.Set("Content-Disposition", disposition)
		out, err := w.CreatePart(h)
		must(t, err)
		_, err = out.Write([]byte(p.content))
		must(t, err)
	}
	must(t, w.Close())
	return b.String(), "Content-Type: " + w.FormDataContentType()
}

func TestAFormBringsFilesInAnyOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	body, header := formOf(t, part{"doc", "../a/b.txt", "the content"}, part{"input", "", `{"do":"read"}`}, part{"timeout", "", "2m"}, part{"unit", "", "actor"})
	record := decode[api.Record](t, s.do("POST", "/v1/runs?wait=3m", body, header).wants(t, 200))
	if got := string(record.Output); got != `{"got":"the content","n":1}` {
		t.Errorf("output %s", got)
	}
	s.spoolIsEmpty(t)
}

func TestAListTakesSeveralFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	body, header := formOf(t, part{"unit", "", "actor"}, part{"docs", "a", "1"}, part{"docs", "a", "2"})
	record := decode[api.Record](t, s.do("POST", "/v1/runs?wait=3m", body, header).wants(t, 200))
	if !strings.Contains(string(record.Input), `"docs":["a","2/a"]`) {
		t.Errorf("input %s", record.Input)
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.UploadBytes, o.PayloadBytes = 256<<10, 1<<10 })
	unit := part{"unit", "", "actor"}
	many := []part{unit}
	for range 1000 {
		many = append(many, part{"docs", "f", "x"})
	}
	cases := []struct {
		name   string
		status int
		parts  []part
	}{
		{"a thousand parts", 413, many},
		{"a file over the limit", 413, []part{unit, {"doc", "f", strings.Repeat("x", 300<<10)}}},
		{"files over the limit together", 413, []part{unit, {"docs", "f", strings.Repeat("x", 150<<10)}, {"docs", "g", strings.Repeat("x", 150<<10)}}},
		{"an input over the limit", 413, []part{unit, {"input", "", `{"say":"` + strings.Repeat("x", 2<<10) + `"}`}}},
		{"a unit's name without end", 413, []part{{"unit", "", strings.Repeat("u", 1<<10)}}},
		{"no unit", 400, []part{{"doc", "f", "x"}}},
		{"two units", 400, []part{unit, unit}},
		{"a part that is not known", 400, []part{unit, {"doc", "", "x"}}},
		{"a part without a name", 400, []part{unit, {"", "f", "x"}}},
		{"a name without end", 400, []part{unit, {strings.Repeat("f", 300), "f", "x"}}},
		{"a backslash in a file's name", 422, []part{unit, {"doc", `a\\b`, "x"}}},
		{"a file's name that is two dots", 422, []part{unit, {"doc", "..", "x"}}},
		{"a file for no field", 422, []part{unit, {"nofield", "f", "x"}}},
		{"a file for a path of fields", 422, []part{unit, {"../../doc", "f", "x"}}},
		{"two files for one field", 422, []part{unit, {"doc", "f", "x"}, {"doc", "g", "x"}}},
		{"an input that isn't JSON", 422, []part{unit, {"input", "", "{"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body, header := formOf(t, c.parts...)
			s.do("POST", "/v1/runs", body, header).wants(t, c.status)
			s.spoolIsEmpty(t)
		})
	}
	body, header := formOf(t, unit, part{"doc", "f", "x"})
	for _, end := range []int{len(body) / 2, len(body) - 10, strings.Index(body, "filename") + 20} {
		s.do("POST", "/v1/runs", body[:end], header).wants(t, 400)
	}
	s.do("POST", "/v1/runs", body, "Content-Type: multipart/form-data").wants(t, 400)
	s.do("POST", "/v1/runs", body, "Content-Type: application/x-www-form-urlencoded").wants(t, 400)
	s.spoolIsEmpty(t)
}

func TestAnUploadThatBreaksOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	status, body := s.raw("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"5a\r\n--b\r\nContent-Disposition: form-data; name=\"doc\"; filename=\"f\"\r\n\r\n0123456789012345678901234567890\r\nXX\r\n")
	if status != http.StatusBadRequest {
		t.Errorf("%d %s", status, body)
	}
	s.spoolIsEmpty(t)
}

// spoolIsEmpty proves that nothing is left of what was received.
func (s *server) spoolIsEmpty(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.home, "spool"))
	must(t, err)
	for _, e := range entries {
		t.Errorf("%s is left in the spool", e.Name())
	}
}

// archive is the actor under another name, as a tar.
func archive(t *testing.T, name string) string {
	t.Helper()
	files := map[string]string{}
	for file, content := range unitFiles {
		files[file] = strings.Replace(content, "name: actor", "name: "+name, 1)
	}
	return archiveOf(t, files)
}

func archiveOf(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for file, content := range files {
		must(t, w.WriteHeader(&tar.Header{Name: file, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(content))
		must(t, err)
	}
	must(t, w.Close())
	return b.String()
}

func TestUploadingAUnit(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.UploadBytes = 64 << 10 })
	tape := archive(t, "mine")
	const header = "Content-Type: application/x-tar"
	if a := s.do("PUT", "/v1/units/mine", tape, header).wants(t, 201); a.Header.Get("Location") != "/v1/units/mine" {
		t.Errorf("Location %q", a.Header.Get("Location"))
	}
	s.do("PUT", "/v1/units/mine", tape, header).wants(t, 200)
	s.do("POST", "/v1/runs?wait=3m", `{"unit":"mine"}`).wants(t, 200)
	s.do("PUT", "/v1/units/mine", tape, "Content-Type: text/plain").wants(t, 400)
	s.do("PUT", "/v1/units/..%2f..%2fmine", tape, header).wants(t, 422)
	s.do("PUT", "/v1/units/mine", strings.Repeat("x", 80<<10), header)
	s.do("PUT", "/v1/units/mine", tape+strings.Repeat("\x00", 80<<10), header).wants(t, 413)
	if a := s.do("PUT", "/v1/units/mine", "no tar", header); a.StatusCode < 400 || a.StatusCode > 499 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func FuzzSubmit(f *testing.F) {
	form, header := formOf(f, part{"unit", "", "u"}, part{"doc", "f", "x"}, part{"input", "", "{}"})
	f.Add(strings.TrimPrefix(header, "Content-Type: "), form)
	f.Add("application/json", `{"unit":"u","input":{"a":[1,2,{"b":null}]},"timeout":"3s"}`)
	f.Add("application/json; charset=utf-8", `{"unit":"u","unit":"v"}`)
	f.Add("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"unit\"\r\n\r\nx\r\n--b--")
	s := newServer(f, func(o *Options) { o.UploadBytes, o.PayloadBytes = 4<<10, 1<<10 })
	fuzzbound.Run(f, func(t *testing.T, contentType, body string) {
		if strings.ContainsAny(contentType, "\r\n\x00") {
			return
		}
		r := request("POST", "/v1/runs", body)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", contentType)
		w := record(s.api.Handler(), r)
		if w.Code < 400 || w.Code >= 500 { // there is no unit u
			t.Errorf("%d %s\n%s", w.Code, w.Body, s.log)
		}
		s.spoolIsEmpty(t)
	})
}
