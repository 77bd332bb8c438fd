package web

import (
	"context"
	"net/url"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/conversation"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// talkPage is of how many runs of late, and of how many units, the conversations are listed.
const talkPage, mostTalkers = 100, 32

// At is its address, below the page's.
func (c chatRow) At() string {
	at := "chat/" + url.PathEscape(c.ID)
	if c.Named {
		at += "?unit=" + url.QueryEscape(c.Unit)
	}
	return at
}

// takesMessages reports whether a unit is talked with by its contract: each turn is a run of its own.
func takesMessages(u *unit.Unit) bool {
	message, _ := conversation.Takes(u.Contract.Input.Raw())
	return message
}

// talks lists the conversations with units that there were of late, the latest first.
func (p chats) talks(ctx context.Context, units []string) (rows []chatRow, err error) {
	if len(units) == 0 {
		return nil, nil
	}
	units = units[:min(len(units), mostTalkers)]
	page, err := p.svc.Feed.Changed(ctx, api.ChangedFilter{Units: units, Limit: talkPage})
	known := map[string]int{}
	for _, run := range page.Runs {
		if run.Context == "" {
			continue
		}
		row := chatRow{Named: true, Session: api.Session{
			ID: run.Context, Unit: run.Unit, By: run.By, State: api.SessionOpen, UsedAt: run.CreatedAt,
		}}
		at, is := known[row.At()]
		if !is {
			at, known[row.At()] = len(rows), len(rows)
			rows = append(rows, row)
		}
		if rows[at].Turns++; run.Outcome == "" {
			rows[at].State = api.SessionBusy
		}
	}
	return rows, err
}

// named finds a conversation by its name, and the unit that it is with: that of its newest run, or if it has none, the
// one that is named.
func (p chats) named(ctx context.Context, name, with string) (row chatRow, u *unit.Unit, err error) {
	none := fault.New(fault.NotFound, "there is no session or conversation of this id").
		WithHint("Chat in the menu lists them")
	if api.CheckContext(name) != nil {
		return row, nil, none
	}
	newest, err := p.svc.Runs.List(ctx, api.Filter{Context: name, Unit: with, Limit: 1})
	if err != nil {
		return row, nil, err
	}
	row = chatRow{Named: true, Session: api.Session{ID: name, Unit: with, State: api.SessionOpen}}
	for _, run := range newest.Runs {
		if row.Unit = run.Unit; run.Outcome == "" {
			row.State = api.SessionBusy
		}
	}
	if row.Unit == "" {
		return row, nil, none
	}
	if u, err = p.svc.Units.Get(ctx, row.Unit); err != nil {
		return row, nil, err
	}
	if row.Version = u.Version; !takesMessages(u) {
		return row, nil, none
	}
	return row, u, nil
}

// next makes a submission the next turn of a conversation, which is given what was said before.
func (p chats) next(ctx context.Context, name, with, message string, sub *spool.Submission) error {
	_, u, err := p.named(ctx, name, with)
	if err != nil {
		return err
	}
	talk, err := conversation.With(u.Name, u.Contract.Input.Raw(), name)
	if err != nil {
		return err
	}
	page, err := p.svc.Runs.List(ctx, api.Filter{Context: name, Unit: u.Name, Limit: 2 * conversation.MaxTurns})
	if err == nil {
		err = talk.Resume(page.Runs, func(id string) (api.Record, error) { return p.svc.Runs.Get(ctx, id) })
	}
	sub.Unit, sub.Context, sub.Input = u.Name, name, talk.Input(message)
	return err
}
