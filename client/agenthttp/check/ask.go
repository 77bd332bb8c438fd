package check

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// maxMessages bounds the number of events read from a stream.
const maxMessages = 10_000

// answer is the result of one call of a check.
type answer struct {
	asked   agenthttp.Request
	skipped string // why the call was not made
	problem string // why nothing came
	status  int
	media   string
	raw     []byte
	doc     document.Fields
	docErr  error // why raw is not a document
}

// ids are what the answer has to echo.
func (a *answer) ids() document.Asked {
	return document.Asked{RequestID: a.asked.RequestID, TaskType: a.asked.TaskType}
}

func (a *answer) ok() bool { return a.status/100 == 2 }

// failed reports whether an answer with 2xx says that the task failed.
func (a *answer) failed() bool {
	return a.ok() && document.Indicated(a.doc) == document.Failure
}

func (a *answer) refused() bool { return a.status/100 == 4 }

// streamed is the result of a call of the stream endpoint.
type streamed struct {
	answer
	messages []timed
	end      string        // what is wrong with its end
	took     time.Duration // from the request to the end
}

type timed struct {
	httpwire.Event
	at time.Duration // since the request
}

func (s *streamed) isStream() bool { return s.ok() && s.media == httpwire.TypeEvents }

func (e *examiner) post(ctx context.Context, asked agenthttp.Request) answer {
	body, err := strictjson.Encode(withoutEmpty{asked})
	if err != nil {
		return answer{asked: asked, problem: "the inputs aren't a JSON object"}
	}
	a := e.ask(ctx, http.MethodPost, agenthttp.SyncPath, body)
	a.asked = asked
	return a
}

// withoutEmpty also omits empty required members, to test whether the agent requires them.
type withoutEmpty struct{ agenthttp.Request }

// MarshalJSON writes the request without its empty members.
func (r withoutEmpty) MarshalJSON() ([]byte, error) {
	raw, err := strictjson.Encode(r.Request)
	if err != nil {
		return nil, err
	}
	f, err := document.Read(raw)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"request_id", "task_type"} {
		if f.Text(name) == "" {
			delete(f, name)
		}
	}
	return strictjson.Encode(f)
}

// ask makes one call and reads the whole answer.
func (e *examiner) ask(ctx context.Context, method, path string, body []byte) (a answer) {
	response, err := e.client.Do(ctx, agenthttp.Exchange{
		Method: method, Path: path, Accept: "application/json",
		Body: body,
	})
	if err != nil {
		return answer{problem: told(err)}
	}
	defer response.Close()
	a.read(response)
	return a
}

func (a *answer) read(response *agenthttp.Answer) {
	a.status, a.media = response.StatusCode, httpwire.MediaType(response.Header)
	raw, err := response.ReadAll()
	if err != nil {
		a.docErr = errors.New("can't be read: " + told(err))
		return
	}
	a.raw = raw
	a.doc, a.docErr = document.Read(raw)
}

// told is the text of an error of ours that a report may show.
func told(err error) string {
	public := fault.Public(err)
	if public.Err != nil {
		return public.Msg + ": " + public.Err.Error() // written by the function reason, or a limit
	}
	return public.Msg
}

// open makes a call of the stream endpoint and reads the events, with their times.
func (e *examiner) open(ctx context.Context, asked agenthttp.Request) (s streamed) {
	s.asked = asked
	body, err := strictjson.Encode(withoutEmpty{asked})
	if err != nil {
		s.problem = "the inputs aren't a JSON object"
		return s
	}
	began := e.now()
	response, err := e.client.Do(ctx, agenthttp.Exchange{
		Method: http.MethodPost, Path: agenthttp.StreamPath,
		Accept: httpwire.TypeEvents, Body: body,
	})
	if err != nil {
		s.problem = told(err)
		return s
	}
	defer response.Close()
	s.status, s.media = response.StatusCode, httpwire.MediaType(response.Header)
	if !s.isStream() {
		s.read(response)
		return s
	}
	s.end = e.readMessages(response, began, &s)
	s.took = e.now().Sub(began)
	if _, last := s.terminals(); last != nil { // the answer of a stream
		s.raw = []byte(last.Data)
		s.doc, s.docErr = document.Read(s.raw)
	}
	return s
}

// readMessages reads a stream to its end and says what was wrong with the end.
func (e *examiner) readMessages(response *agenthttp.Answer, began time.Time, s *streamed) string {
	messages := response.Events()
	for len(s.messages) < maxMessages {
		m, err := messages.Next()
		switch {
		case errors.Is(err, io.EOF) && messages.Unfinished():
			return "it ends amid an event: the empty line after the last one is missing"
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return told(err)
		}
		s.messages = append(s.messages, timed{m, e.now().Sub(began)})
		e.seen()
	}
	return "it has too many events to be looked at"
}
