package servicetest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

// In a golden, what differs from one process to the next has a word in its place: "<id 1>", "<time>",
// and "<later>" for a time that is still to come. A word in a string stands for a part of it; "<time ns>"
// stands for a number.
var (
	anID        = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	aTime       = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	aContainer  = regexp.MustCompile(`\b0{56}[0-9a-f]{8}\b`)
	aModelCall  = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	aCard       = regexp.MustCompile(`cards/[0-9a-f]{64}`) // named by its image
	aTimeWord   = regexp.MustCompile(`<time>|<later>`)
	aNumberedID = regexp.MustCompile(`<(id|container|image|call) \d+>`)
)

// measured are the fields of documents that measure; in a golden they are 1.
var measured = []string{
	"run_ms", "collect_ms", "total_ms", "waited_ms", "ms", "first_ms", "late_ms", "disk_bytes",
}

// unsure are fields that measure and may be missing; a golden has none.
var unsure = []string{"queue_ms", "build_ms", "create_ms", "start_ms"}

// words are what stands for what in the goldens of one home.
type words struct {
	plain map[string]string // longer ones first: home, sources, owner
	seen  map[string]string // words by what they stand for
	count map[string]int
	now   time.Time
}

func newWords(h *servicetest.Harness, plain map[string]string) *words {
	w := &words{plain: plainWords(h), seen: map[string]string{}, count: map[string]int{}}
	maps.Copy(w.plain, plain)
	return w
}

func plainWords(h *servicetest.Harness) map[string]string {
	return map[string]string{h.Settings.Home: "<home>", h.Settings.Sources[0]: "<sources>"}
}

func (w *words) numbered(kind string) func(string) string {
	return func(found string) string {
		if w.seen[found] == "" {
			w.count[kind]++
			w.seen[found] = fmt.Sprintf("<%s %d>", kind, w.count[kind])
		}
		return w.seen[found]
	}
}

// normal puts the words into a snapshot.
func (w *words) normal(t testing.TB, s snapshot) (normal snapshot) {
	t.Helper()
	w.now = time.Now()
	if owner, ok := s.Files["owner"].(string); ok {
		w.plain[owner] = "<owner>"
	}
	for _, image := range s.Images {
		w.plain[image.ID] = w.numbered("image")(image.ID)
	}
	for _, table := range ordered {
		for _, row := range s.Rows[table] {
			w.text(fmt.Sprint(row["id"]))
		}
	}
	raw := servicetest.JSON(w.value("", decoded(t, servicetest.JSON(s))))
	if err := unmarshal(raw, &normal); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(normal.Rows["keys"], func(a, b map[string]any) int { // they stand by their ids
		return strings.Compare(a["value"].(string), b["value"].(string))
	})
	return normal
}

func (w *words) value(key string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		return w.object(value)
	case []any:
		for i := range value {
			value[i] = w.value(key, value[i])
		}
	case string:
		return w.text(value)
	case json.Number:
		return w.number(key, value)
	}
	return value
}

func (w *words) object(object map[string]any) map[string]any {
	normal := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(unsure, key) {
			normal[w.text(key)] = w.value(key, object[key])
		}
	}
	return normal
}

func (w *words) number(key string, number json.Number) any {
	if slices.Contains(measured, key) {
		return json.Number("1")
	}
	if n, err := number.Int64(); err == nil && n > 1e18 {
		return w.time(time.Unix(0, n), " ns")
	}
	return number
}

func (w *words) time(at time.Time, unit string) string {
	if at.After(w.now) {
		return "<later" + unit + ">"
	}
	return "<time" + unit + ">"
}

func (w *words) text(text string) string {
	for _, plain := range slices.Backward(slices.Sorted(maps.Keys(w.plain))) {
		text = strings.ReplaceAll(text, plain, w.plain[plain])
	}
	text = anID.ReplaceAllStringFunc(text, w.numbered("id"))
	text = aCard.ReplaceAllString(text, "cards/<card>")
	text = aModelCall.ReplaceAllStringFunc(text, w.numbered("call"))
	text = aContainer.ReplaceAllStringFunc(text, w.numbered("container"))
	return aTime.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339Nano, found)
		if err != nil {
			return found
		}
		return w.time(at, "")
	})
}

// reading are the words of a golden that is read again, with what they stand for in a new home.
type reading struct {
	plain *strings.Replacer
	known map[string]string
	now   time.Time
}

func newReading(h *servicetest.Harness, plain map[string]string) *reading {
	pairs := []string{"<owner>", "ownerofatest"}
	for _, words := range []map[string]string{plainWords(h), plain} {
		for real, word := range words {
			pairs = append(pairs, word, real)
		}
	}
	return &reading{plain: strings.NewReplacer(pairs...), known: map[string]string{}, now: time.Now().Add(-time.Second)}
}

// real puts something for each word of a snapshot.
func (r *reading) real(t testing.TB, s snapshot) (real snapshot) {
	t.Helper()
	raw := servicetest.JSON(r.value(t, decoded(t, servicetest.JSON(s))))
	if err := unmarshal(raw, &real); err != nil {
		t.Fatal(err)
	}
	return real
}

func (r *reading) value(t testing.TB, value any) any {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		real := map[string]any{}
		for key, inner := range value {
			real[r.text(t, key)] = r.value(t, inner)
		}
		return real
	case []any:
		for i := range value {
			value[i] = r.value(t, value[i])
		}
	case string:
		if value == "<time ns>" || value == "<later ns>" {
			return json.Number(fmt.Sprint(r.time(value).UnixNano()))
		}
		return r.text(t, value)
	}
	return value
}

// time returns another time for each word.
func (r *reading) time(word string) time.Time {
	r.now = r.now.Add(time.Microsecond)
	if strings.HasPrefix(word, "<later") {
		return r.now.Add(time.Hour)
	}
	return r.now
}

func (r *reading) text(t testing.TB, text string) string {
	t.Helper()
	text = aTimeWord.ReplaceAllStringFunc(r.plain.Replace(text), func(word string) string {
		return r.time(word).UTC().Format(time.RFC3339Nano)
	})
	return aNumberedID.ReplaceAllStringFunc(text, func(word string) string {
		if r.known[word] == "" {
			r.known[word] = made(t, word)
		}
		return r.known[word]
	})
}

// made is a new id for a word.
func made(t testing.TB, word string) string {
	t.Helper()
	if number, is := strings.CutPrefix(word, "<image "); is {
		return "sha256:" + strings.Repeat("a", 63) + strings.TrimSuffix(number, ">")
	}
	if number, is := strings.CutPrefix(word, "<container "); is { // one that is gone
		return strings.Repeat("0", 56) + fmt.Sprintf("ff%06s", strings.TrimSuffix(number, ">"))
	}
	if number, is := strings.CutPrefix(word, "<call "); is {
		return strings.Repeat("A", 25) + strings.NewReplacer("1", "B", ">", "").Replace(number)
	}
	id, err := run.NewID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
