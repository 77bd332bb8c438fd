package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/conversation"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

func (p *Page) addChat() {
	c := chats{runPages{p}}
	p.page("/ui/chat", c.list)
	p.page("/ui/chat/{id}", c.show)
	p.run("POST /ui/chat", c.begin)
	p.run("POST /ui/chat/{id}", c.say)
	p.run("POST /ui/chat/{id}/end", c.end)
}

// chats are the pages of sessions, and of conversations without one.
type chats struct{ runPages }

// chatList is the list of sessions.
type chatList struct {
	Open, Over []chatRow
	Talks      []chatRow // conversations
	MoreOpen   bool
	Units      []string // with which one can be begun
	Next       int64
	Later      bool
}

// chatRow is a session of the list; or a conversation, which has its name for an id.
type chatRow struct {
	api.Session
	Named bool // it is a conversation
}

// Is is how it stands.
func (c chatRow) Is() state {
	switch c.State {
	case api.SessionBusy:
		return state{"run", "Answering"}
	case api.SessionClosed:
		return state{"off", "Ended"}
	}
	return state{"ok", "Open"}
}

// Count is how many turns it has had.
func (c chatRow) Count() int64 { return int64(c.Turns) }

// Ended reports whether there will be no further turn.
func (c chatRow) Ended() bool { return c.State == api.SessionClosed }

// sessionPage is how many sessions a page shows, and turnPage how many turns.
const sessionPage, turnPage = 50, 50

func (p chats) list(r *request) (content, error) {
	list, err := p.read(r.Context(), numberOf(r, "after"))
	if err != nil {
		return content{}, err
	}
	return content{
		title: "Chat", section: "chat", follow: p.followSessions,
		parts: []part{{"head", "chats-head", nil}, {"new", "chats-new", list}, {"rows", "chats-rows", list}},
	}, nil
}

// read lists the sessions that are open, and a page of those that are over.
func (p chats) read(ctx context.Context, after int64) (list chatList, err error) {
	list.Later = after > 0
	if !list.Later {
		open, err := p.svc.Sessions.List(ctx, turns.Filter{Open: true, Limit: sessionPage})
		if err != nil {
			return list, err
		}
		for _, s := range open.Sessions {
			list.Open = append(list.Open, chatRow{Session: s})
		}
		list.MoreOpen = open.Next != nil
		talkers, takers, err := p.talkers(ctx)
		if err != nil {
			return list, err
		}
		if list.Talks, err = p.talks(ctx, takers); err != nil {
			return list, err
		}
		list.Units = slices.Sorted(slices.Values(append(talkers, takers...)))
	}
	all, err := p.svc.Sessions.List(ctx, turns.Filter{After: after, Limit: sessionPage})
	for _, s := range all.Sessions {
		if row := (chatRow{Session: s}); row.Ended() {
			list.Over = append(list.Over, row)
		} else if list.Later {
			list.Open = append(list.Open, row)
		}
	}
	list.Next = behind(all.Next)
	return list, err
}

// talkers are the units with which a session can be begun, and takers others that take messages.
func (p chats) talkers(ctx context.Context) (talkers, takers []string, err error) {
	all, err := p.svc.Units.Usable(ctx)
	for _, u := range all {
		if p.svc.Sessions.Offers(u) {
			talkers = append(talkers, u.Name)
		} else if takesMessages(u) {
			takers = append(takers, u.Name)
		}
	}
	return talkers, takers, err
}

// chatsKnown is how long it counts whether there is anything to chat with.
const chatsKnown = 10 * time.Second

// mostChatters is of how many it is known.
const mostChatters = 200

// chatsFound tells whether there is anything to chat with, or was, for those who may know of the same.
type chatsFound struct {
	mu sync.Mutex
	of map[string]chatsAt
}

type chatsAt struct {
	at  time.Time
	has bool
}

// find returns what is known for the client of ctx. Where that is old, one of those who ask has to find it out.
func (c *chatsFound) find(ctx context.Context) (has, old bool) {
	key := access.ReachOf(ctx).Key()
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.of[key]
	if time.Since(kept.at) < chatsKnown {
		return kept.has, false
	}
	if c.of == nil || len(c.of) >= mostChatters {
		c.of = map[string]chatsAt{}
	}
	c.of[key] = chatsAt{time.Now(), kept.has}
	return kept.has, true
}

// known returns what was known last for the client of ctx.
func (c *chatsFound) known(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[access.ReachOf(ctx).Key()].has
}

func (c *chatsFound) keep(ctx context.Context, found chatsAt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[access.ReachOf(ctx).Key()] = found
}

