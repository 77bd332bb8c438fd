package records

import (
	"sync"

	"github.com/agent-on-demand/aod/api"
)

// eventPages are the pages of events that are held at the moment. Those who read a run at the same
// place share one, so that the events of a run with many followers are read and held once.
type eventPages struct {
	mu    sync.Mutex
	pages map[eventPlace]*sharedPage
}

// eventPlace is before the events of a page.
type eventPlace struct {
	run   string
	after int64
}

// sharedPage is a page that somebody reads.
type sharedPage struct {
	events []api.Event
	err    error
	free   func()
	read   chan struct{} // closed when the fields above are set

	readers int
}

// take returns the page at a place, which read reads unless somebody holds it. leave must be called.
// A page without events isn't shared: what it was read for may have come since.
func (p *eventPages) take(at eventPlace, read func() ([]api.Event, func(), error)) (page *sharedPage, leave func()) {
	for {
		page, fresh := p.join(at)
		leave := func() { p.leave(at, page) }
		if fresh {
			p.fill(at, page, read)
			return page, leave
		}
		if <-page.read; len(page.events) > 0 {
			return page, leave
		}
		leave()
	}
}

// join adds a reader to the page at a place, or to a fresh one.
func (p *eventPages) join(at eventPlace) (page *sharedPage, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page = p.pages[at]
	if fresh = page == nil; fresh {
		page = &sharedPage{read: make(chan struct{}), free: func() {}}
		if p.pages == nil {
			p.pages = map[eventPlace]*sharedPage{}
		}
		p.pages[at] = page
	}
	page.readers++
	return page, fresh
}

func (p *eventPages) fill(at eventPlace, page *sharedPage, read func() ([]api.Event, func(), error)) {
	defer func() { // also after a panic
		if len(page.events) == 0 {
			p.forget(at, page)
		}
		close(page.read)
	}()
	events, free, err := read()
	if page.err = err; err == nil {
		page.events, page.free = events, free
	}
}

// forget has the next reader read anew.
func (p *eventPages) forget(at eventPlace, page *sharedPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pages[at] == page {
		delete(p.pages, at)
	}
}

func (p *eventPages) leave(at eventPlace, page *sharedPage) {
	p.mu.Lock()
	page.readers--
	last := page.readers == 0
	if last && p.pages[at] == page {
		delete(p.pages, at)
	}
	p.mu.Unlock()
	if last {
		page.free()
	}
}
