package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// modelPages are the pages of what runs asked models.
type modelPages struct{ runPages }

func (p modelPages) addRunModels() {
	p.page("/ui/runs/{id}/models", p.runModels)
	p.page("/ui/runs/{id}/models/{n}", p.runModel)
}

// modelPage is how many model calls a page lists.
const modelPage = 200

// modelList is a page of a run's model calls.
type modelList struct {
	runView
	Rows   []modelRow
	Next   int64 // after which there are more; 0: there are none
	Later  bool  // it isn't the first page
	Budget *budget
}

// modelRow is a model call in the list.
type modelRow struct {
	api.ModelCall
	Is  state
	Bar bar // its time within that of the run
}

// Took is how long the call took.
func (r modelRow) Took() string { return millis(r.MS) }

// First is how long it took until the first token of a stream.
func (r modelRow) First() string {
	if r.FirstMS == 0 {
		return none
	}
	return millis(r.FirstMS)
}

// Told is how the call ended.
func (r modelRow) Told() string {
	switch {
	case r.Status == 0:
		return "no answer"
	case r.Source == "" || r.Source == "provider":
		return strconv.Itoa(r.Status)
	}
	return strconv.Itoa(r.Status) + ", " + map[string]string{
		"cache": "from the cache", "replay": "replayed", "key": "by its key",
	}[r.Source]
}

// Spent is what the call took.
func (r modelRow) Spent() *api.ModelTotal {
	if r.Cost == 0 && r.Charged == 0 {
		return nil
	}
	return &api.ModelTotal{Charged: r.Charged, Cost: r.Cost}
}

// share is a part of a whole in percent.
func share(part, whole int64) string {
	if whole <= 0 {
		return none
	}
	return fmt.Sprintf("%.0f %%", float64(part)/float64(whole)*100)
}

// Cached is how much of the input came from the provider's cache.
func (r modelRow) Cached() string { return share(r.Tokens.Cached, r.Tokens.Input) }

// CachedShare is how much of all the input came from the providers' caches.
func (l modelList) CachedShare() string { return share(l.Models.Tokens.Cached, l.Models.Tokens.Input) }

// Own is what the run itself spent.
func (l modelList) Own() *api.ModelTotal {
	return &api.ModelTotal{Charged: l.Models.Charged, Cost: l.Models.Cost}
}

// budget is what is left of the tokens, or of the costs, that a run and all below it may spend.
type budget struct {
	Left, Of string
	Percent  int64 // that is spent
}

// Width is that of the bar.
func (b budget) Width() string { return strconv.FormatInt(b.Percent, 10) + "%" }

// budgetOf is what is left of the budget of a run's unit; nil: it has none, or nobody knows.
func (p modelPages) budgetOf(r *request, v runView) *budget {
	u, err := p.svc.Units.Version(r.Context(), v.Unit, v.Version)
	total := v.Models.Total()
	if err != nil || u == nil || total == nil {
		return nil
	}
	switch may := u.Policy.Budgets; {
	case may.Tokens > 0:
		left := max(may.Tokens-total.Charged, 0)
		return &budget{num(left), num(may.Tokens) + " tokens", 100 - left*100/may.Tokens}
	case may.Cost > 0:
		left := max(may.Cost-total.Cost, 0)
		return &budget{left.String(), may.Cost.String(), 100 - int64(float64(left)/float64(may.Cost)*100)}
	}
	return nil
}

// runModels is the list of a run's model calls.
func (p modelPages) runModels(r *request) (content, error) {
	v, err := p.runOf(r, "models")
	if err != nil {
		return content{}, err
	}
	dir, err := p.svc.Files.RunDir(r.Context(), v.ID)
	if err != nil {
		return content{}, err
	}
	after := numberOf(r, "after")
	page, err := models.ReadCallPage(dir, after, modelPage)
	if err != nil {
		return content{}, err
	}
	list := modelList{runView: v, Later: after > 0, Budget: p.budgetOf(r, v)}
	list.Next = behind(page.Next)
	a := axis{v.CreatedAt, r.frame.now}
	if v.FinishedAt != nil {
		a.to = *v.FinishedAt
	}
	for _, c := range page.Calls {
		list.Rows = append(list.Rows, rowOfCall(c, a))
	}
	return p.contentOf(v, part{"sums", "models-sums", list}, part{"calls", "models-calls", list}), nil
}

func rowOfCall(c api.ModelCall, a axis) modelRow {
	row := modelRow{ModelCall: c, Is: state{"ok", ""}}
	if c.Status < http.StatusOK || c.Status >= http.StatusMultipleChoices {
		row.Is.Class = "bad"
	}
	row.Bar = bar{row.Is.Class, a.at(c.At), a.at(c.At.Add(lasting(c.MS)))}
	return row
}

// modelView is one exchange with a model.
type modelView struct {
	modelRow
	dialogue
	Run      string
	Calls    int64 // of the run
	Cut      bool  // the answer was too long to be kept
	Bytes    int64 // of the request and the answer
	Request  string
	AnswerIs string
	Missing  *fault.Error // why it can't be shown
}

// Before is the number of the call before it; 0: there is none.
func (v modelView) Before() int64 { return v.N - 1 }

// After is the number of the next call; 0: there is none.
func (v modelView) After() int64 {
	if v.N >= v.Calls {
		return 0
	}
	return v.N + 1
}

// runModel is the page of one model call.
func (p modelPages) runModel(r *request) (content, error) {
	v, err := p.runOf(r, "models")
	if err != nil {
		return content{}, err
	}
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil || n < 1 {
		return content{}, fault.New(fault.NotFound, "the run has no such model call").
			WithHint("its page of model calls lists them")
	}
	dir, err := p.svc.Files.RunDir(r.Context(), v.ID)
	if err != nil {
		return content{}, err
	}
	one := modelView{Run: v.ID}
	if v.Models != nil {
		one.Calls = v.Models.Calls
	}
	e, err := models.ReadExchange(dir, n)
	switch {
	case fault.Is(err, fault.NotFound):
		if err = one.miss(dir, n, err); err != nil {
			return content{}, err
		}
	case err != nil:
		return content{}, err
	default:
		one.modelRow = rowOfCall(e.ModelCall, axis{})
		one.dialogue, one.Cut, one.Bytes = newDialogue(e), e.Cut, int64(len(e.Request)+len(e.Answer))
		one.Request, one.AnswerIs = jsonPiece(e.Request).Text, jsonPiece(e.Answer).Text
	}
	c := p.contentOf(v, part{"exchange", "models-exchange", one})
	c.follow = nil // what was said doesn't change
	return c, nil
}

// miss shows a call of which the figures alone are kept. The error is why there is no such call.
func (v *modelView) miss(dir string, n int64, why error) error {
	page, err := models.ReadCallPage(dir, n-1, 1)
	if err != nil {
		return err
	}
	if len(page.Calls) == 0 || page.Calls[0].N != n {
		return why
	}
	v.modelRow, v.Missing = rowOfCall(page.Calls[0], axis{}), fault.Public(why)
	return nil
}
