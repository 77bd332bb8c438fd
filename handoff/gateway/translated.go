package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/translate"
	"github.com/agent-on-demand/aod/internal/bytegate"
)

// translated is a request in the dialect of a provider that doesn't speak its own.
type translated struct {
	asker catalog.Dialect
	q     *request
	to    *translate.Translation
}

// translatable are the dialects in which one that speaks others is asked, the first that can say a request.
func translatable(asker catalog.Dialect, p catalog.Provider) (all []catalog.Dialect) {
	for _, d := range catalog.Dialects() {
		if d != asker && p.Speaks(d) && translate.Between(asker, d) {
			all = append(all, d)
		}
	}
	return all
}

// translatedDialects are those of a model that nobody who has it speaks, but in which it can be asked.
func translatedDialects(known *catalog.Catalog, m catalog.Model) []catalog.Dialect {
	native := known.Dialects(m)
	return slices.DeleteFunc(catalog.Dialects(), func(d catalog.Dialect) bool {
		return slices.Contains(native, d) || !slices.ContainsFunc(m.Use, func(u catalog.Use) bool {
			return len(translatable(d, known.Providers[u.Provider])) > 0
		})
	})
}

// translate says the request in the dialects of the providers that don't speak its own. One whose dialect can't say
// it isn't asked. What the new bodies take of the memory is given back by free. The error is a *Refusal where nobody
// is left.
func (t *target) translate(ctx context.Context, q *request, limited bool) (free func(), err error) {
	var refused error
	var size int64
	made := map[catalog.Dialect]*translated{}
	routes := t.routes[:0:0]
	for _, r := range t.routes {
		if !r.provider.Speaks(q.dialect.name) {
			if r.said, err = t.say(q, r, limited, made); err != nil {
				refused = errors.Join(refused, err)
				continue
			}
		}
		routes = append(routes, r)
	}
	if t.routes = routes; len(routes) == 0 {
		return nil, refused
	}
	for _, said := range made {
		size += int64(len(said.to.Body))
	}
	return bytegate.Hold(ctx, size)
}

// say translates a request for one provider.
func (t *target) say(q *request, r route, limited bool, made map[catalog.Dialect]*translated) (*translated, error) {
	var refused error
	for _, d := range translatable(q.dialect.name, r.provider) {
		said, err := made[d], error(nil)
		if said == nil {
			said, err = t.in(q, d)
		}
		if err == nil {
			made[d] = said
			if _, known := said.q.inputBound(r.kind(), t.limits.Context); !known && limited {
				err = q.refuseUnknown()
			}
		}
		if err == nil {
			return said, nil
		}
		refused = errors.Join(refused, err)
	}
	return nil, refused
}

// in says a request in another dialect, in which it has to keep the same rules.
func (t *target) in(q *request, to catalog.Dialect) (*translated, error) {
	said := &translated{asker: q.dialect.name}
	var err error
	if said.to, err = translate.New(q.dialect.name, to, q.body); err != nil {
		return nil, refuse(http.StatusBadRequest, RuleDialect, "the provider of the model %s speaks %s: %s",
			q.model, to, err).hint("ask in %s, or leave the field out", to)
	}
	d := dialects[slices.IndexFunc(dialects, func(d *dialect) bool { return d.name == to })]
	if said.q, err = readRequest(d, said.to.Body); err != nil {
		return nil, err
	}
	if err := said.q.seal(q.model, t.model, true); err != nil {
		return nil, err
	}
	return said, said.q.bound(q.cap)
}

// request is what goes out to the provider of a route.
func (r route) request(q *request) *request {
	if r.said != nil {
		return r.said.q
	}
	return q
}

// refusedWith is refusedWith in the asker's dialect.
func (a *attempt) refusedWith(u *upstream, status int, body []byte) *failure {
	if a.route.said == nil {
		return refusedWith(status, a.name(), body)
	}
	f := refusedWith(status, a.name(), nil).says(u.words(body))
	f.refusal.passed = f.refusal.envelope(a.route.said.asker)
	return f
}

// untold is the failure of an answer that the asker's dialect can't say.
func (s *translated) untold(provider string, err error) *failure {
	return failed502(another, RuleProvider, "the answer of the provider %s can't be said in %s: %s",
		provider, s.asker, err).hint("ask in " + string(s.q.dialect.name)).bill()
}

// answerBack translates a plain answer.
func (a *attempt) answerBack(u *upstream) *failure {
	if a.route.said == nil {
		return nil
	}
	body, err := a.route.said.to.Answer(u.body, u.counts())
	if err != nil {
		return a.route.said.untold(a.name(), err).counted(&u.meter)
	}
	u.body = body
	return nil
}

// counts are what the provider has counted so far; nil: nothing.
func (u *upstream) counts() *translate.Usage {
	if u.meter.usage == (Usage{}) && !u.meter.known {
		return nil
	}
	counts := translate.Usage(u.meter.usage)
	return &counts
}

// next reads the next event of a stream, in the asker's dialect, and what it is; a failure stays as it came. Of a
// stream that is translated, the one that ends it is the last.
func (u *upstream) next() (raw []byte, kind what, err error) {
	raw, err = u.events.next()
	if u.said != nil && errors.Is(err, io.EOF) && u.meter.ended {
		return u.translate(nil, terminal)
	}
	if err != nil {
		return nil, nothing, err
	}
	if kind = u.event(raw); u.said == nil || kind == failed {
		return raw, kind, nil
	}
	return u.translate(eventData(raw), kind)
}

func (u *upstream) translate(data []byte, kind what) ([]byte, what, error) {
	raw, err := u.stream.Event(data, u.counts())
	if err == nil && kind == terminal {
		before := slices.Clone(raw)
		raw, err = u.stream.End(u.counts())
		raw = append(before, raw...)
		u.events = newEventReader(strings.NewReader(""))
	}
	if err != nil {
		return nil, failed, u.said.untold(u.provider, err).refusal
	}
	if kind == usageOnly {
		kind = content // whether it is wanted, the translation knows
	}
	return raw, kind, nil
}
