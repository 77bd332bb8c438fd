package httpapi

import (
	"context"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

func (a *API) steps(ctx context.Context, run string, after int64, limit int) (api.StepPage, error) {
	return a.svc.StepList(ctx, run, orchestrator.StepFilter{After: after, Limit: limit})
}

func (q *query) after() int64 {
	return q.integer("after", 0, math.MaxInt64, ofPage)
}

func (q *query) limit() int {
	return int(q.integer("limit", 1, maxPage, "a number from 1 to 1000"))
}

func (a *API) listQuestions(c echo.Context) error {
	q := queryOf(c, "run", "after", "limit")
	filter := orchestrator.QuestionFilter{Run: q.id("run"), After: q.after(), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	page, err := a.svc.Questions(c.Request().Context(), filter)
	return replied(c, page, err)
}

func (a *API) answerQuestion(c echo.Context) error {
	id := c.Param("id")
	if !httpwire.IsRunID(id) { // they have the same form
		return fault.New(fault.NotFound, "there is no question of this id").
			WithHint("GET /v1/questions lists the open ones")
	}
	var answer api.Answer
	err := readObject(c, a.opts.PayloadBytes+httpwire.SmallBody, member{"action", &answer.Action},
		member{"form", &answer.Form}, member{"by", &answer.By}, member{"note", &answer.Note})
	if err != nil {
		return err
	}
	if err := a.svc.Answer(c.Request().Context(), id, answer); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
