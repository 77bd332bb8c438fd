package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetadataOnTheCommandLine(t *testing.T) {
	alone(t)
	t.Run("aod ps looks for it", func(t *testing.T) {
		s := newFakeServer(t)
		code, _, stderr := command(t, t.Context(), "ps", "-a", "--meta", "user_id=a b:c=d", "--meta", "mode=LIVE", "--server", s.URL)
		if code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
		if requests, _ := s.seen(); requests[0] != "GET /v1/runs?limit=51&metadata=mode%3ALIVE&metadata=user_id%3Aa+b%3Ac%3Dd" {
			t.Errorf("asked for %s", requests[0])
		}
	})
	t.Run("aod run sends it", func(t *testing.T) {
		for _, more := range [][]string{nil, {"--file", "doc=in.txt"}} {
			s := newFakeServer(t)
			t.Chdir(t.TempDir())
			write(t, "x", "in.txt")
			args := append([]string{"run", "hello", "--meta", "user_id=ada", "--server", s.URL}, more...)
			if code, _, stderr := command(t, t.Context(), args...); code != 0 {
				t.Fatalf("code %d: %s", code, stderr)
			}
			if _, bodies := s.seen(); !strings.Contains(strings.Join(bodies, ""), `{"user_id":"ada"}`) {
				t.Errorf("sent %s", bodies)
			}
		}
	})
	t.Run("a run shows it", func(t *testing.T) {
		s := newFakeServer(t)
		s.record.Metadata = map[string]string{"user_id": "ada", "mode": "LI\x1bVE"}
		_, stdout, _ := command(t, t.Context(), "runs", fakeID, "--server", s.URL)
		var got []string
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "metadata") {
				got = append(got, strings.Fields(line)[1])
			}
		}
		if diff := cmp.Diff([]string{"mode=LI\uFFFDVE", "user_id=ada"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what is wrong is told without the value", func(t *testing.T) {
		s := newFakeServer(t)
		for _, meta := range [][]string{{"secret"}, {"A=secret"}, {"a="}, {"a=secret", "a=secret"}, {"a=secret\n"}} {
			for _, args := range [][]string{{"ps"}, {"run", "hello"}} {
				for _, m := range meta {
					args = append(args, "--meta", m)
				}
				code, _, stderr := command(t, t.Context(), append(args, "--server", s.URL)...)
				if code != 2 || strings.Contains(stderr, "secret") {
					t.Errorf("%q: code %d, %s", args, code, stderr)
				}
			}
		}
		if code, _, stderr := command(t, t.Context(), "run", "hello", "--meta", "a=b"); code != 2 || !strings.Contains(stderr, "--server") {
			t.Errorf("without a server: code %d, %s", code, stderr)
		}
	})
}
