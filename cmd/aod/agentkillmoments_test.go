package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

const permitTime = "4s" // for an answer to a permission

// acpProgram speaks the Agent Client Protocol. What it was told is in its home.
const acpProgram = `import json, os, sys, time
home = os.path.join(os.environ["HOME"], "told")
def out(**message): print(json.dumps(dict(message, jsonrpc="2.0")), flush=True)
def say(text): out(method="session/update", params={"sessionId": "mine", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
for line in sys.stdin:
    m = json.loads(line)
    method, id = m.get("method"), m.get("id")
    if method == "initialize": out(id=id, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method == "session/new": out(id=id, result={"sessionId": "mine"})
    elif method == "session/load": out(id=id, result=None)
    elif method == "session/prompt":
        text = m["params"]["prompt"][0]["text"]
        with open(home, "a") as f: f.write(text + "\n")
        told = sum(1 for _ in open(home))
        say("told %d: " % told)
        time.sleep(0.2)
        if text.startswith("may"):
            out(id="may-%d" % told, method="session/request_permission", params={"sessionId": "mine", "toolCall": {"toolCallId": "t", "title": "Write"}, "options": [
                {"optionId": "allow", "name": "Yes", "kind": "allow_once"}, {"optionId": "deny", "name": "No", "kind": "reject_once"}]})
            answer = json.loads(sys.stdin.readline())
            assert answer["id"] == "may-%d" % told, answer
            text += " " + answer["result"]["outcome"]["optionId"]
        say(text)
        out(id=id, result={"stopReason": "end_turn"})
`

// linesProgram speaks the line format likewise.
const linesProgram = `import json, os, sys, time
home = os.path.join(os.environ["HOME"], "told")
def out(**line): print(json.dumps(line), flush=True)
def say(text): out(type="assistant", message={"content": [{"type": "text", "text": text}]})
out(type="system", subtype="init", session_id="mine")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "user": continue
    text = message["message"]["content"][0]["text"]
    with open(home, "a") as f: f.write(text + "\n")
    told = sum(1 for _ in open(home))
    say("told %d: " % told)
    time.sleep(0.2)
    if text.startswith("may"):
        out(type="control_request", request_id="may-%d" % told, request={"subtype": "can_use_tool", "tool_name": "Write", "input": {}})
        answer = json.loads(sys.stdin.readline())
        assert answer["response"]["request_id"] == "may-%d" % told, answer
        text += " " + list(answer["response"]["response"].values())[0]
    say(text)
    out(type="result", subtype="success", session_id="mine")
`

// turnProgram lives for one turn, in a container of its own, and writes lines. It asks by the
// capsule API.
const turnProgram = `import json, os, sys, time
home = os.path.join(os.environ["HOME"], "told")
text = sys.argv[1]
with open(home, "a") as f: f.write(text + "\n")
told = sum(1 for _ in open(home))
resumed = "--resume" in sys.argv
assert resumed == (told > 1), sys.argv
time.sleep(0.2)
if text.startswith("may"):
    import aod
    try: text += " " + aod.ask_person("Write?", kind="approval", options=["allow", "deny"], timeout="PERMIT").option
    except aod.Denied: text += " deny"
print(json.dumps({"type": "system", "session_id": "mine"}))
print(json.dumps({"type": "result", "result": "told %d: %s" % (told, text)}))
`

// talkKinds are the ways in which an agent has a conversation.
var talkKinds = []struct {
	name, program, yaml string
	transcript          bool // what it tells are events
}{
	{"acp-lives", acpProgram, "  protocol: acp\nsession: {keep_alive: true}\n", true},
	{"acp-rests", acpProgram, "  protocol: acp\nsession: {keep_alive: true, idle: 1s}\n", true},
	{"lines-live", linesProgram, "  protocol: stream-json\nsession: {keep_alive: true}\n", true},
	{"lines-rest", linesProgram, "  protocol: stream-json\n  resume: [--resume, \"{session}\"]\nsession: {keep_alive: true, idle: 1s}\n", true},
	{"lines-end", turnProgram, "  input: args\n  resume: [--resume, \"{session}\"]\n" +
		"  result: {format: jsonl, text: {at: /result, when: {/type: result}}, session: {at: /session_id, when: {/type: system}}}\n", false},
}

// permissions is what becomes of the permissions that a conversation asks for, in turn.
var permissions = []string{"allow", "deny", "nobody", "killed"}

