package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

func TestTheDoctorTellsHowTheServerIsReached(t *testing.T) {
	until := func(left time.Duration) *time.Time {
		at := time.Now().Add(left)
		return &at
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		now    cli.Serving
		health health
		says   string
	}{
		"for this machine":          {cli.Serving{Listens: []string{"127.0.0.1:7070"}}, fine, ""},
		"for others":                {cli.Serving{Listens: []string{"127.0.0.1:7070", "[::]:7071"}}, worry, "[::]:7071 without TLS"},
		"with TLS":                  {cli.Serving{Listens: []string{"[::]:7070"}, Until: until(60 * day)}, fine, "certificate until"},
		"with TLS that ends":        {cli.Serving{Until: until(10 * day)}, worry, "certificate until"},
		"with TLS that has ended":   {cli.Serving{Until: until(-day)}, broken, "certificate until"},
		"with a new one that is no": {cli.Serving{Until: until(60 * day), Problem: "odd", Hint: "mend"}, worry, "can't be used: odd"},
	} {
		got := judgeServer("https://x", c.now)
		if got.Health != c.health || !strings.Contains(got.Found, c.says) || (got.Fix == "") != (c.health == fine) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
