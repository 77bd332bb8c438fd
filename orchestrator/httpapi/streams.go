package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

// streamHandlers send what happens in runs as it happens.
type streamHandlers struct {
	runs *records.Reader
	feed *records.Feed
	svc  *orchestrator.Service // has what models say
}

// run returns the id in the request's path, if the client may know of its run.
func (h streamHandlers) run(c echo.Context) (string, error) {
	id, err := runID(c)
	if err != nil {
		return "", err
	}
	_, err = h.runs.Get(c.Request().Context(), id)
	return id, err
}

// events sends the run's events as they happen, each once and in order, and ends after
// the last one.
func (h streamHandlers) events(c echo.Context) error {
	q := queryOf(c, "after", "tokens")
	tokens := q.flag("tokens")
	after, err := afterOf(c, q)
	if err != nil {
		return err
	}
	id, err := h.run(c)
	if err != nil {
		return err
	}
	var said *models.Following
	if asked, is := orchestrator.FeatureOf[*models.Feature](h.svc); is && tokens {
		said = asked.Follow(id)
		defer said.Close()
	}
	return h.follow(c, id, after, said)
}

// follow sends the events of a run that come after one, to the last.
func (h streamHandlers) follow(c echo.Context, id string, after int64, said *models.Following) error {
	return send(c, func(ctx context.Context) iter.Seq2[api.Event, error] { return h.feed.Events(ctx, id, after) }, said)
}

// send sends events as they come. They are read concurrently with the receiver: see httpwire.Pump. Between them it
// sends what models say to the run; nil: nobody asked for that.
func send(c echo.Context, all func(ctx context.Context) iter.Seq2[api.Event, error], said *models.Following) error {
	ctx, stop := httpwire.Attached(c.Request().Context())
	defer stop()
	end, err := httpwire.OpenStream(ctx)
	if err != nil {
		return err
	}
	defer end()
	events, wait := httpwire.Pump(ctx, all(ctx))
	defer func() {
		stop() // the pump may be waiting for an event, or for this handler
		wait()
	}()
	return sendEvents(httpwire.NewEventWriter(newStreamer(c, httpwire.TypeEvents)), events, said)
}

// happening is one event, or the error that ended them.
type happening = httpwire.Item[api.Event]

func sendEvents(out *httpwire.EventWriter, events <-chan happening, said *models.Following) error {
	beat := time.NewTicker(httpwire.Heartbeat)
	defer beat.Stop()
	var words <-chan struct{} // never has any: nobody asked
	if said != nil {
		words = said.News
	}
	for {
		var err error
		select {
		case <-words:
			beat.Reset(httpwire.Heartbeat)
			err = sendWords(out, said.Take())
		case h, more := <-events:
			if !more {
				return nil
			}
			beat.Reset(httpwire.Heartbeat)
			err = sendEvent(out, h)
		case <-beat.C:
			err = out.Comment("still here")
		}
		if err != nil {
			return err
		}
	}
}

// sendWords sends what isn't stored: without a number.
func sendWords(out *httpwire.EventWriter, said []api.TokensEvent) error {
	for _, words := range said {
		data, err := strictjson.Encode(words)
		if err == nil {
			err = out.WriteLine(string(api.EventTokens), "", data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sendEvent(out *httpwire.EventWriter, h happening) error {
	if h.Err != nil {
		return fmt.Errorf("read events: %w", h.Err)
	}
	line := []byte(h.Value.Data) // as it is, for all who follow the run
	if bytes.ContainsAny(line, "\r\n") {
		var compact bytes.Buffer
		if err := json.Compact(&compact, line); err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		line = compact.Bytes()
	}
	return out.WriteLine(string(h.Value.Type), strconv.FormatInt(h.Value.Seq, 10), line)
}

// afterOf is the number of the last event that a client says to have seen, in its query or in the header. A browser
// that reconnects sends it in the header and repeats the address.
func afterOf(c echo.Context, q *query) (int64, error) {
	after := q.integer("after", 0, math.MaxInt64, "the number of an event")
	last := c.Request().Header.Get("Last-Event-ID")
	if q.err != nil || last == "" {
		return after, q.err
	}
	after, err := strconv.ParseInt(last, 10, 64)
	if err != nil || after < 0 {
		return 0, fault.New(fault.BadRequest, "the header Last-Event-ID is not valid").
			WithHint("it is the id of the last event that was received, a number")
	}
	return after, nil
}

const ndjson = "application/x-ndjson"

// log writes the run's lines, and with ?follow=true also those to come, until its end.
func (h streamHandlers) log(c echo.Context) error {
	wanted, err := logFilter(c)
	if err != nil {
		return err
	}
	id, err := h.run(c)
	if err != nil {
		return err
	}
	ctx, stop := httpwire.Attached(c.Request().Context())
	defer stop()
	end, err := httpwire.OpenStream(ctx)
	if err != nil {
		return err
	}
	defer end()
	contentType, write := logFormat(c.Request())
	out := newStreamer(c, contentType)
	for entry, err := range h.feed.Log(ctx, id, wanted) {
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if err := write(out, entry); err != nil {
			return fmt.Errorf("write log: %w", err)
		}
		if wanted.Follow {
			out.flush()
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("follow log: %w", err) // the answer must not look like the run's end
	}
	return nil
}

// logFilter reads which lines are wanted.
func logFilter(c echo.Context) (api.LogFilter, error) {
	q := queryOf(c, "follow", "tail", "after", "before")
	const ofLine = "the number of a line"
	wanted := api.LogFilter{
		Follow: q.flag("follow"),
		Tail:   q.integer("tail", 1, math.MaxInt32, "how many of the last lines are wanted, from 1"),
		After:  q.integer("after", 0, math.MaxInt32, ofLine),
		Before: q.integer("before", 1, math.MaxInt32, ofLine),
	}
	if wanted.Follow && wanted.Before > 0 {
		q.fail(fault.New(fault.BadRequest, "the query parameters \"follow\" and \"before\" don't go together").
			WithHint("leave out one of them: lines before a line don't come any more"))
	}
	return wanted, q.err
}

// logFormat is the format that the client accepts: lines of JSON, or the unit's own text.
func logFormat(r *http.Request) (contentType string, write func(io.Writer, api.LogEntry) error) {
	if strings.Contains(r.Header.Get(echo.HeaderAccept), ndjson) {
		return ndjson, writeEntry
	}
	return echo.MIMETextPlainCharsetUTF8, writeText
}

func writeEntry(w io.Writer, entry api.LogEntry) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(entry)
}

func writeText(w io.Writer, entry api.LogEntry) error {
	_, err := io.WriteString(w, entry.Text+"\n")
	return err
}

// streamer sends an answer in parts.
type streamer struct {
	*echo.Response
	conn *http.ResponseController
}

// newStreamer sends the header at once, so that the client knows that it is connected.
func newStreamer(c echo.Context, contentType string) *streamer {
	s := &streamer{Response: c.Response(), conn: http.NewResponseController(c.Response())}
	httpwire.BeginStream(s.Response, contentType)
	return s
}

// flush sends the buffered bytes. The next write returns its error again.
func (s *streamer) flush() { _ = s.conn.Flush() }