// A conversation loses no turn and has none twice, and its transcript is whole, whenever the
// server is killed: also with a permission that is allowed, denied, answered by nobody, and
// answered when the server was killed meanwhile.
func TestNoKillOfTheServerLosesOrDoublesATurn(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "8", "--sessions", "8")
	haveConversations(s, long(t, "AOD_KILLS"), long(t, "AOD_TURNS"), func() func() {
		return func() {
			s.kill()
			s.start()
		}
	})
}

// So do those at a worker, whenever that or the server is killed, or both.
func TestNoKillOfAWorkerLosesOrDoublesATurn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "local_sandboxes: false\nworker_grace: 5m\n", file)
	s := newServer(t, "--config", file, "--sessions", "8")
	haveConversations(s, long(t, "AOD_KILLS"), long(t, "AOD_TURNS"), func() func() {
		w := newFarProcess(t, s)
		w.start()
		killed := 0
		return func() {
			killed++
			if killed%3 > 0 {
				w.kill()
			}
			if killed%3 < 2 {
				s.kill()
				s.start()
			}
			if killed%3 > 0 {
				w.start()
			}
		}
	})
}

// haveConversations has one of each kind while something is killed: begin is called when the server is
// there, and what it returns kills, and starts again what was killed.
func haveConversations(s *server, kills, turns int, begin func() (kill func())) {
	t := s.t
	for _, kind := range talkKinds {
		command := "command: [python3, -u, /talk.py]\n"
		if !kind.transcript {
			command = "command: [python3, -u, /talk.py, \"{message}\"]\n"
		}
		write(t, strings.ReplaceAll(kind.program, "PERMIT", permitTime), s.units, kind.name, "talk.py")
		write(t, "FROM aod/base\nCOPY talk.py /talk.py\n", s.units, kind.name, "Dockerfile")
		write(t, "name: "+kind.name+"\nkind: agent\nagent:\n  "+command+"  mode: interactive\n  approval: ask\n  approval_timeout: "+permitTime+"\n"+kind.yaml+"limits: {timeout: 10m, memory: 128MiB}\n", s.units, kind.name, "agent.yaml")
	}
	s.start()
	c := &conversations{server: s, dice: dice(t), turns: turns * len(talkKinds), killOne: begin()}
	for _, kind := range talkKinds {
		one := &conversed{conversations: c, unit: kind.name, session: s.converse(kind.name), transcript: kind.transcript, late: map[int]bool{}}
		c.all = append(c.all, one)
		c.talking.Go(func() { one.talk(turns) })
	}
	c.disturb(kills)
	c.judge(turns)
}

// conversations are had while the server is killed.
type conversations struct {
	*server
	dice    *rand.Rand
	all     []*conversed
	turns   int // of all conversations
	killOne func()
	had     atomic.Int64
	kills   atomic.Int64
	waiting atomic.Int64 // conversations that go on after the next kill
	talking sync.WaitGroup
}

