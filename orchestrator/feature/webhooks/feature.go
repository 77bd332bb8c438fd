package webhooks

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Feature implements feature.Feature: it has the webhooks of a server. Where runs end with their process there are
// none.
type Feature struct {
	told    *pushes.Feature
	library feature.Library
	gate    feature.Gate
	store   *store.Store
	secrets secrets.Files
	logger  *slog.Logger
	tests   chan struct{} // a place for each test that goes on

	changing sync.Mutex // held from the file of a secret to its row
}

// mostTests bounds the tests that go on at once.
const mostTests = 4

// New returns a Feature whose deliveries told makes.
func New(told *pushes.Feature) *Feature {
	f := &Feature{told: told, tests: make(chan struct{}, mostTests)}
	told.Webhooks(f.compose)
	return f
}

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.library, f.gate, f.store, f.logger = p.Library, p.Gate, p.Store, p.Logger
	f.secrets = secrets.Files{Dir: filepath.Join(p.Home.Dir, layout.Webhooks)}
	return nil
}

// Join implements feature.Feature.
func (f *Feature) Join(context.Context, *run.Run, feature.Part) feature.Part {
	return feature.Indifferent{}
}

// Add makes a webhook, of the team of the client of ctx. Its secret is in what it returns, and nowhere else again. The
// error is a fault: Unsupported where there are no webhooks, Input with findings for what is refused, NotFound for an
// unknown run, Conflict for one that has ended, TooLarge where there are too many.
func (f *Feature) Add(ctx context.Context, r api.WebhookRequest) (api.Webhook, error) {
	row, secret, err := f.asked(ctx, r)
	if err != nil {
		return api.Webhook{}, err
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	if err := f.keep(row.ID, secret); err != nil {
		return api.Webhook{}, err
	}
	stored, err := f.store.Webhooks.Add(audited(ctx, "add", row), row)
	if err != nil {
		_ = f.secrets.Remove(fileOf(row.ID)) // if it stays, RemoveStrays finds it
		return api.Webhook{}, err
	}
	f.logger.Info("webhook stored", "webhook", stored.ID)
	made := shown(stored)
	made.Secret = secret
	return made, nil
}

// asked checks what is asked for, and completes it.
func (f *Feature) asked(ctx context.Context, r api.WebhookRequest) (row store.Webhook, secret string, err error) {
	owner, reach := access.OwnerOf(ctx), access.ReachOf(ctx)
	if err := f.gate.Admits(ctx); err != nil {
		return row, "", err
	}
	if r.Run != "" {
		if _, err := f.library.RunDir(ctx, r.Run); err != nil {
			return row, "", err
		}
	}
	if !reach.Sees(owner) {
		return row, "", fault.New(fault.Forbidden, "a webhook tells nobody what its maker may not see")
	}
	if secret = r.Secret; secret == "" {
		secret = newSecret()
	}
	if _, err := ParseSecret(secret); err != nil {
		return row, "", err
	}
	events, err := eventsOf(r.Events)
	if err != nil {
		return row, "", err
	}
	to, err := f.told.HookTo(ctx, r.URL)
	if err != nil {
		return row, "", err
	}
	id, err := run.NewID()
	return store.Webhook{
		ID: id, Team: owner.Team, MadeBy: owner.By, OnlyBy: reach.By, Run: r.Run, URL: to.URL, Host: to.Host,
		Events: events, CreatedAt: time.Now().UTC(),
	}, secret, err
}

// Rotate gives a webhook another secret, which is in what it returns, and nowhere else again. The one before signs
// along until the grace is over. The errors are those of Add, and NotFound for a webhook that isn't there.
func (f *Feature) Rotate(ctx context.Context, id string, r api.WebhookRotation) (api.Webhook, error) {
	row, err := f.known(ctx, id)
	if err != nil {
		return api.Webhook{}, err
	}
	if err := f.gate.Admits(ctx); err != nil {
		return api.Webhook{}, err
	}
	grace, err := access.ParseGrace(r.Grace)
	if err != nil {
		return api.Webhook{}, err
	}
	secret := cmp.Or(r.Secret, newSecret())
	if _, err := ParseSecret(secret); err != nil {
		return api.Webhook{}, err
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	kept, err := f.secrets.Read(fileOf(id))
	if err != nil && !fault.Is(err, fault.NotFound) {
		return api.Webhook{}, errUnreadable(err)
	}
	if err := f.keep(id, rotated(secret, string(kept), time.Now(), grace)); err != nil {
		return api.Webhook{}, err
	}
	f.logger.Info("secret of a webhook rotated", "webhook", id)
	made := shown(row)
	made.Secret = secret
	return made, f.store.Audits.Did(ctx, store.Audited{Team: row.Team, Verb: "rotate", Noun: noun, Object: id})
}

// keep keeps the secrets of a webhook.
func (f *Feature) keep(id, secrets string) error {
	if err := f.secrets.Set(fileOf(id), strings.NewReader(secrets)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the secret of the webhook can't be stored").
			WithHint("the server's log has the reason; try again later")
	}
	return nil
}

// eventsOf are the types of which a webhook is to tell, in their order.
func eventsOf(asked []string) (events []string, err error) {
	all := api.WebhookEvents()
	for _, event := range asked {
		if !slices.Contains(all, event) {
			return nil, fault.New(fault.Input, "webhooks tell of no event %s", fault.Quote(event)).
				WithHint("the events are %s", strings.Join(all, ", "))
		}
	}
	if len(asked) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(event string) bool { return !slices.Contains(asked, event) }), nil
}

// Get returns a webhook, or a NotFound fault.
func (f *Feature) Get(ctx context.Context, id string) (api.Webhook, error) {
	row, err := f.known(ctx, id)
	return shown(row), err
}

// known returns a webhook that the client of ctx may know of, or a NotFound fault.
func (f *Feature) known(ctx context.Context, id string) (store.Webhook, error) {
	row, err := f.store.Webhooks.Get(ctx, id)
	if err == nil && !access.Sees(ctx, access.Owner{Team: row.Team, By: row.MadeBy}) {
		return store.Webhook{}, store.UnknownWebhook()
	}
	return row, err
}

// List lists webhooks, the newest first. Before is what a page before had as its Next; 0 begins at the newest. The
// limit is 1 to 1000; 0 is 100.
func (f *Feature) List(ctx context.Context, before int64, limit int) (api.WebhookPage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.WebhookPage{}, err
	}
	rows, err := f.store.Webhooks.List(ctx, store.OwnedFor(ctx), before, limit)
	page := api.WebhookPage{Webhooks: make([]api.Webhook, 0, len(rows))}
	for _, row := range rows {
		page.Webhooks = append(page.Webhooks, shown(row))
	}
	if len(rows) == limit {
		page.Next = new(f.store.Webhooks.Behind(rows[limit-1]))
	}
	return page, err
}

