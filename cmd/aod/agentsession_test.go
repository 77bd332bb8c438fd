package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// talkerProgram speaks the line format. It counts what it was told in its home, and in its
// memory.
const talkerProgram = `import json, os, sys, time
home = os.path.join(os.environ["HOME"], "told")
def out(**line): print(json.dumps(line), flush=True)
def say(text): out(type="assistant", message={"content": [{"type": "text", "text": text}]})
out(type="system", subtype="init", session_id="mine")
if "--resume" in sys.argv: print("resumed", sys.argv[sys.argv.index("--resume") + 1], file=sys.stderr, flush=True)
heard = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "user": continue
    text = message["message"]["content"][0]["text"]
    with open(home, "a") as f: f.write(text.replace("\n", " ") + "\n")
    heard += 1
    if text.startswith("die"): sys.exit(7)
    if text.startswith("nap"): time.sleep(0.3)
    if text.startswith("wait"):
        while True:
            stop = json.loads(sys.stdin.readline())
            if stop["type"] == "control_request": break
        out(type="result", subtype="interrupted", result="stopped", session_id="mine")
        continue
    if text.startswith("may"):
        out(type="control_request", request_id="q%d" % heard, request={"subtype": "can_use_tool", "tool_name": "Write", "input": {}})
        answer = json.loads(sys.stdin.readline())
        if answer["type"] == "control_request": # it is to stop
            out(type="result", subtype="interrupted", result="stopped", session_id="mine")
            continue
        text += " " + list(answer["response"]["response"].values())[0]
    if text.startswith("deaf"):
        while True: time.sleep(1)
    told = sum(1 for _ in open(home))
    for part in ("heard %d, " % heard, "told %d: " % told, text): say(part)
    out(type="result", subtype="success", session_id="mine")
`

// addTalker adds a unit with sessions.
func (s *server) addTalker(name, more string) {
	s.t.Helper()
	s.runs(name, talkInside)
	write(s.t, talkerProgram, s.units, name, "talk.py")
	write(s.t, "FROM aod/base\nCOPY talk.py /talk.py\n", s.units, name, "Dockerfile")
	write(s.t, "name: "+name+"\nkind: agent\nagent:\n  command: [python3, -u, /talk.py]\n  mode: interactive\n  protocol: stream-json\n"+more, s.units, name, "agent.yaml")
}

const (
	keptAlive = "session: {keep_alive: true}\nlimits: {timeout: 60s}\n"
	resumable = "  resume: [--resume, \"{session}\"]\n"
	askPeople = "  approval: ask\n"
)

func (s *server) converse(unit string) string {
	s.t.Helper()
	session, err := s.client.Sessions.Create(s.t.Context(), unit, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return session.ID
}

func (s *server) say(session, text string) string {
	s.t.Helper()
	record, err := s.client.Runs.Submit(s.t.Context(), message(session, text))
	if err != nil {
		s.t.Fatal(err)
	}
	return record.ID
}

func message(session, text string) client.Submission {
	return client.Submission{Session: session, Input: fmt.Appendf(nil, `{"message":%q}`, text)}
}

// hears says something and wants the reply.
func (s *server) hears(session, text, want string) api.Record {
	s.t.Helper()
	r := s.await(s.say(session, text))
	s.replied(r, want)
	return r
}

func (s *server) replied(r api.Record, want string) {
	s.t.Helper()
	if got := string(r.Output); r.Outcome != api.Success || got != fmt.Sprintf(`{"text":%q}`, want) {
		s.t.Errorf("turn %d: %s %s %+v, want %q", r.Turn, r.Outcome, got, r.Error, want)
	}
}

// transcript is what the program said in a turn.
func (s *server) transcript(id string) (text string) {
	s.t.Helper()
	for event, err := range s.client.Runs.Events(s.t.Context(), id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if data, _ := event.Decode(); data != nil {
			if told, ok := data.(api.AgentEvent); ok && told.Kind == "text" {
				text += told.Text
			}
		}
	}
	return text
}

// timesTold is how often the program of a session has been told something.
func (s *server) timesTold(session string) int {
	s.t.Helper()
	told, _ := os.ReadFile(filepath.Join(s.home(), "sessions", session, "home", "told")) // it begins without one
	return strings.Count(string(told), "\n")
}

// toldOnce returns when the program of a session has been told something.
func (s *server) toldOnce(session string) {
	s.t.Helper()
	testkit.Eventually(s.t, "it was told", func() bool { return s.timesTold(session) > 0 })
}

func (s *server) liveContainers(session string) int {
	s.t.Helper()
	refs, err := s.engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelRun: session})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(refs)
}

