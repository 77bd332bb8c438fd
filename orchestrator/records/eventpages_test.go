package records

import (
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAPageWithoutEventsIsReadAnew(t *testing.T) {
	t.Parallel()
	var pages eventPages
	reading, stored := make(chan struct{}), make(chan struct{})
	go func() {
		_, leave := pages.take(eventPlace{"r", 1}, func() ([]api.Event, func(), error) {
			close(reading)
			<-stored
			return nil, func() {}, nil // it looked before there was something
		})
		leave()
	}()
	<-reading
	joined := make(chan []api.Event)
	go func() {
		page, leave := pages.take(eventPlace{"r", 1}, func() ([]api.Event, func(), error) {
			if !pause.Over(stored) {
				return nil, func() {}, nil
			}
			return []api.Event{{Seq: 2}}, func() {}, nil
		})
		defer leave()
		joined <- page.events
	}()
	testkit.Eventually(t, "a second reader", func() bool {
		pages.mu.Lock()
		defer pages.mu.Unlock()
		return pages.pages[eventPlace{"r", 1}].readers == 2
	})
	close(stored)
	if events := <-joined; len(events) != 1 {
		t.Errorf("it has %d events", len(events))
	}
}

func TestAPageOfAReaderThatPanicsIsReadAnew(t *testing.T) {
	t.Parallel()
	var pages eventPages
	func() {
		defer func() { _ = recover() }()
		pages.take(eventPlace{"r", 1}, func() ([]api.Event, func(), error) { panic("disk") })
	}()
	freed := 0
	page, leave := pages.take(eventPlace{"r", 1}, func() ([]api.Event, func(), error) {
		return []api.Event{{Seq: 2}}, func() { freed++ }, nil
	})
	again, leaveToo := pages.take(eventPlace{"r", 1}, nil)
	leave()
	if page != again || freed != 0 {
		t.Errorf("the page isn't shared, or is given back too early (%d)", freed)
	}
	if leaveToo(); freed != 1 || len(pages.pages) != 0 {
		t.Errorf("given back %d times, %d pages are left", freed, len(pages.pages))
	}
}
