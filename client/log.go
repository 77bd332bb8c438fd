package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api"
)

// Log returns the lines that a run has written, and with follow also those to come, to its
// end. A lost connection is made again and continues after the last line, as with Events.
func (c *Client) Log(ctx context.Context, id string, follow bool) iter.Seq2[api.LogEntry, error] {
	return func(yield func(api.LogEntry, error) bool) {
		l := logReader{client: c, id: id, follow: follow, retries: c.newRetrier(), yield: yield}
		if err := l.read(ctx); err != nil {
			yield(api.LogEntry{}, err)
		}
	}
}

// logReader reads a log over as many connections as it takes. The server begins each one
// with the first line, so logReader skips the lines that it has read.
type logReader struct {
	client  *Client
	id      string
	follow  bool
	seen    int
	over    bool // the caller wants no more
	retries *retrier
	yield   func(api.LogEntry, error) bool
}

func (l *logReader) read(ctx context.Context) error {
	for {
		err := l.connection(ctx)
		ended := err == nil
		if ended && !l.over {
			ended, err = l.ended(ctx)
		}
		if l.over || ended {
			return nil
		}
		if err != nil && !isLost(err) {
			return err
		}
		if err := l.retries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// ended distinguishes the end of a run from the end of a server, which closes its streams
// as well.
func (l *logReader) ended(ctx context.Context) (bool, error) {
	if !l.follow {
		return true, nil
	}
	record, err := l.client.Run(ctx, l.id)
	return record.FinishedAt != nil, err
}

func (l *logReader) connection(ctx context.Context) error {
	r := toRun(http.MethodGet, l.id, "logs")
	r.header["Accept"] = "application/x-ndjson"
	if l.follow {
		r.query = url.Values{"follow": {"true"}}
	}
	s, err := l.client.openStream(ctx, r, 0)
	if err != nil {
		return err
	}
	defer s.close()
	lines := s.lines()
	for n := 0; lines.Scan(); n++ {
		if n < l.seen {
			continue
		}
		var entry api.LogEntry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return l.client.strange(err)
		}
		l.seen++
		l.retries.renew()
		if !l.yield(entry, nil) {
			l.over = true
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return l.client.streamFault(ctx, err)
	}
	return nil
}
