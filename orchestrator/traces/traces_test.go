package traces

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
)

func TestLinesAboutARunNameItsTrace(t *testing.T) {
	runs, written := New(), &bytes.Buffer{}
	log := runs.Logger(slog.New(slog.NewJSONHandler(written, nil)))
	runs.Begin("r", "t")
	runs.Begin("untraced", "")
	runs.Begin("over", "t2")
	runs.End("over")
	for _, c := range []struct {
		name string
		say  func()
		want any
	}{
		{"a run of a trace", func() { log.Info("m", "run", "r") }, "t"},
		{"behind other attributes", func() { log.Info("m", "bytes", 3, "run", "r", "n", 1) }, "t"},
		{"a run without", func() { log.Info("m", "run", "untraced") }, nil},
		{"a run that is over", func() { log.Info("m", "run", "over") }, nil},
		{"an unknown run", func() { log.Info("m", "run", "other") }, nil},
		{"no run", func() { log.Info("m", "unit", "r") }, nil},
		{"a line with a trace of its own", func() { log.Info("m", "trace", "own", "run", "r") }, "own"},
		{"a logger of a run", func() { log.With("run", "r").Info("m") }, "t"},
		{"a logger of something else", func() { log.With("unit", "u").Info("m", "run", "r") }, "t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			written.Reset()
			c.say()
			var line map[string]any
			if err := json.Unmarshal(written.Bytes(), &line); err != nil || line["trace"] != c.want {
				t.Errorf("%s: %v", written, err)
			}
		})
	}
	var none *Runs
	none.Begin("r", "t")
	none.End("r")
}
