package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// fakeSwarm are the nodes that a manager lists.
type fakeSwarm struct {
	mu     sync.Mutex
	nodes  map[string]runtime.Node
	silent bool // it has no leader
}

func (s *fakeSwarm) list() (nodes []runtime.Node, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		return nil, fault.New(fault.Unavailable, "the Swarm has no leader")
	}
	for _, n := range s.nodes {
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// has changes a node, or adds it.
func (s *fakeSwarm) has(id string, change func(*runtime.Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, is := s.nodes[id]
	if !is {
		n = runtime.Node{ID: id, Hostname: "host", Ready: true, Availability: "active"}
	}
	change(&n)
	s.nodes[id] = n
}

func (s *fakeSwarm) is(id, availability string) {
	s.has(id, func(n *runtime.Node) { n.Availability = availability })
}

func (s *fakeSwarm) removes(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, id)
}

func (s *fakeSwarm) isSilent(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = is
}

// swarmFleet is a fleet whose workers are on nodes of a Swarm, and join with one file.
type swarmFleet struct {
	*fleet
	*fakeSwarm
	token string
}

func newSwarmFleet(t *testing.T) *swarmFleet {
	t.Helper()
	join, token := filepath.Join(t.TempDir(), "join"), access.NewToken()
	write(t, string(servicetest.JSON(api.WorkerJoin{Server: "http://10.0.0.1:7070", Token: token})), join)
	s := &swarmFleet{fleetOf(t, "1m", "swarm: "+join), &fakeSwarm{nodes: map[string]runtime.Node{}}, token}
	s.inside.engine.swarm = s.fakeSwarm
	s.start()
	return s
}

// onNode returns the worker of a node, which isn't started: name is what it is to be called.
func (s *swarmFleet) onNode(id, name string) *far {
	s.t.Helper()
	w := &far{fleet: s.fleet, name: name, data: s.t.TempDir(), slots: 2, road: newRoad(s.t, s.url())}
	w.engine.Fake = enginetest.NewFake(enginetest.WithInit(s.programs.run))
	w.engine.Info.Node, w.engine.Info.OS, w.engine.Info.Arch = id, "linux", "amd64"
	w.engine.AddImage(runtime.Image{
		ID: "sha256:base", Tags: []string{dockertest.Image, "aod/base"}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
	})
	write(s.t, string(servicetest.JSON(api.WorkerJoin{Server: w.road.URL, Token: s.token})), w.data, "join")
	w.flags = []string{"--join", filepath.Join(w.data, "join")}
	return w
}

// node has a node with a host name, and its worker be there.
func (s *swarmFleet) node(id, host, name string) *far {
	s.t.Helper()
	s.has(id, func(n *runtime.Node) { n.Hostname = host })
	w := s.onNode(id, name)
	w.begin()
	w.ready()
	s.t.Cleanup(w.end)
	return w
}

// shown is what the server says of a worker.
func (s *swarmFleet) shown(name string) (of api.Worker) {
	s.t.Helper()
	all, err := s.client.Workers.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, w := range all {
		if w.Name == name {
			of = w
		}
	}
	return of
}

// awaitClosed waits for the end of a process.
func awaitClosed(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	testkit.Eventually(t, "the process ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

// waits reports whether a run says for what it waits.
func waits(s *swarmFleet, id string) bool {
	r, err := s.client.Runs.Get(context.Background(), id)
	return err == nil && r.Waiting != nil
}

// refused has a worker end, with words in its log.
func (w *far) refused(words string) {
	w.fleet.t.Helper()
	awaitClosed(w.fleet.t, w.ended)
	if w.code == 0 || !strings.Contains(w.log(), words) {
		w.fleet.t.Errorf("code %d, and no %q in\n%s", w.code, words, w.log())
	}
}

const (
	nodeA = "aaaaaaaa5hwizwn56jt4sbif1"
	nodeB = "bbbbbbbb5hwizwn56jt4sbif2"
	nodeC = "cccccccc5hwizwn56jt4sbif3"
)

func TestTheNodesOfASwarmJoinByTheirHostNames(t *testing.T) {
	s := newSwarmFleet(t)
	stranger := s.onNode(nodeC, "none")
	stranger.begin()
	stranger.refused("has no node")
	s.has(nodeC, func(n *runtime.Node) { n.Ready = false })
	stranger.begin()
	stranger.refused("has no node")
	outside := s.onNode("", "none")
	outside.begin()
	outside.refused("is in no Swarm")

	a := s.node(nodeA, "Big_Box.Example.COM", "big_box.example.com")
	s.node(nodeB, "big_box.example.com", "big_box.example.com-bbbbbbbb")
	s.has(nodeA, func(n *runtime.Node) {
		n.Labels = map[string]string{"gpu": "", "zone": "b", "NO": "x", "rack": "not one"}
	})
	testkit.Eventually(t, "it has its node's labels", func() bool {
		return slices.Equal(s.shown(a.name).Labels, []string{"arch=amd64", "gpu", "os=linux", "zone=b"})
	})
	id := s.job(jobOrders{Mark: "a"})
	s.succeeded(id)

	for path, want := range map[string]int{wire.Renew: 403, wire.Orders: 403, wire.Leave: 403, "/v1/workers": 403} {
		r, _ := http.NewRequest(http.MethodPost, s.url()+path, bytes.NewReader([]byte(`{"name":"x"}`)))
		r.Header.Set("Authorization", "Bearer "+s.token)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("what all nodes have opens %s: %d", path, response.StatusCode)
		}
	}
}

func TestAWorkerTakesNothingNewWhileItsNodeIsDrained(t *testing.T) {
	s := newSwarmFleet(t)
	w := s.node(nodeA, "big", "big")
	for _, state := range []string{"pause", "drain"} {
		s.is(nodeA, state)
		testkit.Eventually(t, state+" is told", func() bool { return s.shown("big").Node == state })
		id := s.job(jobOrders{Mark: state})
		testkit.Eventually(t, "the run says that it waits", func() bool { return waits(s, id) })
		s.isSilent(true) // the last view stays
		if s.begun(state) > 0 || s.shown("big").Node != state {
			t.Errorf("%s: begun %d times", state, s.begun(state))
		}
		s.isSilent(false)
		s.is(nodeA, "active")
		s.succeeded(id)
	}
	w.awaitEmpty()
}

func TestAWorkerWhoseNodeIsDrainedFinishesWhatItRuns(t *testing.T) {
	for name, empties := range map[string]func(*swarmFleet){
		"drained": func(s *swarmFleet) { s.is(nodeA, "drain") }, "removed": func(s *swarmFleet) { s.removes(nodeA) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwarmFleet(t)
			w := s.node(nodeA, "big", "big")
			id := s.job(jobOrders{Mark: "a", Hold: true})
			s.awaitBegun("a")
			empties(s)
			w.stop() // SIGTERM
			testkit.Eventually(t, "it finishes", func() bool { return strings.Contains(w.log(), "the node is to be emptied") })
			later := s.job(jobOrders{Mark: "b"})
			select {
			case <-w.ended:
				t.Fatalf("it has ended with a run:\n%s", w.log())
			default:
			}
			s.letGo("a")
			s.succeeded(id)
			awaitClosed(t, w.ended)
			if w.code != 0 || s.begun("b") > 0 || !w.isEmpty() {
				t.Errorf("code %d, begun %d times:\n%s", w.code, s.begun("b"), w.log())
			}
			s.node(nodeB, "small", "small")
			s.succeeded(later)
		})
	}
}

func TestAWorkerThatIsUpdatedLetsGoAtOnce(t *testing.T) {
	for name, before := range map[string]func(*swarmFleet, *far){
		"as the server says":          func(*swarmFleet, *far) {},
		"though the server is silent": func(_ *swarmFleet, w *far) { w.road.is(-1) },
		"though the Swarm is silent":  func(s *swarmFleet, _ *far) { s.isSilent(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwarmFleet(t)
			w := s.node(nodeA, "big", "big")
			id := s.job(jobOrders{Mark: "a", Hold: true})
			s.awaitBegun("a")
			before(s, w)
			w.stop()
			awaitClosed(t, w.ended)
			s.isSilent(false)
			w.road.heals()
			w.begin()
			w.ready()
			s.letGo("a")
			s.succeeded(id)
		})
	}
}

func TestARemovedNodeStaysOutUntilItIsInvited(t *testing.T) {
	s := newSwarmFleet(t)
	w := s.node(nodeA, "big", "big")
	began := time.Now()
	if err := s.client.Workers.Remove(t.Context(), "big"); err != nil {
		t.Fatal(err)
	}
	w.refused("the server has removed this worker")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it was off after %s", took)
	}
	for range 2 {
		w.begin()
		w.refused("of this node was removed")
	}
	s.kill() // which is remembered
	s.start()
	w.begin()
	w.refused("of this node was removed")
	if _, err := s.client.Workers.Add(t.Context(), "big"); err != nil {
		t.Fatal(err)
	}
	w.begin()
	w.ready()
	s.succeeded(s.job(jobOrders{Mark: "a"}))
}

