package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// content is what a page shows. Its parts are made again when what it shows has changed.
type content struct {
	title, section string
	parts          []part
	// follow calls changed when the page may have changed, until ctx ends; nil: it is never sent again.
	follow func(ctx context.Context, changed func())
}

// builder makes what a page shows now.
type builder func(r *request) (content, error)

// page serves what a builder makes.
func (p *Page) page(pattern string, build builder) { p.pageOf(access.Read, pattern, build) }

// pageOf is page for those who have another scope.
func (p *Page) pageOf(scope access.Scope, pattern string, build builder) {
	p.handle("GET "+pattern, scope, func(w http.ResponseWriter, r *request) error {
		shows, err := build(r)
		if err != nil {
			return err
		}
		r.frame.Live = shows.follow != nil
		p.show(w, r, http.StatusOK, shows)
		return nil
	})
	p.looks.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
		seen, _ := r.Context().Value(lookKey{}).(*look)
		req := &request{r, p.newFrame(r)}
		req.frame.Key = seen.key
		if seen.content, seen.err = build(req); seen.err == nil {
			p.ask(req)
			req.frame.Title = seen.title
			seen.parts, seen.err = p.render(req.frame, seen.content.parts...)
			seen.asked = req.frame.Asked
		}
	})
}

// show answers with what a page shows. One that is shown again with what somebody has filled in isn't followed.
func (p *Page) show(w http.ResponseWriter, r *request, status int, shows content) {
	p.ask(r)
	r.frame.Title, r.frame.Section = shows.title, shows.section
	p.write(w, status, r.frame, shows.parts...)
}

// look is a page as it is at one moment.
type look struct {
	content
	parts []shown
	asked string
	key   string // of the frame
	err   error
}

type lookKey struct{}

// lookAt makes a page again for whoever follows it.
func (p *Page) lookAt(r *http.Request, at *url.URL) *look {
	seen := &look{key: r.URL.Query().Get("key"), err: fault.New(fault.NotFound, "there is no such page")}
	again := r.WithContext(context.WithValue(r.Context(), lookKey{}, seen))
	again.URL = at
	p.looks.ServeHTTP(discard{}, again)
	return seen
}

// discard is where the answers of redirects go.
type discard struct{}

// Header implements http.ResponseWriter, as the others do.
func (discard) Header() http.Header { return http.Header{} }

// Write writes nowhere.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader does nothing.
func (discard) WriteHeader(int) {}

// update is what is sent when a page has changed.
type update struct {
	Keys  []string `json:"keys"` // of all parts, in their order
	Parts []change `json:"parts"`
	Asked string   `json:"asked"` // as in the menu
	Title string   `json:"title"`
}

type change struct {
	Key  string `json:"key"`
	Hash string `json:"hash"`
	HTML string `json:"html"`
}

// live sends the parts of a page that differ from those that the browser has, now and whenever they change.
func (p *Page) live(w http.ResponseWriter, r *request) error {
	page := r.URL.Query().Get("page")
	at, err := url.Parse("/ui/" + local(page))
	if err != nil || page == "" {
		return fault.New(fault.BadRequest, "`page` isn't an address of the page")
	}
	first := p.lookAt(r.Request, at)
	if first.err != nil {
		return first.err
	}
	if r.URL.Query().Has("once") {
		return lookOnce(w, first.since(hashesOf(r.URL.Query().Get("have"))))
	}
	ctx, stop := httpwire.Attached(r.Context())
	defer stop()
	end, err := httpwire.OpenStream(ctx)
	if err != nil {
		return err
	}
	defer end()
	httpwire.BeginStream(w, httpwire.TypeEvents)
	f := follower{
		look: func() *look { return p.lookAt(r.WithContext(ctx), at) }, out: httpwire.NewEventWriter(w),
		has: hashesOf(r.URL.Query().Get("have")),
	}
	_ = f.run(ctx, first) // the browser has gone, or the server ends
	return nil
}

// lookOnce answers with what differs now.
func lookOnce(w http.ResponseWriter, now update) error {
	data, err := strictjson.Encode(now)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", httpwire.TypeJSON)
	_, err = w.Write(data)
	return err
}

// hashesOf reads which parts a browser has: KEY:HASH,KEY:HASH.
func hashesOf(text string) map[string]string {
	has := map[string]string{}
	for one := range strings.SplitSeq(text, ",") {
		key, hash, _ := strings.Cut(one, ":")
		has[key] = hash
	}
	return has
}

// follower keeps a browser's page as it is at the server.
type follower struct {
	look func() *look
	out  *httpwire.EventWriter
	has  map[string]string // the hashes of the parts that the browser has
}

// leastPause is between two looks at a page, which may change a thousand times a second. What takes long to make is
// looked at more seldom.
const leastPause, pauseFactor = 150 * time.Millisecond, 4

func (f follower) run(ctx context.Context, now *look) error {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if now.follow != nil {
		following.Go(func() { now.follow(ctx, notify) })
	}
	beat := time.NewTicker(httpwire.Heartbeat)
	defer beat.Stop()
	for pause := time.Duration(0); ; {
		if err := f.send(now); err != nil {
			return err
		}
		rest := time.After(max(leastPause, pause))
		select {
		case <-changed:
		case <-beat.C:
			if err := f.out.Comment("still here"); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-rest:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		began := time.Now()
		now = f.look()
		pause = pauseFactor * time.Since(began)
	}
}

// send sends what the browser doesn't have yet.
func (f follower) send(now *look) error {
	if fault.Is(now.err, fault.NotFound) {
		return tellGone(f.out, now.err)
	}
	if now.err != nil {
		return now.err // the browser tries again, perhaps when the server has begun again
	}
	u := now.since(f.has)
	if len(u.Parts) == 0 {
		return nil
	}
	data, err := strictjson.Encode(u)
	if err != nil {
		return err
	}
	return f.out.WriteLine("update", "", data)
}

// since is what has changed since a browser had parts with these hashes, which then has those of now.
func (l *look) since(has map[string]string) update {
	u := update{Parts: []change{}, Asked: l.asked, Title: l.title}
	for _, one := range l.parts {
		u.Keys = append(u.Keys, one.Key)
		if has[one.Key] != one.Hash {
			has[one.Key] = one.Hash
			u.Parts = append(u.Parts, change{one.Key, one.Hash, string(one.HTML)})
		}
	}
	return u
}

// tellGone tells a browser that a page can't be shown any more, as its run was removed, and ends its stream.
func tellGone(out *httpwire.EventWriter, err error) error {
	data, encoding := strictjson.Encode(fault.Public(err).Msg)
	if encoding != nil {
		return encoding
	}
	if writing := out.WriteLine("gone", "", data); writing != nil {
		return writing
	}
	return err
}
