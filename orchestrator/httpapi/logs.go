package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const ndjson = "application/x-ndjson"

// getLog writes the run's lines, and with ?follow=true also those to come, until its end.
func (a *API) getLog(c echo.Context) error {
	q := queryOf(c, "follow")
	follow := q.flag("follow")
	if q.err != nil {
		return q.err
	}
	record, err := a.recordOf(c)
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
	for entry, err := range a.svc.Log(ctx, record.ID, follow) {
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if err := write(out, entry); err != nil {
			return fmt.Errorf("write log: %w", err)
		}
		if follow {
			out.flush()
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("follow log: %w", err) // the answer must not look like the run's end
	}
	return nil
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
