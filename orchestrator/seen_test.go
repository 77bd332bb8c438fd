package orchestrator

import (
	"context"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// holding returns a context of requests of a token.
func holding(t *testing.T, name string, scopes ...access.Scope) context.Context {
	ctx, cancel := context.WithTimeout(trusted.Context(t), 20*time.Second)
	t.Cleanup(cancel)
	return access.WithGrant(ctx, access.Grant{Name: name, Scopes: scopes})
}

// byID are the methods of a Service, of its parts and of its features that take what a client names.
func byID(s *Service) map[string]func(ctx context.Context, id string) error {
	all := map[string]func(context.Context, string) error{}
	owners := []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(s.Runs), reflect.ValueOf(s.Feed), reflect.ValueOf(s.Files), reflect.ValueOf(s.Flows), reflect.ValueOf(s.Sessions), reflect.ValueOf(s.Resends), reflect.ValueOf(s.Questions), reflect.ValueOf(s.Units)}
	for _, feature := range s.opts.Features {
		owners = append(owners, reflect.ValueOf(feature))
	}
	for _, of := range owners {
		for i := range of.NumMethod() {
			method, name := of.Method(i), of.Type().Elem().Name()+"."+of.Type().Method(i).Name
			if name[0] == 'F' { // of a feature, which has the name of its package
				name = of.Type().Elem().String() + "." + of.Type().Method(i).Name
			}
			kind := method.Type()
			if name == "Scheduler.Report" { // of a unit that was read
				continue
			}
			if kind.NumIn() < 2 || kind.In(0) != reflect.TypeFor[context.Context]() || kind.In(1).Kind() != reflect.String {
				continue
			}
			all[name] = func(ctx context.Context, id string) error {
				args := []reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(id)}
				for j := 2; j < kind.NumIn(); j++ {
					args = append(args, argument(kind.In(j)))
				}
				return errorOf(method.Call(args))
			}
		}
	}
	return all
}

// argument is one that is enough for a method to look at what was named.
func argument(kind reflect.Type) reflect.Value {
	switch kind {
	case reflect.TypeFor[io.Reader]():
		return reflect.ValueOf(strings.NewReader(""))
	case reflect.TypeFor[api.MessageEvent]():
		return reflect.ValueOf(api.MessageEvent{Parts: []api.Part{{Text: "hi"}}})
	case reflect.TypeFor[api.PushConfig]():
		return reflect.ValueOf(api.PushConfig{URL: "http://canary-hook.example:9/in"})
	}
	if kind.Kind() == reflect.String {
		return reflect.ValueOf("x").Convert(kind)
	}
	return reflect.Zero(kind)
}

// errorOf is the error that a method returned or yielded first.
func errorOf(results []reflect.Value) error {
	for _, result := range results {
		switch value := result.Interface().(type) {
		case error:
			return value
		case iter.Seq2[api.Event, error]:
			for _, err := range value {
				return err
			}
		case iter.Seq2[api.LogEntry, error]:
			for _, err := range value {
				return err
			}
		}
	}
	return nil
}

