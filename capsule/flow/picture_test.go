package flow

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

const drawn = `{start: read, nodes: {
  read: {branches: {texts: {map: "${{ input.scans }}", as: scan, run: ocr, with: {s: "${{ scan }}"}}, tables: {run: csv}}, next: {default: check, error: ask}},
  check: {action: '${{ visits.check > 1 ? "good" : "again" }}', max_visits: 3, next: {good: deep, again: read, exhausted: end}},
  ask: {ask: 'Publish "${{ input.scans }}" <b>& all #1</b>?', timeout: 1h, next: {approve: deep, reject: end, timeout: rest}},
  rest: {wait: 1h, next: deep},
  deep: {map: "${{ [1, 2] }}", flow: {start: plan, nodes: {plan: {run: "${{ 'a' + 'very'+'long'+'expression'+'that'+'is'+'cut'+'off'+'at'+'its'+'end' }}", units: [b], next: write}, write: {}}}}}}`

var drawnSteps = []Step{
	{Address: "read/texts[0]", Try: 1, State: Done},
	{Address: "read/texts[1]", Try: 1, State: Failed, Until: noon},
	{Address: "read/texts[1]", Try: 2, State: Failed},
	{Address: "read/texts", Try: 1, State: Done},
	{Address: "read/tables", Try: 1, State: Skipped},
	{Address: "read", Try: 1, State: Done},
	{Address: "check", Try: 1, State: Done},
	{Address: "check#2", Try: 1, State: Done},
	{Address: "deep[0]/plan", Try: 1, State: Done},
	{Address: "deep[1]/plan", Try: 1, State: Open},
}

func TestPictures(t *testing.T) {
	f := flowOf(t, drawn)
	for name, draw := range map[string]func([]Step) string{"tree.txt": f.Tree, "mermaid.mmd": f.Mermaid} {
		for kind, steps := range map[string][]Step{"flow": nil, "run": drawnSteps} {
			file := filepath.Join("testdata", "pictures", kind+"."+name)
			got := draw(steps)
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", file, err, diff)
			}
			if got != draw(steps) {
				t.Errorf("%s: another picture at another time", file)
			}
		}
	}
}

func TestTextsOfAFlowStayTextsInPictures(t *testing.T) {
	f := flowOf(t, `{nodes: {a: {ask: "x\"] --> y; <script> \\\n end \\\" %%{init}%% `+"`"+`"}}}`)
	if got := f.Mermaid(nil); strings.Contains(got, `x"`) || strings.Contains(got, "<s") || strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}
