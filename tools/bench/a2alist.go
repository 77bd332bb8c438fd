package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
)

const manyTasks = 1000

// listTasks times the newest page of a list of tasks.
func (b *bench) listTasks(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	model, err := b.realRecord(ctx)
	if err != nil {
		return part{}, err
	}
	var servers []*server
	for _, n := range []int{manyTasks, fewRuns} {
		data := filepath.Join(b.dir, fmt.Sprintf("tasks-%d", n))
		if err := fill(ctx, data, n, model); err != nil {
			return part{}, fmt.Errorf("fill store: %w", err)
		}
		s, err := b.serve(ctx, serving{data: data})
		if err != nil {
			return part{}, err
		}
		servers = append(servers, s)
	}
	return b.besideFew(ctx, 10, servers[0].taskPage("a page of 50 of `ListTasks`, 1,000 tasks"),
		servers[1].taskPage("50 tasks"))
}

// taskPage is the way of one page, which has to be a full one.
func (s *server) taskPage(name string) *way {
	var answer []byte
	return &way{
		name: name,
		do: func(ctx context.Context) (err error) {
			answer, err = s.ask(ctx, http.MethodGet, "/a2a/_/tasks?pageSize=50", "", http.StatusOK)
			return err
		},
		settle: func(context.Context) error {
			var page struct{ Tasks []task }
			err := json.Unmarshal(answer, &page)
			if err == nil && len(page.Tasks) != fewRuns {
				err = fmt.Errorf("the page has %d tasks", len(page.Tasks))
			}
			return err
		},
	}
}