// exist finds out whether there is anything to chat with, or was: else the menu doesn't have it.
func (p chats) exist(ctx context.Context) bool {
	had, old := p.hasChats.find(ctx)
	if !old {
		return had
	}
	some, err := p.svc.Sessions.List(ctx, turns.Filter{Limit: 1})
	has := len(some.Sessions) > 0
	if err == nil && !has {
		var talkers, takers []string
		talkers, takers, err = p.talkers(access.WithServer(ctx))
		has = len(talkers)+len(takers) > 0
	}
	if err != nil {
		p.hasChats.keep(ctx, chatsAt{has: had})
		return had
	}
	p.hasChats.keep(ctx, chatsAt{time.Now(), has})
	return has
}

// chatView is a session or a conversation with its turns.
type chatView struct {
	chatRow
	Turns   []turnView // the oldest first
	Earlier string     // the cursor of the turns before these; "": there are none
	Past    bool       // these aren't the last turns
	Takes   takes
}

// turnView is a turn of a session: what was said, and what the unit answered.
type turnView struct {
	api.Record
	Is       state
	Told     string // how far it is, while it goes on
	Said     string
	Sent     []string // the files that came with it
	With     string   // what the input has beside these, as JSON
	Answer   string   // as far as it is there
	AnswerIs string   // what the output has beside its text, as JSON
	Asks     string   // the text of its open question
	Given    []fileView
}

// Spent is what it and all that it called took of models.
func (t turnView) Spent() *api.ModelTotal { return t.Models.Total() }

// Ended reports whether it has its outcome.
func (t turnView) Ended() bool { return t.Outcome != "" }

// Waits reports whether nothing can be said until the turn that goes on has ended.
func (v chatView) Waits() bool { return v.Named && v.State == api.SessionBusy }

// takes is what a message of a unit may have.
type takes struct {
	Message bool // it has a text; else the whole input is given
	Files   []fileField
}

// OneFile reports whether there is one field for files, which needs no name.
func (t takes) OneFile() bool { return len(t.Files) == 1 }

// fileField is a field of the input for files.
type fileField struct {
	Key, Label string
	Many       bool
}

func (p chats) show(r *request) (content, error) {
	query := r.URL.Query()
	v, err := p.one(r.Context(), r.PathValue("id"), query.Get("unit"), query.Get("before"))
	if err != nil {
		return content{}, err
	}
	c := content{
		title: "Chat with " + v.Unit, section: "chat",
		parts: []part{{"head", "chat-head", v.chatRow}, {"turns", "chat-turns", v}, {"say", "chat-say", v}},
	}
	if !v.Ended() {
		c.follow = func(ctx context.Context, changed func()) { p.followTurns(ctx, v.filter(), changed) }
	}
	return c, nil
}

// filter finds the turns.
func (c chatRow) filter() api.Filter {
	if c.Named {
		return api.Filter{Context: c.ID, Unit: c.Unit}
	}
	return api.Filter{Session: c.ID}
}

func (p chats) one(ctx context.Context, id, unit, before string) (v chatView, err error) {
	if httpwire.IsRunID(id) {
		v.Session, err = p.svc.Sessions.Get(ctx, id)
	} else {
		v.chatRow, _, err = p.named(ctx, id, unit)
	}
	if err != nil {
		return v, err
	}
	filter := v.filter()
	filter.Limit, filter.Cursor = turnPage, before
	page, err := p.svc.Runs.List(ctx, filter)
	if err != nil {
		return v, err
	}
	if page.Next != nil {
		v.Earlier = *page.Next
	}
	v.Past, v.Takes = before != "", p.takes(ctx, v.Session)
	slices.Reverse(page.Runs)
	for _, run := range page.Runs {
		turn, err := p.turn(ctx, run.ID, v.Takes)
		if fault.Is(err, fault.NotFound) { // it was removed just now
			continue
		}
		if err != nil {
			return v, err
		}
		v.Turns = append(v.Turns, turn)
	}
	return v, nil
}

func (p chats) turn(ctx context.Context, id string, with takes) (t turnView, err error) {
	if t.Record, err = p.svc.Runs.Get(ctx, id); err != nil {
		return t, err
	}
	t.Is = stateOf(t.State, t.Outcome, t.Question != nil)
	asked, answered := partsOf(t.Input), partsOf(t.Output)
	if t.Session == "" {
		delete(asked, "history") // which is above it
	}
	t.Said, t.Sent, t.With = asked.text("message"), asked.files(with.Files), asked.rest()
	t.Answer, t.AnswerIs = answered.text("text"), answered.rest()
	t.Given = p.filesOf(ctx, t.Record)
	switch {
	case t.Ended():
	case t.Question != nil:
		if asked, err := p.svc.Questions.Get(ctx, t.Question.ID); err == nil {
			t.Asks = cleaned(asked.Text)
		}
	default:
		t.Told, t.Answer = p.progressOf(ctx, id, nil), saysOf(ctx, p.svc, id)
	}
	return t, nil
}

