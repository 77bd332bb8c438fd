package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// thinkerScript asks a model four times, and each of them until there is an answer.
const thinkerScript = `for ((i = 1; i <= 4; i++)); do
	persist POST /v1/chat/completions "think-$i" "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":\"thought $i\"}]}"
	[[ $status == 200 && $answer =~ \"content\":\"([^\"]*)\" ]] || { echo "answer $status $answer"; exit 1; }
	echo "had thought $i"
	sleep 0.05
done
echo '{"thoughts":4}' > /io/output.json
`

// thinkerKey is the key of the provider, and must be seen by it alone.
const thinkerKey = "sk-canary-thinker-0123456789"

// slowProvider takes a moment for each answer, and bills 10 tokens for each request that came.
type slowProvider struct {
	*httptest.Server

	mu     sync.Mutex
	billed int64
	asked  map[string]int // bodies
	gaveUp int            // on whoever went away
}

func newSlowProvider(t *testing.T) *slowProvider {
	p := &slowProvider{asked: map[string]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	t.Cleanup(p.CloseClientConnections)
	return p
}

func (p *slowProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it hasn't come
	}
	p.mu.Lock()
	p.billed += 10
	p.asked[string(body)]++
	p.mu.Unlock()
	select {
	case <-time.After(300 * time.Millisecond):
	case <-r.Context().Done():
		p.mu.Lock()
		p.gaveUp++
		p.mu.Unlock()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"choices":[{"message":{"content":"yes"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
}

func TestNoKillLosesWhatAModelCost(t *testing.T) {
	t.Parallel()
	kills, dice := long(t, "AOD_KILLS"), dice(t)
	provider := newSlowProvider(t)
	s := newThinker(t, provider)
	s.start()
	var charged int64
	for left := kills; left > 0; {
		id := s.call("thinker", "{}")
		s.awaitLine(id, "had thought 1")
		for ; left > 0 && !s.isOver(id); left-- {
			time.Sleep(time.Duration(dice.Int64N(int64(400 * time.Millisecond))))
			s.kill()
			s.start()
		}
		charged += s.judgeThinker(id, provider)
	}
	var used api.UsageSum
	if err := json.Unmarshal([]byte(s.aod("usage", "--by", "team,unit,model", "--json")), &used); err != nil {
		t.Error(err)
	}
	if used.Tokens != charged || int64(used.Cost) != charged*1000 || used.Model != "small" || used.Unit != "thinker" {
		t.Errorf("%d tokens were charged, used is %+v", charged, used)
	}
	provider.mu.Lock()
	defer provider.mu.Unlock()
	t.Logf("%d requests were cut off", provider.gaveUp)
}

// newThinker is a server whose unit "thinker" asks a provider.
func newThinker(t *testing.T, provider *slowProvider) *server {
	s := newServer(t, "--concurrency", "2")
	s.addCaller("thinker", thinkerScript)
	write(t, "name: thinker\nmodel: small\nlimits: {timeout: 5m}\n", s.units, "thinker", "agent.yaml")
	s.asksSmall(provider.URL, thinkerKey, "")
	return s
}

// asksSmall has the server ask a provider for the model "small" by a key. more is the rest of its file.
func (s *server) asksSmall(url, key, more string) {
	s.t.Helper()
	write(s.t, key+"\n", s.data, "keys", "own")
	if err := os.Chmod(filepath.Join(s.data, "keys", "own"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, fmt.Sprintf(`providers: {own: {kind: compatible, base_url: %q, key: own}}
models: {small: {use: [own/any], max_output: 50, price: {input: 1, output: 1}}}
`, url)+more, s.data, "server.yaml")
	s.flags = append(s.flags, "--config", filepath.Join(s.data, "server.yaml"), "--secrets", filepath.Join(s.data, "keys"))
}

func (s *server) isOver(id string) bool {
	record, err := s.client.Runs.Get(s.t.Context(), id)
	return err == nil && record.Outcome != ""
}

// judgeThinker waits for a run's end, and returns what it was charged, in tokens. Its books hold what was billed, or more by what is
// estimated, and nothing that had an answer was asked for again.
func (s *server) judgeThinker(id string, provider *slowProvider) int64 {
	s.t.Helper()
	record := s.await(id)
	s.removeLater(record.Image.Ref)
	if record.Outcome != api.Success || string(record.Output) != `{"thoughts":4}` || record.Models == nil {
		s.t.Fatalf("it came to %s, %s: %+v", record.Outcome, record.Output, record.Error)
	}
	provider.mu.Lock()
	defer provider.mu.Unlock()
	m := record.Models
	if m.Charged < provider.billed || m.Estimated == 0 && m.Charged != provider.billed || m.Tokens.Input != 7*(m.Calls-m.Estimated) {
		s.t.Errorf("%d tokens were billed: %+v", provider.billed, m)
	}
	for body, n := range provider.asked {
		if len(provider.asked) != 4 || int64(n) > 1+m.Estimated {
			s.t.Errorf("%d times: %s", n, body)
		}
	}
	if int64(m.Cost) != m.Charged*1000 {
		s.t.Errorf("%d tokens cost %s", m.Charged, m.Cost)
	}
	provider.billed, provider.asked = 0, map[string]int{}
	s.judgeModelCalls(id, m.Charged)
	return m.Charged
}

// judgeModelCalls wants all that was charged in the list of what the run asked, and the key
// nowhere.
func (s *server) judgeModelCalls(id string, charged int64) {
	s.t.Helper()
	var calls []api.ModelCall
	if err := json.Unmarshal([]byte(s.aod("runs", id, "--models", "--json")), &calls); err != nil || len(calls) < 4 {
		s.t.Errorf("%d calls, %v", len(calls), err)
	}
	for _, c := range calls {
		charged -= c.Charged
	}
	if charged != 0 {
		s.t.Errorf("%d tokens are missing: %+v", charged, calls)
	}
	if all := s.log() + s.aod("runs", id, "--json") + s.aod("models"); strings.Contains(all, thinkerKey) {
		s.t.Error("the key is seen")
	}
}
