package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const wordsRun = `{"unit": "bench-model", "input": {"n": 1, "model": "words"}, "context": "a talk"}`

// firstWords is the time from a model's first words until one who follows the run has read them.
func (b *bench) firstWords(ctx context.Context) (part, error) {
	d, err := b.double(ctx)
	if err != nil {
		return part{}, err
	}
	if _, err := b.modelJob(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stockOf(ctx, serving{more: d.settings()}, 2, `{"unit": "bench-model", "input": {"n": 1}}`, modelUnit)
	if err != nil {
		return part{}, err
	}
	const first = "from the provider's writing to the follower's reading"
	late := series{name: first}
	turns := b.pairs * 7
	for turn := range turns + 1 {
		took, err := warm.hearWords(ctx, d)
		if err != nil {
			return part{}, err
		}
		late.add(turn, took)
	}
	return group{aims: []aim{{of: first, ms: 10}}, notes: []func() string{warm.String}}.part([]series{late}, turns), nil
}

// hearWords follows a run from before its model says anything, and returns how late its first words came.
func (k *stock) hearWords(ctx context.Context, d *double) (late time.Duration, err error) {
	record, err := k.submit(ctx, wordsRun, "", http.StatusAccepted)
	if err != nil {
		return 0, err
	}
	response, err := k.follow(ctx, record.ID)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if err := d.letOneGo(ctx); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if late == 0 && lines.Text() == "event: tokens" {
			late = time.Since(d.lastSpoke())
			err = d.letOneGo(ctx)
		}
	}
	if late == 0 {
		err = fmt.Errorf("run %s: no words were told: %s", record.ID, response.Status)
	}
	return late, errors.Join(err, lines.Err(), k.after(ctx, record.ID))
}

// follow asks for the events of a run, with what models say.
func (s *server) follow(ctx context.Context, run string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/runs/"+run+"/events?tokens=true", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	return s.client.Do(request)
}