// disturb kills the server at random moments, which are spread over the turns: on a busy machine
// they take longer. It is killed as well whenever a conversation waits for that.
func (c *conversations) disturb(planned int) {
	over := make(chan struct{})
	go func() { defer close(over); c.talking.Wait() }()
	for n := 1; n <= planned || !isClosed(over); n++ {
		for !isClosed(over) && c.waiting.Load() == 0 && (n > planned || int(c.had.Load()) < n*c.turns/(planned+1)) {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(c.dice.Int64N(int64(1200 * time.Millisecond)))) // what is tested are random moments
		c.killOne()
		c.kills.Add(1)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// conversed is one of them.
type conversed struct {
	*conversations
	unit, session string
	transcript    bool
	ids           []string
	met           int          // kills between the acceptance of a turn and its end
	late          map[int]bool // turns whose permission was answered too late, on a busy machine
	err           error
}

// talk has the turns.
func (o *conversed) talk(turns int) {
	ctx, stop := context.WithTimeout(context.Background(), 10*patienceTime)
	defer stop()
	for n := range turns {
		if err := o.turn(ctx, n); err != nil {
			o.err = fmt.Errorf("turn %d: %w", n+1, err)
			return
		}
		o.had.Add(1)
	}
}

func (o *conversed) turn(ctx context.Context, n int) error {
	sub := message(o.session, o.said(n))
	sub.Key = fmt.Sprintf("%s-%d", o.session, n)
	before := o.kills.Load()
	record, err := o.submit(ctx, sub)
	if err != nil {
		return err
	}
	id := record.ID
	o.ids = append(o.ids, id)
	if what := o.permission(n); what != "" {
		err := o.permit(ctx, id, what)
		if o.late[n] = fault.Is(err, fault.Conflict); err != nil && !o.late[n] {
			return err
		}
	}
	for ctx.Err() == nil {
		if record, err = o.client.Runs.Get(ctx, id); err == nil && record.Outcome != "" {
			o.met += int(o.kills.Load() - before)
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.Join(err, ctx.Err())
}

// permission is what becomes of the permission of a turn; "": it asks for none.
func (o *conversed) permission(n int) string {
	if n == 0 {
		return ""
	}
	return permissions[(n-1)%len(permissions)]
}

func (o *conversed) said(n int) string {
	if o.permission(n) != "" {
		return fmt.Sprintf("may %d", n+1)
	}
	return fmt.Sprintf("say %d", n+1)
}

// output is the reply as a turn's result has it: with ACP a blank line parts it where a permission was asked for.
func (o *conversed) output(n int) string {
	if strings.HasPrefix(o.unit, "acp") {
		return strings.Replace(o.reply(n), ": may", ": \n\nmay", 1)
	}
	return o.reply(n)
}

// reply is what a turn should come to.
func (o *conversed) reply(n int) string {
	text := fmt.Sprintf("told %d: %s", n+1, o.said(n))
	switch what := o.permission(n); {
	case what == "":
	case what == "deny", what == "nobody", o.late[n]:
		text += " deny"
	default:
		text += " allow"
	}
	return text
}

// permit answers what the turn asks, until that is heard. The error is a Conflict fault where it
// was too late.
func (o *conversed) permit(ctx context.Context, run, what string) error {
	if what == "nobody" {
		return nil
	}
	question, err := o.question(ctx, run)
	if err != nil {
		return err
	}
	answer := api.Answer{Action: what}
	if what == "killed" {
		answer.Action = "allow"
		o.afterKill(ctx)
	}
	for ctx.Err() == nil {
		err := o.client.Questions.Answer(ctx, question, answer)
		if !fault.Is(err, fault.Unavailable) {
			return err
		}
	}
	return ctx.Err()
}

// afterKill returns when the server was killed once more.
func (o *conversed) afterKill(ctx context.Context) {
	o.waiting.Add(1)
	defer o.waiting.Add(-1)
	for before := o.kills.Load(); o.kills.Load() == before && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
}

func (o *conversed) question(ctx context.Context, run string) (string, error) {
	for ctx.Err() == nil {
		for q, err := range o.client.Questions.List(ctx, run) {
			if err == nil {
				return q.ID, nil
			}
		}
		if record, err := o.client.Runs.Get(ctx, run); err == nil && record.Outcome != "" {
			return "", fault.New(fault.Conflict, "nobody has seen the question in its time")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", ctx.Err()
}

// judge compares what was said with what was heard.
func (c *conversations) judge(turns int) {
	c.t.Helper()
	met := 0
	for _, o := range c.all {
		if o.err != nil {
			c.t.Errorf("%s: %v", o.unit, o.err)
		}
		for n, id := range o.ids {
			r := c.await(id)
			c.removeLater(r.Image.Ref)
			if c.replied(r, o.output(n)); r.Outcome != api.Success {
				c.t.Logf("its log: %q", c.logOf(id))
			}
			if r.Turn != n+1 || len(r.Attempts) > 0 {
				c.t.Errorf("%s: turn %d of %d, %d failed attempts", o.unit, r.Turn, n+1, len(r.Attempts))
			}
			if got := c.transcript(id); o.transcript && got != o.reply(n) {
				c.t.Errorf("%s: the transcript of turn %d is %q", o.unit, n+1, got)
			}
		}
		session, err := c.client.Sessions.Close(c.t.Context(), o.session)
		if err != nil || session.Turns != turns {
			c.t.Errorf("%s: %d turns of %d, %v", o.unit, session.Turns, turns, cmp.Or(err, o.err))
		}
		c.closed(o.session)
		met += o.met
		c.t.Logf("%s: %d turns, %d kills within them, %d permissions answered too late", o.unit, len(o.ids), o.met, lateOnes(o.late))
	}
	c.t.Logf("%d kills; the turns met %d of them", c.kills.Load(), met)
}

func lateOnes(late map[int]bool) (n int) {
	for _, is := range late {
		if is {
			n++
		}
	}
	return n
}

func (s *server) logOf(id string) (log string) {
	for entry, err := range s.client.Runs.Log(s.t.Context(), id, api.LogFilter{}) {
		if err != nil {
			return log + err.Error()
		}
		log += entry.Text + "\n"
	}
	return log
}