// Every method that is told an id answers a token without the scope read, about what another one
// made, as about what isn't there. The list of methods is the type's own: a new one is in it.
func TestNoMethodTellsATokenWhatAnotherOneMade(t *testing.T) {
	t.Parallel()
	w := newTelling(t)
	ada, bob := holding(t, "ada", access.Run), holding(t, "bob", access.Run)
	record, _, err := w.service.Submit(ada, spool.Submission{Unit: "worker", Input: encoded(orders{Until: "end"})})
	if err != nil {
		t.Fatal(err)
	}
	w.until(record.ID, running)
	if _, err := w.pushes().CreatePush(ada, record.ID, api.PushConfig{ID: "x", URL: "http://canary-hook.example:9/in"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.schedules().Put(ada, "hers", api.ScheduleSpec{Unit: "worker", Every: "1h"}, nil); err != nil {
		t.Fatal(err)
	}
	hook, err := w.webhooks().Add(ada, api.WebhookRequest{URL: "http://canary-hook.example:9/in"})
	if err != nil {
		t.Fatal(err)
	}
	missing, err := run.NewID()
	if err != nil {
		t.Fatal(err)
	}
	methods := byID(w.service)
	head := access.WithGrant(t.Context(), access.Grant{Name: "eve", Scopes: []access.Scope{access.Admin}, Teams: []string{"b"}})
	for who, ctx := range map[string]context.Context{"another token": bob, "another team's administrator": head, "whoever forgot to say so": t.Context()} {
		for name, call := range methods {
			theirs, none := record.ID, missing
			if strings.HasPrefix(name, "Scheduler.") {
				theirs, none = "hers", "none"
			}
			if strings.HasPrefix(name, "webhooks.") {
				theirs = hook.ID
			}
			puts := slices.Contains([]string{"Scheduler.Put", "Scheduler.Add", "Scheduler.Try"}, name)
			if puts && who != "another token" { // it has its own schedules, whose names begin with that of the team
				continue
			}
			got, want := text(call(ctx, theirs)), text(call(ctx, none))
			if puts { // what isn't there is made
				want = text(fault.New(fault.Conflict, "the name %q is taken", theirs).WithHint("choose another one"))
			} else {
				got = strings.ReplaceAll(got, theirs, none)
			}
			if got != want {
				t.Errorf("%s: %s tells of what others made: %q, and of what isn't there: %q", who, name, got, want)
			}
		}
	}
	for _, name := range []string{"Reader.Get", "Reader.Await", "records.Feed.Events", "Sessions.Get", "messages.Feature.SayOnce", "artifacts.Feature.OpenFile", "Service.Cancel", "pushes.Feature.CreatePush", "Scheduler.Begin", "webhooks.Feature.Test", "Registry.Answer", "Catalogue.Show"} {
		if methods[name] == nil {
			t.Errorf("%s isn't among the methods", name)
		}
	}
	if record, err := w.service.Runs.Get(ada, record.ID); err != nil || record.State != api.Running {
		t.Errorf("it became %s, %v", record.State, err)
	}
	w.open("end")
	w.await(record.ID)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	public := fault.Public(err)
	return public.Msg + ": " + public.Hint
}

func TestListsHaveWhatATokenMayKnowOf(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `
nodes: {ok: {ask: "Well?", next: {approve: end, reject: end}}}
output: {}
`)
	ada, bob, eve := holding(t, "ada", access.Run), holding(t, "bob", access.Run), holding(t, "eve", access.Run, access.Read)
	made := map[string]string{}
	for name, ctx := range map[string]context.Context{"ada": ada, "bob": bob, "own": holding(t, "", access.Admin)} {
		record, _, err := w.service.Submit(ctx, spool.Submission{Unit: "f", Key: name, Input: encoded(chainInput{})})
		if err != nil {
			t.Fatal(err)
		}
		made[record.ID] = name
		within(t, func() bool {
			page, err := w.service.Questions.List(trusted.Context(t), questions.Filter{Run: record.ID})
			return err == nil && len(page.Questions) == 1
		}, func() string { record, _ = w.service.Runs.Get(trusted.Context(t), record.ID); return show(record) })
	}
	lists := map[string]func(ctx context.Context) (ids []string, err error){
		"List": func(ctx context.Context) (ids []string, err error) {
			page, err := w.service.Runs.List(ctx, api.Filter{})
			for _, r := range page.Runs {
				ids = append(ids, r.ID)
			}
			return ids, err
		},
		"ListChanged": func(ctx context.Context) (ids []string, err error) {
			page, err := w.service.Feed.Changed(ctx, api.ChangedFilter{})
			for _, r := range page.Runs {
				ids = append(ids, r.ID)
			}
			if page.Total != len(ids) {
				t.Errorf("a list of %d says that there are %d", len(ids), page.Total)
			}
			return ids, err
		},
		"Questions": func(ctx context.Context) (ids []string, err error) {
			page, err := w.service.Questions.List(ctx, questions.Filter{})
			for _, q := range page.Questions {
				ids = append(ids, q.Run)
			}
			return ids, err
		},
	}
	for name, list := range lists {
		for who, ctx := range map[string]context.Context{"ada": ada, "bob": bob, "ada bob own": eve} {
			ids, err := list(ctx)
			var got []string
			for _, id := range ids {
				got = append(got, made[id])
			}
			slices.Sort(got)
			if err != nil || strings.Join(got, " ") != who {
				t.Errorf("%s shows %v, %v; want %s", name, got, err, who)
			}
		}
	}
	for who, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // it is what is tried
		joined bool
	}{"bob": {bob, false}, "eve": {eve, false}, "ada": {ada, true}} {
		record, joined, err := w.service.Submit(c.ctx, spool.Submission{Unit: "f", Key: "ada", Input: encoded(chainInput{})})
		if err != nil || joined != c.joined || joined && made[record.ID] != "ada" {
			t.Errorf("%s with the key that ada has used: %v, %v", who, joined, err)
		}
	}
	page, err := w.service.Questions.List(ada, questions.Filter{})
	if err != nil || len(page.Questions) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	id := page.Questions[0].ID
	if err := w.service.Questions.Answer(bob, id, api.Answer{Action: "approve"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("another's answer: %v", err)
	}
	if err := w.service.Questions.Answer(ada, id, api.Answer{Action: "approve"}); err != nil {
		t.Error(err)
	}
	for id := range made {
		_, _ = w.service.Cancel(trusted.Context(t), id, "enough")
		w.await(id)
	}
}

// A call is made for whoever made its caller.
func TestCallsAreOfTheirCallersToken(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `
start: work
nodes:
  work: {run: worker, with: {mark: a}, next: end}
output: {}
`)
	ada := holding(t, "ada", access.Run)
	record, _, err := w.service.Submit(ada, spool.Submission{Unit: "f", Input: encoded(chainInput{})})
	if err != nil {
		t.Fatal(err)
	}
	w.await(record.ID)
	page, err := w.service.Runs.List(ada, api.Filter{Parent: record.ID})
	if err != nil || len(page.Runs) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if child, err := w.service.Runs.Get(ada, page.Runs[0].ID); err != nil || child.By != "ada" {
		t.Errorf("it is of %q, %v", child.By, err)
	}
}

