package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// asked is a permission request.
type asked struct {
	Permission
	answer func(option string) []byte // "": refused
	cancel []byte                     // what it gets in a turn that is stopped
}

// askedText is what a permission request says. Of one that is too long it tells so: who permits it
// hasn't seen the rest.
func askedText(text string) string {
	text = strings.TrimSpace(text)
	begins := fault.Cut(text, maxEventText)
	if left := len(text) - len(begins); left > 0 {
		return fmt.Sprintf("%s…\n(%d bytes more, which aren't shown)", begins, left)
	}
	return begins
}

// offer adds an option, unless that can't be chosen: of two with one id the first counts.
func (a *asked) offer(o Option) bool {
	isKnown := slices.ContainsFunc(a.Options, func(other Option) bool { return other.ID == o.ID })
	if o.ID == "" || len(o.ID) > maxID || len(a.Options) == maxOptions || isKnown {
		return false
	}
	a.Options = append(a.Options, o)
	return true
}

// chosen returns the option's id, or "" for one that wasn't offered.
func (a *asked) chosen(option string) string {
	if slices.ContainsFunc(a.Options, func(o Option) bool { return o.ID == option }) {
		return option
	}
	return ""
}

// askedKey returns the id of a request, "" for one that is too long to be known by it.
func askedKey(id string) string {
	if len(id) > maxID {
		return ""
	}
	return id
}

// seen counts a request of the program, and reports whether it was there before. The error says
// that there are too many.
func (t *turn) seen(id string) (bool, error) {
	if slices.Contains(t.requests, id) {
		return true, nil
	}
	if t.requests = append(t.requests, id); len(t.requests) > maxRequests {
		t.broken = true
		return false, programError("the program made more than %d requests in one turn", maxRequests)
	}
	return false, nil
}

// refuse answers a request for what isn't offered.
func (t *turn) refuse(ctx context.Context, answer []byte, replayed bool) error {
	if _, err := t.seen("refused " + strconv.Itoa(len(t.requests))); err != nil || replayed {
		return err
	}
	if err := t.keep(ctx, t.state); err != nil {
		return err
	}
	return t.in.write(ctx, answer)
}

// asks hears a permission request. One that was there before isn't asked again.
func (t *turn) asks(ctx context.Context, a asked, replayed bool) error {
	if again, err := t.seen(a.ID); again || err != nil {
		return err
	}
	if replayed {
		if a.ID == t.state.Asking {
			t.open = &a
		}
		return nil
	}
	s := t.state
	s.Asking = a.ID
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	t.open = &a
	return t.permit(ctx)
}

// permit answers the request that is open, if there is one.
func (t *turn) permit(ctx context.Context) error {
	if t.open == nil {
		return nil
	}
	answer := t.open.cancel
	if !t.stopping {
		option, err := t.listener.Permit(ctx, t.open.Permission)
		if err != nil {
			return err
		}
		answer = t.open.answer(t.open.chosen(option))
	}
	s := t.state
	s.Asking = ""
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	t.open = nil
	return t.in.write(ctx, answer)
}