// Delete has a receiver hear nothing more, but for requests that are under way. A webhook that isn't there is a
// NotFound fault.
func (f *Feature) Delete(ctx context.Context, id string) error {
	row, err := f.known(ctx, id)
	if err != nil {
		return err
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	if err := f.store.Webhooks.Delete(audited(ctx, "remove", row), id); err != nil {
		return err
	}
	if err := f.secrets.Remove(fileOf(id)); err != nil && !fault.Is(err, fault.NotFound) {
		f.logger.Warn("secret of a webhook not removed, will be later", "webhook", id, fault.LogAttr(err))
	}
	return nil
}

// Test makes a request to the receiver now, and says what became of it. A webhook that isn't there is a NotFound fault;
// too many tests at once are Busy.
func (f *Feature) Test(ctx context.Context, id string) (api.WebhookTest, error) {
	row, err := f.known(ctx, id)
	if err != nil {
		return api.WebhookTest{}, err
	}
	to, err := f.told.HookTo(ctx, row.URL)
	if err != nil {
		return api.WebhookTest{}, err
	}
	select {
	case f.tests <- struct{}{}:
		defer func() { <-f.tests }()
	default:
		return api.WebhookTest{}, fault.New(fault.Busy, "%d tests of webhooks go on", mostTests).WithHint("try again")
	}
	message, err := run.NewID()
	if err != nil {
		return api.WebhookTest{}, err
	}
	m, err := f.message(id, message, body{api.WebhookTested, time.Now().UTC(), testData{id}})
	if err != nil {
		return api.WebhookTest{}, err
	}
	did := store.Audited{Team: row.Team, Verb: "test", Noun: noun, Object: id}
	if err := f.store.Audits.Did(ctx, did); err != nil {
		return api.WebhookTest{}, err
	}
	began := time.Now()
	word, status := f.told.SendHook(ctx, to, m)
	return api.WebhookTest{Outcome: string(word), Status: status, MS: time.Since(began).Milliseconds()}, nil
}

// sweepEvery is how often the secrets are looked for that went with their runs.
const sweepEvery = time.Hour

// Run implements feature.Runner: it removes secrets that no webhook has any more, until ctx ends.
func (f *Feature) Run(ctx context.Context) {
	for pause.For(ctx, sweepEvery) == nil {
		if err := f.RemoveStrays(ctx); err != nil && ctx.Err() == nil {
			f.logger.Warn("secrets of webhooks not removed", fault.LogAttr(err))
		}
	}
}

// RemoveStrays implements feature.Sweeper: it removes the secrets that no webhook has.
func (f *Feature) RemoveStrays(ctx context.Context) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	all, err := f.secrets.List()
	if err != nil {
		return err
	}
	for _, kept := range all {
		_, err := f.store.Webhooks.Get(ctx, strings.TrimPrefix(kept.Name, filePrefix))
		if fault.Is(err, fault.NotFound) {
			err = f.secrets.Remove(kept.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keysFor returns the keys that sign what a webhook says now.
func (f *Feature) keysFor(id string) ([]Key, error) {
	kept, err := f.secrets.Read(fileOf(id))
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Conflict, "the webhook has lost its secret, which no backup has").
			WithHint("`aod webhook rotate %s` gives it another one", id)
	}
	if err != nil {
		return nil, errUnreadable(err)
	}
	return keysOf(string(kept), time.Now())
}

func errUnreadable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the secret of the webhook can't be read").
		WithHint("its file in the server's data directory has to be readable for the server alone")
}

const (
	noun       = "webhook"
	filePrefix = "webhook-" // of the file of a secret, before the webhook's id
)

func fileOf(id string) string { return filePrefix + id }

// audited returns a context of what its client does with a webhook.
func audited(ctx context.Context, verb string, row store.Webhook) context.Context {
	return store.Audit(ctx, store.Audited{Team: row.Team, Verb: verb, Noun: noun, Object: row.ID})
}

// shown returns a webhook as clients see it.
func shown(w store.Webhook) api.Webhook {
	state := api.WebhookActive
	switch {
	case !w.GivenUpAt.IsZero():
		state = api.WebhookGivenUp
	case w.Failures > 0:
		state = api.WebhookFailing
	}
	return api.Webhook{
		ID: w.ID, URL: w.URL, Run: w.Run, Events: w.Events, By: w.MadeBy, Owner: api.OwnerOf(w.Team, w.MadeBy),
		OwnOnly: w.OnlyBy != "", CreatedAt: w.CreatedAt, State: state,
		Deliveries: api.PushDeliveries{Delivered: w.Delivered, Waiting: w.Waiting, Lost: w.Lost},
		Outcome:    w.Outcome, Status: w.Status, TriedAt: api.TimeOrNil(w.TriedAt),
		FailingSince: api.TimeOrNil(w.FailingAt), NextAt: api.TimeOrNil(w.NextAt),
		GivenUpAt: api.TimeOrNil(w.GivenUpAt), Reason: api.PushEnd(w.Reason),
	}
}
