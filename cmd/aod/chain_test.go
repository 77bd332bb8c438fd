package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// linkScript calls itself n-1 times, one below the other, and works before and after that.
// Its output counts the links, its log and its file tell of each start of the program.
const linkScript = `n=$(number n) ticks=$(number ticks) tick=0
work() {
	for ((i = 1; i <= ticks; i++)); do
		sleep 0.1
		echo "tick $((++tick))"
	done
}
echo started
printf x >> /io/output/starts
work
links=1
if (( n > 1 )); then
	persist POST /handoff "call-$n" "{\"target\":\"link\",\"args\":{\"n\":$((n - 1)),\"ticks\":$ticks}}"
	[[ $status == 200 && $answer =~ \"links\":([0-9]+) ]] || { echo "answer $status $answer"; exit 1; }
	links=$((1 + BASH_REMATCH[1]))
fi
work
echo "{\"links\":$links}" > /io/output.json
`

const chainLinks = 4

func killChain(t *testing.T, s *server, kills int) {
	t.Helper()
	dice := dice(t)
	s.addCaller("link", linkScript)
	s.start()
	begin := func() string { return s.call("link", fmt.Sprintf(`{"n":%d,"ticks":%d}`, chainLinks, 2*kills)) }
	root := begin()
	s.awaitLine(root, "started")
	began := time.Now()
	met := map[int]int{} // how many kills met a chain of so many links
	for left := kills; left > 0; left-- {
		time.Sleep(50*time.Millisecond + time.Duration(dice.Int64N(int64(1200*time.Millisecond))))
		links := len(s.chain(root))
		if left == 1 && met[0]+met[1] == kills-1 { // the last one is to meet a link that waits
			testkit.Eventually(t, "a link that waits for another one", func() bool {
				if s.isOver(root) { // it was faster than the kills
					s.judgeChain(root)
					root = begin()
				}
				links = len(s.chain(root))
				return links > 1
			})
		}
		met[links]++
		s.kill()
		s.start()
	}
	s.judgeChain(root)
	if met[0]+met[1] == kills {
		t.Error("no kill met a link that waited for another one")
	}
	t.Logf("the chain took %v; kills by how many links it had then: %v", time.Since(began).Round(time.Millisecond), met)
}

// chain returns the runs of a chain that goes on; of one that has ended, none.
func (s *server) chain(root string) (ids []string) {
	if record, err := s.client.Runs.Get(context.Background(), root); err != nil || record.Outcome != "" {
		return nil
	}
	return s.links(root)
}

// links returns a run and all that are below it.
func (s *server) links(root string) []string {
	ids := []string{root}
	for _, callee := range s.callees(root) {
		ids = append(ids, s.links(callee.ID)...)
	}
	return ids
}

// judgeChain waits for a chain's end. Each of its links must have run once, and there must
// be no other.
func (s *server) judgeChain(root string) {
	s.t.Helper()
	if record := s.await(root); string(record.Output) != fmt.Sprintf(`{"links":%d}`, chainLinks) {
		s.t.Errorf("the chain came to %s, with output %s: %+v", record.Outcome, record.Output, record.Error)
	}
	links := s.links(root)
	if len(links) != chainLinks {
		s.t.Errorf("the chain has %d links: %q", len(links), links)
	}
	for _, id := range links {
		if err := s.judgeLink(s.await(id)); err != nil {
			s.t.Errorf("link %s: %v", id, err)
		}
	}
	const done = `✓ link \S+ 1 file\n`
	want := regexp.MustCompile(`^` + done + `└─ ` + done + `   └─ ` + done + `      └─ ` + done + `$`)
	if tree := s.aod("runs", root, "--tree"); !want.MatchString(tree) {
		s.t.Errorf("it is drawn so:\n%s", tree)
	}
}

func (s *server) judgeLink(record api.Record) error {
	starts, err := s.startsOf(record.ID)
	file, unread := s.file(record, "starts")
	switch err := errors.Join(err, unread); {
	case err != nil:
		return err
	case record.Outcome != api.Success || record.Retries != 0:
		return fmt.Errorf("it is %s after %d retries: %+v", record.Outcome, record.Retries, record.Error)
	case starts != 1 || string(file) != "x":
		return fmt.Errorf("its program was started %d times by its log, and wrote %q", starts, file)
	}
	return nil
}
