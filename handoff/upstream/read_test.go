package upstream

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableIsReadWithWhatItNeedntSay(t *testing.T) {
	got, findings := ReadFile("/etc/up.yaml", []byte(`
upstreams:
  weather:
    url: https://api.example.com/v1/
    secret: weather-key
    header: x-api-key
    methods: [GET]
    paths: [/forecast]
    ca_file: roots.pem
  local: {url: "http://127.0.0.1:8080", secret: k}
  open: {url: "http://nas", plain_http: true}
`))
	want := Table{
		"weather": {URL: "https://api.example.com/v1", Secret: "weather-key", Header: "X-Api-Key", Methods: []string{"GET"}, Paths: []string{"/forecast"}, CAFile: "/etc/roots.pem"},
		"local":   {URL: "http://127.0.0.1:8080", Secret: "k", Header: "Authorization", Scheme: "Bearer", Methods: usual},
		"open":    {URL: "http://nas", PlainHTTP: true, Header: "Authorization", Scheme: "Bearer", Methods: usual},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(findings) > 0 {
		t.Errorf("%v\n%s", findings, diff)
	}
}

func TestWhatIsWrongInATableHasItsLine(t *testing.T) {
	for row, says := range map[string]string{
		"{}":                                           "a: it has no url",
		"{url: ftp://h}":                               "a.url: it isn't an address",
		"{url: 'https://u:p@h'}":                       "a.url: it holds more than",
		"{url: 'https://h?k=1'}":                       "a.url: it holds more than",
		"{url: 'https://h/a/../b'}":                    "a.url: its path isn't plain",
		"{url: 'http://h'}":                            "unencrypted",
		"{url: 'https://h', head: x}":                  "did you mean header",
		"{url: 'https://h', header: X}":                "no secret",
		"{url: 'https://h', secret: k, header: 'a b'}": "a.header",
		"{url: 'https://h', secret: k, header: Host}":  "a.header: Host",
		"{url: 'https://h', secret: ../k}":             "a.secret",
		"{url: 'https://h', methods: [CONNECT]}":       "a.methods.0",
		"{url: 'https://h', methods: GET}":             "a.methods",
		"{url: 'https://h', paths: [v1]}":              "a.paths.0",
		"{url: 'https://h', paths: ['/a/../b']}":       "a.paths.0",
		"{url: 'http://127.0.0.1', ca_file: x}":        "ca_file",
		"{url: 'https://h', plain_http: 'yes'}":        "a.plain_http",
		"[x]":                                          "isn't a map",
	} {
		_, findings := ReadFile("up.yaml", []byte("upstreams:\n  a: "+row+"\n"))
		if len(findings) == 0 || findings[0].File != "up.yaml" || findings[0].Line != 2 || findings[0].Hint == "" || !strings.Contains(findings[0].String(), says) {
			t.Errorf("%s: %v", row, findings)
		}
	}
	if _, findings := ReadFile("up.yaml", []byte("upstreams: {A: {url: 'https://h'}}\n")); len(findings) != 1 {
		t.Errorf("%v", findings)
	}
}

func TestACertificateIsHeldAgainstRootsOfAFile(t *testing.T) {
	service := httptest.NewTLSServer(http.HandlerFunc(ok))
	defer service.Close()
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{file: 200, "": 502} {
		b := newBench(t, ok, func(u *Upstream, _ *Options) { u.URL, u.CAFile = service.URL, name })
		if response := b.do("GET", "/upstream/svc", nil, nil); response.StatusCode != want {
			t.Errorf("with %q: %d", name, response.StatusCode)
		}
	}
	if _, err := New(Table{"a": {URL: "https://h", CAFile: file + "x"}}, Options{}); err == nil || !strings.Contains(err.Error(), "upstreams.a.ca_file") {
		t.Error(err)
	}
}

func TestKeysThatCantBeUsedAreFound(t *testing.T) {
	u, err := New(Table{"b": {URL: "https://h", Secret: "k"}, "a": {URL: "https://h"}}, Options{Key: noKey})
	if err != nil {
		t.Fatal(err)
	}
	if found := u.CheckKeys(u.Names()); len(found) != 1 || !strings.Contains(found[0].Message, "upstreams.b") || found[0].Hint == "" {
		t.Errorf("%v", found)
	}
}