func TestASessionTakesTurnsOfItsOwnTokenAlone(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withTalks)
	ada, bob, eve := holding(t, "ada", access.Run), holding(t, "bob", access.Run), holding(t, "eve", access.Run, access.Read)
	made, err := w.service.Sessions.Create(ada, "talks", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.start()
	for name, call := range map[string]func(ctx context.Context, id string) error{
		"Session": func(ctx context.Context, id string) error { _, err := w.service.Sessions.Get(ctx, id); return err },
		"LastChange": func(ctx context.Context, id string) error {
			_, err := w.service.Sessions.LastChange(ctx, id)
			return err
		},
		"CloseSession": func(ctx context.Context, id string) error {
			_, err := w.service.Sessions.Close(ctx, id, "x")
			return err
		},
		"Submit": func(ctx context.Context, id string) error {
			_, _, err := w.service.Submit(ctx, spool.Submission{Unit: "talks", Session: id, Input: encoded(map[string]string{"message": "hi"})})
			return err
		},
	} {
		missing := "01a1feba-b3df-731f-9394-1f77680bf6ce"
		if got, want := text(call(bob, made.ID)), text(call(bob, missing)); strings.ReplaceAll(got, made.ID, missing) != want {
			t.Errorf("%s tells of another's: %q, and of what isn't there: %q", name, got, want)
		}
	}
	for who, ctx := range map[int]context.Context{0: bob, 1: ada} {
		page, err := w.service.Sessions.List(ctx, turns.Filter{})
		if err != nil || len(page.Sessions) != who {
			t.Errorf("the list has %d, %v, want %d", len(page.Sessions), err, who)
		}
	}
	if _, err := w.service.Sessions.Get(eve, made.ID); err != nil {
		t.Error(err)
	}
	if session, err := w.service.Sessions.Get(ada, made.ID); err != nil || session.State != api.SessionOpen {
		t.Errorf("%+v, %v", session, err)
	}
}
