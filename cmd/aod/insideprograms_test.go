package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
)

// These programs run on servers of this process. What has the name of a script, too, does what that does.

// boxed is a program's sandbox, with its time.
type boxed struct {
	servicetest.Sandbox
	ctx context.Context //nolint:containedctx // it ends with the program
}

// asks sends a request to the capsule API, and returns the status and the answer.
func (b boxed) asks(method, path, key, body string) (status, answer string) {
	status, answer, _ = strings.Cut(b.Ask(b.ctx, method, path, key, []byte(body)), " ")
	return status, answer
}

// shows tells of a part of what it has.
func (b boxed) shows(key, part string) { b.asks("POST", "/artifact", key, part) }

// hears calls for each message that is said to the run, until it reports that it has heard enough.
func (b boxed) hears(enough func(api.HeardMessage) bool) {
	for seen := int64(0); b.ctx.Err() == nil; {
		_, answer := b.asks("GET", fmt.Sprintf("/messages?after=%d&wait=30s", seen), "", "")
		var told struct {
			Messages []api.HeardMessage `json:"messages"`
		}
		if json.Unmarshal([]byte(answer), &told) != nil {
			continue
		}
		for _, m := range told.Messages {
			if seen = m.N; enough(m) {
				return
			}
		}
	}
}

// failing is what a program gives that fails.
func failing(kind, message string) any {
	return map[string]any{"error": map[string]string{"type": kind, "message": message}}
}

// rejects ends a program that doesn't do what it is asked for.
func (b boxed) rejects(why string) int {
	b.Output(failing("Rejected", why))
	return 1
}

func (b boxed) writes(name string, content []byte) {
	file := filepath.Join(b.Path("/io/output"), name)
	_ = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o600)) // else it isn't found
}

// rests waits, but for no longer than the program lives.
func (b boxed) rests(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
}

// workInside is workerScript with shorter ticks.
func workInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	var todo work
	if box.Input(&todo) != nil {
		return 9
	}
	b.writes("starts", []byte("x"))
	_, _ = fmt.Fprintln(box.Stdout, "started")
	for i := range todo.Ticks {
		b.rests(10 * time.Millisecond)
		_, _ = fmt.Fprintf(box.Stdout, "tick %d\n", i+1)
	}
	for todo.Hold > 0 && ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(box.Path("/workspace"), "go")); err == nil {
			break
		}
		b.rests(5 * time.Millisecond)
	}
	if todo.Exit > 0 {
		box.Output(failing("Planned", "as it was asked for"))
		return todo.Exit
	}
	box.Output(map[string]int{"mark": todo.Mark})
	return 0
}

