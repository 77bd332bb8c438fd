package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/questions"
)

// messageHandlers answer what is asked of what is said to runs.
type messageHandlers struct{ svc *orchestrator.Service }

// say takes a message to a run that goes on.
func (h messageHandlers) say(c echo.Context, id string) error {
	key, err := httpwire.IdempotencyKey(c.Request())
	if err != nil {
		return err
	}
	saying, err := readSaying(c)
	if err != nil {
		return err
	}
	m, err := saying.Message()
	if err != nil {
		return err
	}
	if m, err = h.feature().SayOnce(c.Request().Context(), id, key, m, nil); err != nil {
		return err
	}
	return reply(c, http.StatusAccepted, m)
}

// readSaying reads the body of a message.
func readSaying(c echo.Context) (s api.Saying, err error) {
	err = readObject(c, api.MaxPartBytes+httpwire.SmallBody, member{"id", &s.ID}, member{"text", &s.Text},
		member{"data", &s.Data}, member{"parts", &s.Parts}, member{"metadata", &s.Metadata})
	if string(s.Metadata) == "null" {
		s.Metadata = nil
	}
	return s, err
}

func (h messageHandlers) feature() *messages.Feature {
	told, _ := orchestrator.FeatureOf[*messages.Feature](h.svc)
	return told
}

func (h messageHandlers) list(ctx context.Context, id string, after int64, limit int) (api.MessagePage, error) {
	return h.feature().List(ctx, id, after, limit)
}

// artifactHandlers answer what is asked of what runs show before their end.
type artifactHandlers struct{ svc *orchestrator.Service }

func (h artifactHandlers) feature() *artifacts.Feature {
	shown, _ := orchestrator.FeatureOf[*artifacts.Feature](h.svc)
	return shown
}

func (h artifactHandlers) list(ctx context.Context, id string, after int64, limit int) (api.ArtifactPage, error) {
	return h.feature().List(ctx, id, after, limit)
}

// file answers with a file that a run has shown.
func (h artifactHandlers) file(c echo.Context, id string) error {
	artifact, err := param(c, "artifact")
	if err != nil {
		return err
	}
	name, err := fileName(c)
	if err != nil {
		return err
	}
	content, file, err := h.feature().OpenFile(c.Request().Context(), id, artifact, name)
	if err != nil {
		return err
	}
	return sendFile(c, content, file)
}

// questionHandlers answer what is asked of questions that runs ask.
type questionHandlers struct {
	questions interface {
		List(ctx context.Context, f questions.Filter) (api.QuestionPage, error)
		Answer(ctx context.Context, question string, answer api.Answer) error
	}
	bodies bodies
}

func (h questionHandlers) list(c echo.Context) error {
	q := paged(c, "run", "all", "mine")
	filter := questions.Filter{
		Run: q.id("run"), All: q.flag("all"), Mine: q.flag("mine"), After: q.after(), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	page, err := h.questions.List(c.Request().Context(), filter)
	return replied(c, page, err)
}

// questionID returns the id in the request's path.
func questionID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !httpwire.IsRunID(id) { // they have the same form
		return "", fault.New(fault.NotFound, "there is no question of this id").
			WithHint("`aod questions` lists the open ones")
	}
	return id, nil
}

func (h questionHandlers) answer(c echo.Context, id string) error {
	var answer api.Answer
	err := h.bodies.object(c, member{"action", &answer.Action}, member{"form", &answer.Form},
		member{"by", &answer.By}, member{"note", &answer.Note})
	if err != nil {
		return err
	}
	if err := h.questions.Answer(c.Request().Context(), id, answer); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