func TestANodeJoinsAgainWithAnEmptyVolume(t *testing.T) {
	s := newSwarmFleet(t)
	w := s.node(nodeA, "big", "big")
	id, effective := s.job(jobOrders{Mark: "a", Hold: true}), s.jobOf("effective", jobOrders{Mark: "e", Hold: true})
	s.awaitBegun("a", "e")
	w.leave()
	empty := s.onNode(nodeA, "big")
	empty.begin()
	empty.ready()
	t.Cleanup(empty.end)
	if r := s.await(effective); !isLost(r.Error) {
		t.Errorf("of the run with effects: %+v", r.Error)
	}
	testkit.Eventually(t, "the other run is begun again", func() bool { return s.begun("a") == 2 })
	s.letGo("a", "e")
	if r := s.await(id); r.Outcome != api.Success {
		t.Errorf("%s: %+v", r.Outcome, r.Error)
	}
	raw, err := os.ReadFile(filepath.Join(s.home(), "tokens.json"))
	if err != nil || bytes.Count(raw, []byte(`"name": "big"`)) != 1 {
		t.Errorf("%v: %s", err, raw)
	}
	w.flags = nil
	w.begin() // what it had joined with is good for nothing any more
	w.refused("the server has removed this worker")
	w.road.heals()
}