// endSession closes a session, and waits until nothing of it is left.
func (s *server) endSession(session string) {
	s.t.Helper()
	_, _ = s.client.Sessions.Close(s.t.Context(), session)
	s.closed(session)
}

func (s *server) closed(session string) api.Session {
	s.t.Helper()
	var got api.Session
	testkit.Eventually(s.t, "the session is closed", func() bool {
		got, _ = s.client.Sessions.Get(context.Background(), session)
		return got.State == api.SessionClosed && s.liveContainers(session) == 0
	})
	testkit.Eventually(s.t, "its directory is gone", func() bool {
		_, err := os.Stat(filepath.Join(s.home(), "sessions", session))
		return os.IsNotExist(err)
	})
	return got
}

func TestASessionLivesOnBetweenItsTurns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addTalker("talker", resumable+keptAlive)
	s.start()
	session := s.converse("talker")
	first := s.hears(session, "one", "heard 1, told 1: one")
	second := s.hears(session, "two", "heard 2, told 2: two")
	if first.Container.ID != second.Container.ID || second.Turn != 2 || second.Session != session {
		t.Errorf("containers %s and %s, turn %d of %q", first.Container.ID, second.Container.ID, second.Turn, second.Session)
	}
	if got := s.transcript(second.ID); got != "heard 2, told 2: two" {
		t.Errorf("the transcript is %q", got)
	}
	s.kill()
	s.start()
	third := s.hears(session, "three", "heard 3, told 3: three")
	if third.Container.ID != first.Container.ID {
		t.Error("another container went on")
	}
	if _, err := s.client.Sessions.Close(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	s.closed(session)
	if _, err := s.client.Runs.Submit(t.Context(), message(session, "four")); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a turn of a closed session: %v", err)
	}
}

func TestATurnSurvivesTheServerAtAnyMoment(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_KILLS")
	const rounds = 6
	s := newServer(t)
	s.addTalker("talker", keptAlive)
	s.start()
	session := s.converse("talker")
	dice := rand.New(rand.NewPCG(17, 4))
	for n := 1; n <= rounds; n++ {
		text := fmt.Sprintf("nap %d", n)
		id := s.say(session, text)
		after := time.Duration(dice.Int64N(int64(400 * time.Millisecond)))
		time.Sleep(after) // what is tested are random moments
		s.kill()
		s.start()
		want := fmt.Sprintf("heard %d, told %d: %s", n, n, text)
		s.replied(s.await(id), want)
		if got := s.transcript(id); got != want {
			t.Errorf("killed after %v: the transcript is %q", after, got)
		}
	}
	s.endSession(session)
}

func TestTurnsFollowOneAnother(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("talker", keptAlive)
	s.addTalker("other", keptAlive)
	s.start()
	session := s.converse("talker")
	first := s.say(session, "wait") // until all others are there
	s.toldOnce(session)
	var ids []string
	for n := range 10 {
		ids = append(ids, s.say(session, fmt.Sprintf("nap %d", n+2)))
	}
	if _, err := s.client.Runs.Submit(t.Context(), message(session, "too many")); !fault.Is(err, fault.Busy) {
		t.Errorf("the twelfth turn: %v", err)
	}
	if _, err := s.client.Runs.Cancel(t.Context(), first, "enough"); err != nil {
		t.Fatal(err)
	}
	for n, id := range ids {
		s.replied(s.await(id), fmt.Sprintf("heard %d, told %d: nap %d", n+2, n+2, n+2))
	}
	foreign := message(session, "hello")
	foreign.Unit = "other"
	if _, err := s.client.Runs.Submit(t.Context(), foreign); !fault.Is(err, fault.Conflict) {
		t.Errorf("a session of another unit: %v", err)
	}
	s.endSession(session)
}