// gotAnswer is what a program gives that was answered.
type gotAnswer struct {
	Status json.RawMessage `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// personInside is personScript.
func personInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	var input struct {
		Ask   json.RawMessage `json:"ask"`
		Again bool            `json:"again"`
	}
	if box.Input(&input) != nil {
		return 9
	}
	_, _ = fmt.Fprintln(box.Stdout, "started")
	status, answer := b.asks("POST", "/ask", "question", string(input.Ask))
	if input.Again {
		status, answer = b.asks("POST", "/ask", "question", `{"text":"Something else?"}`)
	}
	if ctx.Err() != nil {
		return 137
	}
	box.Output(gotAnswer{json.RawMessage(status), json.RawMessage(answer)})
	return 0
}

// echoInside prints its message, as an agent does.
func echoInside(_ context.Context, box servicetest.Sandbox) int {
	box.Print("x\n")
	return 0
}

// bossInside asks a person, and then calls itself.
func bossInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	b.asks("POST", "/ask", "a", `{"text":"Go?","kind":"approval"}`)
	status, answer := b.asks("POST", "/handoff", "k", `{"target":"boss","args":{}}`)
	if ctx.Err() != nil {
		return 137
	}
	box.Output(gotAnswer{json.RawMessage(status), json.RawMessage(answer)})
	return 0
}

// tellInside shows three chunks and a file, which it changes then, and waits until it is told to stop. It
// does, or says that it won't do what it is asked for.
func tellInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	b.shows("k1", `{"name":"story","text":"one "}`)
	b.shows("k2", `{"name":"story","text":"two ","append":true}`)
	b.shows("k3", `{"name":"story","text":"three","append":true,"last":true}`)
	b.writes("f.txt", []byte("first\n"))
	b.shows("k4", `{"id":"the file","file":"f.txt"}`)
	b.writes("f.txt", []byte("second\n"))
	var heard []api.HeardMessage
	last := ""
	b.hears(func(m api.HeardMessage) bool {
		heard, last = append(heard, m), string(servicetest.JSON(m))
		return strings.Contains(last, "stop")
	})
	if ctx.Err() != nil {
		return 137
	}
	if strings.Contains(last, "reject") {
		return b.rejects("that is not mine to do")
	}
	box.Output(map[string]any{"messages": heard})
	return 0
}

// seenInside is of the unit that five clients see. It shows something, waits until it is told to go on, and ends as its input says.
func seenInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	var input struct {
		Does string `json:"does"`
	}
	if box.Input(&input) != nil {
		return 9
	}
	b.shows("first", `{"name":"first","text":"begun"}`)
	if input.Does == "ask" {
		_, said := b.asks("POST", "/ask", "q", `{"text":"Which one?"}`)
		var answer struct{ Answer string }
		if json.Unmarshal([]byte(said), &answer) != nil {
			return 9
		}
		box.Output(map[string]string{"text": "I heard " + answer.Answer})
		return 0
	}
	word := ""
	b.hears(func(m api.HeardMessage) bool {
		for _, p := range m.Parts {
			word += p.Text
		}
		return word != ""
	})
	if ctx.Err() != nil {
		return 137
	}
	if input.Does == "reject" {
		return b.rejects("not mine")
	}
	if input.Does == "stream" || input.Does == "all" {
		b.shows("c1", `{"name":"chunks","text":"one "}`)
		b.asks("POST", "/progress", "", `{"percent":50,"message":"half"}`)
		b.shows("c2", `{"name":"chunks","text":"two ","append":true}`)
		b.shows("b1", `{"name":"beside","data":{"n":1}}`)
		b.shows("c3", `{"name":"chunks","text":"three","append":true,"last":true}`)
	}
	box.Output(b.seen(input.Does, word))
	return 0
}

// seen is what a seen program gives.
func (b boxed) seen(does, word string) map[string]any {
	file := func(name string, size int) map[string]any {
		b.writes(name, []byte(strings.Repeat("x", size)))
		return map[string]any{"file": name}
	}
	switch does {
	case "text":
		return map[string]any{"text": "I heard " + word}
	case "data":
		return map[string]any{"list": []any{1, map[string]any{"two": nil}}, "n": 3}
	case "file":
		return file("dir/small.txt", 1000)
	case "large":
		return file("large.bin", 5<<20)
	case "all":
		gave := file("small.txt", 10)
		gave["text"] = "all"
		return gave
	}
	return map[string]any{}
}

// spoken are the lines that the program of a session is told, one after the other.
type spoken struct {
	boxed
	told int
}

// next waits for the next line; it returns false at the program's end.
func (s *spoken) next(line any) bool {
	for s.ctx.Err() == nil {
		if fed := s.Fed(); len(fed) > s.told {
			s.told++
			return json.Unmarshal([]byte(fed[s.told-1]), line) == nil
		}
		s.rests(2 * time.Millisecond) // as the init, which copies a stdin that grows
	}
	return false
}

// says prints a line of the format.
func (s *spoken) says(kind string, fields map[string]any) {
	fields["type"] = kind
	s.Print(string(servicetest.JSON(fields)) + "\n")
}

func (s *spoken) saysText(text string) {
	content := []any{map[string]string{"type": "text", "text": text}}
	s.says("assistant", map[string]any{"message": map[string]any{"content": content}})
}

func (s *spoken) endsTurn(subtype string, more map[string]any) {
	fields := map[string]any{"subtype": subtype, "session_id": "mine"}
	for key, value := range more {
		fields[key] = value
	}
	s.says("result", fields)
}

// toldLine is what a program is told: a message, an answer, or that it is to stop.
type toldLine struct {
	Type    string
	Message struct{ Content []struct{ Text string } }
	// Response answers a permission, or a hook.
	Response struct {
		ID       string `json:"request_id"`
		Response map[string]any
	}
}

// nextMessage waits for the next line that is a message; alive is false at the program's end.
func (s *spoken) nextMessage() (line toldLine, alive bool) {
	for line.Type != "user" {
		if line = (toldLine{}); !s.next(&line) {
			return line, false
		}
	}
	return line, true
}

// homeOf is where a program's home is on this machine.
func homeOf(box servicetest.Sandbox) string {
	for _, env := range box.Spec.Env {
		if home, is := strings.CutPrefix(env, "HOME="); is {
			return box.Path(home)
		}
	}
	return ""
}

// appends adds a line to a file, and returns how many there are.
func appends(file, line string) int {
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(out, line)
		_ = out.Close() // it was written
	}
	raw, err2 := os.ReadFile(file)
	if errors.Join(err, err2) != nil {
		return -1
	}
	return strings.Count(string(raw), "\n")
}

// talkInside is talkerProgram.
func talkInside(ctx context.Context, box servicetest.Sandbox) int {
	s := &spoken{boxed: boxed{box, ctx}}
	s.says("system", map[string]any{"subtype": "init", "session_id": "mine"})
	stopped := func() { s.endsTurn("interrupted", map[string]any{"result": "stopped"}) }
	heard := 0
	for {
		line, alive := s.nextMessage()
		if !alive {
			return 137
		}
		text := line.Message.Content[0].Text
		heard++
		told := appends(filepath.Join(homeOf(box), "told"), text)
		switch verb, _, _ := strings.Cut(text, " "); verb {
		case "die":
			return 7
		case "wait":
			for line.Type != "control_request" && s.next(&line) {
			}
			stopped()
			continue
		case "may":
			if strings.HasSuffix(text, "well") {
				s.saysText("well: ")
			}
			request := map[string]any{"subtype": "can_use_tool", "tool_name": "Write", "input": map[string]any{}}
			s.says("control_request", map[string]any{"request_id": fmt.Sprintf("q%d", heard), "request": request})
			if !s.next(&line) {
				return 137
			}
			if line.Type == "control_request" { // it is to stop
				stopped()
				continue
			}
			text += fmt.Sprint(" ", line.Response.Response["behavior"]) //nolint:misspell // the name is the protocol's
		}
		for _, part := range []string{fmt.Sprintf("heard %d, ", heard), fmt.Sprintf("told %d: ", told), text} {
			s.saysText(part)
		}
		s.endsTurn("success", nil)
	}
}

// freshInside is freshProgram.
func freshInside(_ context.Context, box servicetest.Sandbox) int {
	at := slices.Index(box.Spec.Cmd, "/talk.py")
	text := box.Spec.Cmd[at+1]
	if at := slices.Index(box.Spec.Cmd, "--resume"); at >= 0 {
		_, _ = fmt.Fprintln(box.Stderr, "resumed", box.Spec.Cmd[at+1])
	}
	told := appends(filepath.Join(homeOf(box), "told"), text)
	reply := map[string]string{"text": fmt.Sprintf("told %d: %s", told, text), "session": "mine"}
	box.Print(string(servicetest.JSON(reply)) + "\n")
	return 0
}

// editInside is editorProgram.
func editInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	if at := slices.Index(box.Spec.Cmd, "/edit.py"); len(box.Spec.Cmd) > at+1 && box.Spec.Cmd[at+1] != "--resume" {
		text, ok := b.edits(box.Spec.Cmd[at+1])
		if !ok {
			return 1
		}
		box.Print(string(servicetest.JSON(map[string]string{"text": text})) + "\n")
		return 0
	}
	s := &spoken{boxed: b}
	for {
		var line toldLine
		if !s.next(&line) {
			return 137
		}
		text, ok := b.edits(line.Message.Content[0].Text)
		if !ok {
			return 1
		}
		s.saysText(text)
		s.endsTurn("success", nil)
	}
}

// edits does what it is told with its project, and says what there is then.
func (b boxed) edits(text string) (said string, ok bool) {
	words := strings.Fields(text)
	dir := b.Path(b.Spec.WorkingDir)
	for _, name := range words[1:] {
		file := filepath.Join(dir, name)
		var err error
		switch words[0] {
		case "append":
			if b.readOnly() {
				return "", false
			}
			appends(file, "more")
		case "out":
			b.writes(name, []byte("for "+name))
		case "remove":
			err = os.Remove(file)
		}
		if err != nil {
			return "", false
		}
	}
	if words[0] == "slow" {
		appends(filepath.Join(dir, "slow.txt"), "slow")
		_, _ = fmt.Fprintln(b.Stderr, "began")
		b.rests(300 * time.Millisecond)
	}
	own, left := strings.Join(filesIn(dir), " "), strings.Join(filesIn(b.Path("/io/output")), " ")
	return fmt.Sprintf("%s; %s; %s", b.Spec.WorkingDir, own, left), true
}

// whereInside prints where it is and what it is given, as its command says.
func whereInside(_ context.Context, box servicetest.Sandbox) int {
	words := []string{"$PWD", box.Spec.WorkingDir, `echo "`, "", `"`, ""}
	for _, env := range box.Spec.Env {
		if word, is := strings.CutPrefix(env, "WORD="); is {
			words = append(words, "$WORD", word)
		}
	}
	box.Print(strings.NewReplacer(words...).Replace(box.Spec.Cmd[len(box.Spec.Cmd)-1]) + "\n")
	return 0
}

// readOnly reports whether the program may not write to its project.
func (b boxed) readOnly() bool {
	return slices.ContainsFunc(b.Spec.Mounts, func(m runtime.Mount) bool {
		return m.ReadOnly && strings.HasPrefix(b.Spec.WorkingDir, m.Target) && m.Target != "/"
	})
}

// filesIn are the files below a directory, in order.
func filesIn(dir string) (names []string) {
	dir, _ = filepath.EvalSymlinks(dir)
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return nil // what can't be read isn't there
	})
	slices.Sort(names)
	return names
}