func TestAServerOfASwarmWantsAManager(t *testing.T) {
	join := filepath.Join(t.TempDir(), "join")
	f := fleetOf(t, "1m", "swarm: "+join)
	f.begin()
	f.exitCode()
	if f.inside.code == 0 || !strings.Contains(f.log(), "no manager of a Swarm") {
		t.Errorf("code %d: %s", f.inside.code, f.log())
	}
	f.inside.engine.swarm = &fakeSwarm{nodes: map[string]runtime.Node{}}
	f.begin()
	f.exitCode()
	if f.inside.code == 0 || !strings.Contains(f.log(), fmt.Sprintf("%s makes it", "`aod worker bundle --url https://HOST:PORT DIR`")) {
		t.Errorf("code %d: %s", f.inside.code, f.log())
	}
	write(t, string(servicetest.JSON(api.WorkerJoin{Server: "http://10.0.0.1:7070", Token: access.NewToken()})), join)
	f.start()
}

func TestABundleHasAllThatAStackWants(t *testing.T) {
	alone(t)
	dir := filepath.Join(t.TempDir(), "stack")
	for _, wrong := range []string{"", "http://10.0.0.5:7070", "https://10.0.0.5", "https://localhost:7070", "https://10.0.0.5:7070/x", "https://u:p@x:1"} {
		if code, _, stderr := command(t, t.Context(), "worker", "bundle", "--url", wrong, dir); code != 2 {
			t.Errorf("%q: code %d, %s", wrong, code, stderr)
		}
	}
	code, stdout, stderr := command(t, t.Context(), "worker", "bundle", "--url", "https://10.0.0.5:7443", dir)
	if code != 0 || stdout != "" || !strings.Contains(stderr, "docker stack deploy -c "+dir+"/aod.yml aod") {
		t.Fatalf("code %d, %q, %s", code, stdout, stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 4 {
		t.Errorf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	join, err := readJoin(filepath.Join(dir, "join"))
	if err != nil || join.Server != "https://10.0.0.5:7443" || len(join.Pins) != 1 || access.NewTokens("").Share(join.Token) != nil {
		t.Errorf("%+v, %v", join, err)
	}
	home := t.TempDir() // the server's certificate has the pin of the file
	key, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(key), home, "key.pem")
	pair, err := certs.Self(home, []string{"10.0.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := certs.Open(pair, func(certs.State) {})
	if err != nil || string(keeper.State().Pins[0]) != join.Pins[0] {
		t.Errorf("%v", err)
	}
	c, err := config.Load(config.Options{File: filepath.Join(dir, "serve.yaml"), Getenv: func(string) string { return "" }})
	if err != nil || c.TLS != config.TLSSelf || c.Swarm == "" || c.LocalSandboxes || !slices.Equal(c.Hosts, []string{"10.0.0.5"}) {
		t.Errorf("%+v, %v", c, err)
	}
	stack, err := os.ReadFile(filepath.Join(dir, "aod.yml"))
	if err != nil || !strings.Contains(string(stack), "AOD_LISTEN: 0.0.0.0:7443") || strings.Contains(string(stack), ": https://127.0.0.1:7070") {
		t.Errorf("%v in\n%s", err, stack)
	}
	if code, _, stderr := command(t, t.Context(), "worker", "bundle", "--url", "https://10.0.0.5:7443", dir); code == 0 || !strings.Contains(stderr, "name another one") {
		t.Errorf("once more: code %d, %s", code, stderr)
	}
}