// takes tells what the next message of a session may have. Its version of the unit may be gone: then it says so when
// it is asked.
func (p chats) takes(ctx context.Context, s api.Session) takes {
	u, err := p.svc.Units.Version(ctx, s.Unit, s.Version)
	if err != nil {
		return takes{Message: true}
	}
	var t takes
	for _, f := range u.Contract.Input.Form().Fields {
		many := f.Kind == form.List && f.Item != nil && f.Item.Kind == form.File
		switch {
		case f.Key == "message" && f.Kind == form.Text:
			t.Message = true
		case many || f.Kind == form.File:
			t.Files = append(t.Files, fileField{f.Key, f.Label, many})
		}
	}
	return t
}

// parts are the members of a document that aren't shown yet.
type parts map[string]json.RawMessage

func partsOf(raw json.RawMessage) (all parts) {
	_ = json.Unmarshal(raw, &all) // else there are none
	return all
}

// text takes a text out.
func (p parts) text(name string) (text string) {
	if json.Unmarshal(p[name], &text) == nil {
		delete(p, name)
	}
	return cleaned(text)
}

// files takes the names of files out.
func (p parts) files(fields []fileField) (names []string) {
	for _, f := range fields {
		var several []string
		if json.Unmarshal(p[f.Key], &several) == nil {
			names = append(names, several...)
			delete(p, f.Key)
		} else if one := p.text(f.Key); one != "" {
			names = append(names, one)
		}
	}
	return names
}

// rest is what was left, as JSON.
func (p parts) rest() string {
	if len(p) == 0 {
		return ""
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	return pretty(raw)
}

// begin begins a session with a unit, or a conversation.
func (p chats) begin(w http.ResponseWriter, r *request) error {
	fields, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	u, err := p.svc.Units.Get(r.Context(), fields.Get("unit"))
	if err == nil && !p.svc.Sessions.Offers(u) && takesMessages(u) {
		redirect(w, chatRow{Named: true, Session: api.Session{ID: conversation.NewName(), Unit: u.Name}}.At())
		return nil
	}
	session, err := p.svc.Sessions.Create(r.Context(), fields.Get("unit"), nil)
	if err != nil {
		return err
	}
	redirect(w, chatRow{Session: session}.At())
	return nil
}

// say begins the next turn of a session or a conversation.
func (p chats) say(w http.ResponseWriter, r *request) error {
	row := chatRow{Session: api.Session{ID: r.PathValue("id")}, Named: !httpwire.IsRunID(r.PathValue("id"))}
	posted := p.newUpload(contract.DefaultMaxBytes)
	posted.place = func(control, base string) (field, name string) {
		return strings.TrimPrefix(control, "file:"), base // as its template has it
	}
	err := posted.read(r)
	if err != nil {
		return err
	}
	input := json.RawMessage(posted.Get("input"))
	if len(strings.TrimSpace(posted.Get("input"))) == 0 {
		if input, err = json.Marshal(map[string]string{"message": plainEnds(posted.Get("message"))}); err != nil {
			return err
		}
	}
	sub := spool.Submission{
		Session: row.ID, Input: input, Files: posted.spool, Key: posted.Get("key"),
		TraceParent: httpwire.TraceParent(r.Request),
	}
	if row.Named {
		sub.Session, row.Unit = "", r.URL.Query().Get("unit")
		if err = p.next(r.Context(), row.ID, row.Unit, plainEnds(posted.Get("message")), &sub); err != nil {
			_ = posted.spool.Remove() // the error that led here is the one to tell
			return err
		}
	}
	if _, _, err = p.svc.Submit(r.Context(), sub); err != nil { // which owns the files
		return err
	}
	redirect(w, "../"+row.At()+"#say")
	return nil
}

// end ends a session. What goes on in it is cancelled.
func (p chats) end(w http.ResponseWriter, r *request) error {
	session, err := p.svc.Sessions.Close(r.Context(), r.PathValue("id"), "somebody ended it")
	if err != nil {
		return err
	}
	redirect(w, "../"+session.ID)
	return nil
}