func TestASessionThatGoesOnInANewContainer(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.runs("fresh", freshInside)
	write(t, "FROM aod/base\n", s.units, "fresh", "Dockerfile")
	write(t, "name: fresh\nkind: agent\nagent:\n  command: [python3, -u, /talk.py, \"{message}\"]\n  mode: interactive\n  input: args\n"+
		"  result: {format: json, text: /text, session: /session}\n"+resumable, s.units, "fresh", "agent.yaml")
	s.start()
	session := s.converse("fresh")
	s.hears(session, "one", "told 1: one")
	s.kill()
	s.start()
	if n := s.liveContainers(session); n != 0 {
		t.Errorf("%d containers between two turns", n)
	}
	second := s.hears(session, "two", "told 2: two")
	log := ""
	for entry, err := range s.client.Runs.Log(t.Context(), second.ID, api.LogFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		log += entry.Text
	}
	if log != "resumed mine" {
		t.Errorf("it was resumed with %q", log)
	}
	s.restored(func(after *server) { after.hears(session, "three", "told 3: three") })
	s.endSession(session)
}

func TestAProgramThatEndsInMidTurn(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("mortal", keptAlive)
	s.addTalker("phoenix", resumable+keptAlive)
	s.start()
	session := s.converse("mortal")
	s.hears(session, "one", "heard 1, told 1: one")
	r := s.await(s.say(session, "die"))
	if r.Outcome != api.CapsuleError || !strings.Contains(r.Error.Message, "exit code 7") {
		t.Errorf("%s %+v", r.Outcome, r.Error)
	}
	if got := s.closed(session); !strings.Contains(got.Reason, "can't take up a session again") {
		t.Errorf("closed: %q", got.Reason)
	}
	session = s.converse("phoenix")
	s.await(s.say(session, "die"))
	s.hears(session, "two", "heard 1, told 2: two")
	s.endSession(session)
}

func TestACancelledTurnLeavesItsSessionWhole(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("talker", keptAlive)
	s.start()
	session := s.converse("talker")
	id := s.say(session, "wait")
	s.until(id, "runs", running)
	s.toldOnce(session)
	if _, err := s.client.Runs.Cancel(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	if r := s.await(id); r.Outcome != api.WasCancelled {
		t.Errorf("%s %+v", r.Outcome, r.Error)
	}
	s.hears(session, "two", "heard 2, told 2: two")
	s.endSession(session)
}

func TestATurnThatIsCancelledWhileItAsksLeavesItsSessionWhole(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("talker", askPeople+keptAlive)
	s.start()
	session := s.converse("talker")
	for n := 1; n < 10; n += 2 { // as often as it takes for a race
		id := s.say(session, "may I")
		testkit.Eventually(t, "it asks", func() bool {
			for _, err := range s.client.Questions.List(context.Background(), id) {
				return err == nil
			}
			return false
		})
		if _, err := s.client.Runs.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		if r := s.await(id); r.Outcome != api.WasCancelled {
			t.Errorf("%s %+v", r.Outcome, r.Error)
		}
		s.hears(session, "next", fmt.Sprintf("heard %d, told %d: next", n+1, n+1))
	}
	s.endSession(session)
}

func TestAPermissionIsAskedAndAnsweredWhileTheServerIsDead(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("asker", askPeople+keptAlive)
	s.start()
	session := s.converse("asker")
	id := s.say(session, "may I")
	var question string
	testkit.Eventually(t, "it asks", func() bool {
		for q, err := range s.client.Questions.List(context.Background(), id) {
			if err == nil {
				question = q.ID
			}
		}
		return question != ""
	})
	s.kill()
	s.start()
	if err := s.client.Questions.Answer(t.Context(), question, api.Answer{Action: "allow"}); err != nil {
		t.Fatal(err)
	}
	s.replied(s.await(id), "heard 1, told 1: may I allow")
	s.hears(session, "two", "heard 2, told 2: two")
	s.endSession(session)
}
