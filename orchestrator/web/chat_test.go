package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
)

var talker = map[string]string{
	"talker/Dockerfile": "FROM base:1\n",
	"talker/agent.yaml": "name: talker\nkind: agent\nagent: {command: [cat], mode: interactive, resume: [again]}\n",
}

// say posts a form with files: of each pair the first is a control's name, with a name of a file behind "@".
func (p *page) say(path string, parts ...string) answer {
	p.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(parts); i += 2 {
		name, file, isFile := strings.Cut(parts[i], "@")
		var into io.Writer
		var err error
		if isFile {
			into, err = w.CreateFormFile(name, file)
		} else {
			into, err = w.CreateFormField(name)
		}
		must(p.t, err)
		_, _ = into.Write([]byte(parts[i+1]))
	}
	must(p.t, w.Close())
	r, err := http.NewRequestWithContext(trusted.Context(p.t), http.MethodPost, p.url+path, &body)
	must(p.t, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return p.do(r)
}

func TestTheMenuHasChatWhereAUnitHasSessions(t *testing.T) {
	t.Parallel()
	newPage(t).signIn().get("/ui/runs").wants(t, 200).lacks(t, ">Chat<")
	newPage(t, talker).signIn().get("/ui/runs").wants(t, 200, ">Chat<")
}

// taker takes messages, and does what is in them.
var taker = map[string]string{
	"taker/Dockerfile": "FROM base:1\nCMD [\"actor\"]\n",
	"taker/tools.yaml": "[]\n",
	"taker/agent.yaml": "name: taker\n",
	"taker/schema.json": `{"input": {"type": "object", "properties": {"message": {"type": "string"}, "history": {"type": "list"}, "file": {"type": "string", "format": "file_path"}}, "required": ["message"]},
		"output": {"type": "object"}}`,
}

func TestAConversationWithAUnitThatTakesMessages(t *testing.T) {
	t.Parallel()
	p := newPage(t, taker).signIn()
	p.get("/ui/chat").wants(t, 200, ">Chat<", "<option>taker", "aod chat taker").lacks(t, "<option>actor")
	to := p.post("/ui/chat", "unit", "taker").wants(t, 303).Header.Get("Location")
	p.get("/ui/"+to).wants(t, 200, "Nothing was said yet", `name="message"`, `name="file:file"`).lacks(t, "End session")
	name, _, _ := strings.Cut(strings.TrimPrefix(to, "chat/"), "?")
	turn := func(message string) (last api.Record) {
		t.Helper()
		p.say("/ui/"+to, "key", message, "message", message, "file:file@a.txt", "x").leads(t, "../"+to+"#say")
		page, err := p.svc.Runs.List(trusted.Context(t), api.Filter{Context: name, Limit: 1})
		must(t, err)
		p.until(page.Runs[0].ID, func(r api.Record) bool { last = r; return r.Outcome != "" })
		return last
	}
	turn("fail")
	first := turn("<b>one</b>")
	second := turn("two")
	var input struct {
		History []struct{ Role, Content string }
		File    string
	}
	must(t, json.Unmarshal(second.Input, &input))
	if h := input.History; second.Unit != "taker" || input.File != "a.txt" || len(h) != 2 || h[0].Content != "<b>one</b>" || h[1].Role != "assistant" || h[1].Content != string(first.Output) {
		t.Errorf("%s after %s", second.Input, first.Output)
	}
	p.get("/ui/chat/"+name).wants(t, 200, "&lt;b&gt;one", "/runs/"+second.ID, "Succeeded", `name="message"`).lacks(t, "history", "turn 0")
	p.get("/ui/chat").wants(t, 200, "Conversations of late", to, `<td class="n">3`)

	t.Run("while a turn goes on nothing more is said", func(t *testing.T) {
		for range 2 { // sent twice it is one turn
			p.say("/ui/"+to, "key", "again", "message", "wait").wants(t, 303)
		}
		p.get("/ui/"+to).wants(t, 200, "You can say more when").lacks(t, `name="message"`)
		p.get("/ui/chat").wants(t, 200, "Answering", `<td class="n">4`)
	})
	t.Run("others' names and units are none", func(t *testing.T) {
		p.get("/ui/chat/other").wants(t, 404)
		p.get("/ui/chat/other?unit=actor").wants(t, 404)
		p.get("/ui/chat/"+name+"?unit=nobody").wants(t, 404)
		p.get("/ui/chat/%01?unit=taker").wants(t, 404)
		p.say("/ui/chat/other?unit=actor", "message", "x").wants(t, 404)
		p.say("/ui/chat/"+strings.Repeat("x", 300)+"?unit=taker", "message", "x").wants(t, 404)
	})
	t.Run("a name may have any characters", func(t *testing.T) {
		const odd = "chat/a:b%2Fc%22%3F?unit=taker"
		p.say("/ui/"+odd, "message", "odd").leads(t, "../"+odd+"#say")
		p.get("/ui/"+odd).wants(t, 200, ">odd<")
		p.get("/ui/chat").wants(t, 200, odd)
	})
	p.signIn(access.Read)
	p.get("/ui/"+to).wants(t, 200).lacks(t, `name="message"`)
	p.say("/ui/"+to, "message", "x").wants(t, 403)
}

func TestAChat(t *testing.T) {
	t.Parallel()
	p := newPage(t, talker).signIn()
	narrow, err := p.tokens.Add(access.Grant{Name: "narrow", Scopes: []access.Scope{access.Read, access.Run}, Units: []string{"actor"}})
	must(t, err)
	p.post("/ui/login", "token", narrow).wants(t, 303)
	p.get("/ui/chat").wants(t, 200, "Nobody was talked with yet").lacks(t, "talker")
	p.signIn()
	p.get("/ui/chat").wants(t, 200, "Nobody was talked with yet", "<option>talker").lacks(t, "<option>actor")
	p.post("/ui/chat", "unit", "actor").wants(t, 409)
	p.post("/ui/chat", "unit", "nobody").wants(t, 404)
	to := p.post("/ui/chat", "unit", "talker").wants(t, 303).Header.Get("Location")
	at := "/ui/" + to
	p.get("/ui/chat").wants(t, 200, to, "Open")
	p.get(at).wants(t, 200, "Nothing was said yet", `name="message"`, `name="file:files" multiple`)

	for range 2 { // sent twice it is one turn
		p.say(at, "key", "k", "message", "<b>hello</b>\r\nthere", "file:files@", "", "file:files@../a.txt", "x").leads(t, "../"+to+"#say")
	}
	var last api.Record
	page, err := p.svc.Runs.List(trusted.Context(t), api.Filter{Session: strings.TrimPrefix(to, "chat/")})
	must(t, err)
	if len(page.Runs) != 1 {
		t.Fatalf("turns: %+v", page.Runs)
	}
	p.until(page.Runs[0].ID, func(r api.Record) bool { last = r; return r.Outcome != "" })
	if !strings.Contains(string(last.Input), `\nthere`) || !strings.Contains(string(last.Input), "a.txt") || strings.Contains(string(last.Input), `\r`) {
		t.Errorf("input: %s", last.Input)
	}
	p.get(at).wants(t, 200, "&lt;b&gt;hello", "turn 1", "/runs/"+last.ID, `title="a.txt"`).lacks(t, "<b>hello")

	t.Run("who may only read says nothing", func(t *testing.T) {
		p.signIn(access.Read)
		p.get(at).wants(t, 200).lacks(t, `name="message"`, "End the session")
		p.get("/ui/chat").wants(t, 200).lacks(t, "<option>talker")
		p.say(at, "message", "x").wants(t, 403)
		p.post(at+"/end").wants(t, 403)
		p.post("/ui/chat", "unit", "talker").wants(t, 403)
		p.signIn()
	})
	t.Run("what isn't a message is refused", func(t *testing.T) {
		p.say(at, "input", "{").wants(t, 422)
		p.say(at, "message", strings.Repeat("x", 2<<20)).wants(t, 413)
		p.say(at, "message", "x", "file:nofield@f", "x").wants(t, 422)
		p.post(at, "message", "x").wants(t, 400)
		p.say("/ui/chat/x", "message", "x").wants(t, 404)
		p.get("/ui/chat/x").wants(t, 404)
	})
	p.post(at+"/end").leads(t, "../"+strings.TrimPrefix(to, "chat/"))
	p.get(at).wants(t, 200, "The session has ended", "somebody ended it").lacks(t, `name="message"`)
	p.get("/ui/chat").wants(t, 200, "Ended")
	p.say(at, "message", "more").wants(t, 409)
}
