package httpapi

import (
	"errors"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

func (a *API) listSteps(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
	q := queryOf(c, "after", "limit")
	filter := orchestrator.StepFilter{After: q.after(), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	page, err := a.svc.StepList(c.Request().Context(), id, filter)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, page)
}

func (q *query) after() int64 {
	return q.integer("after", 0, math.MaxInt64, "the `next` of a page")
}

func (q *query) limit() int {
	return int(q.integer("limit", 1, maxPage, "a number from 1 to 1000"))
}

func (a *API) getFlow(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
	graph, err := a.svc.Flow(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, graph)
}

func (a *API) getState(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
	state, err := a.svc.FlowState(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, state)
}

func (a *API) listQuestions(c echo.Context) error {
	q := queryOf(c, "run", "after", "limit")
	filter := orchestrator.QuestionFilter{Run: q.id("run"), After: q.after(), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	page, err := a.svc.Questions(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, page)
}

func (a *API) answerQuestion(c echo.Context) error {
	id := c.Param("id")
	if !httpwire.IsRunID(id) { // they have the same form
		return fault.New(fault.NotFound, "there is no question of this id").WithHint("GET /v1/questions lists the open ones")
	}
	f, err := readFields(c, a.opts.PayloadBytes+httpwire.SmallBody)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	var answer api.Answer
	err = errors.Join(f.Only("action", "form", "by", "note"), httpwire.Take(f, "action", &answer.Action),
		httpwire.Take(f, "by", &answer.By), httpwire.Take(f, "note", &answer.Note))
	if err != nil {
		return err
	}
	answer.Form = f["form"]
	if err := a.svc.Answer(c.Request().Context(), id, answer); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
