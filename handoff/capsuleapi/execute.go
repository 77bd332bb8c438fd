package capsuleapi

import (
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// execute makes a handoff, under the same rules, of a request in another format.
func (h *handoffs) execute(w http.ResponseWriter, r *http.Request) error {
	var unreadable error
	id, err := h.broker.StartRead(r.Context(), func() (asked handoff.Request, err error) {
		asked, unreadable = h.readExecution(w, r)
		return asked, unreadable
	})
	return h.answerForeign(w, r, id, unreadable, err)
}

// answerForeign answers a program of another orchestrator's, in its terms: a run is a
// session, and a run that was refused or has failed is a request that succeeded.
func (h *handoffs) answerForeign(w http.ResponseWriter, r *http.Request, id string, unreadable, refused error) error {
	if refused != nil {
		return h.refuseForeign(w, r, unreadable, refused)
	}
	w.Header().Set("Location", "/handoff/"+id)
	result, err := h.await(r.Context(), id, wait{untilEnd: true})
	switch {
	case err != nil:
		return err
	case !result.Ended:
		return interrupted(id)
	case !result.Success:
		return h.responder.reply(w, r, http.StatusOK, httpwire.NotExecuted(h.whyFailed(r, id, result)))
	}
	answer, err := h.executedOf(r, id, result)
	if err != nil {
		return err
	}
	return h.responder.reply(w, r, http.StatusOK, answer)
}

// refuseForeign answers with a refusal. unreadable is set if the body isn't the shape. A client
// that asks for problems gets one.
func (h *handoffs) refuseForeign(w http.ResponseWriter, r *http.Request, unreadable, refused error) error {
	if httpwire.WantsProblem(r) || !handoff.IsAboutCall(refused) {
		return refused
	}
	p := ProblemOf(refused)
	h.responder.logRefusal(r, p, refused)
	if unreadable != nil {
		return h.responder.reply(w, r, p.Status, httpwire.UnreadableOf(p))
	}
	return h.responder.reply(w, r, http.StatusOK, httpwire.NotExecuted(httpwire.FailureOf(refused).Text()))
}

func (h *handoffs) whyFailed(r *http.Request, id string, result handoff.Result) string {
	why := httpwire.Failure{
		Message:  "the run ended in the state " + result.State,
		ExitCode: result.ExitCode, Words: h.runs.LastWords(r.Context(), id),
	}
	if e := result.Error; e != nil {
		why.Type, why.Message, why.Hint, why.Findings = e.Type, e.Message, e.Hint, e.Findings
	}
	return why.Text()
}

// executedOf delivers the files of a call. Their names are those in incoming.
func (h *handoffs) executedOf(r *http.Request, id string, result handoff.Result) (httpwire.Executed, error) {
	files, err := h.broker.Deliver(r.Context(), id, result.Files)
	if err != nil {
		return httpwire.Executed{}, err
	}
	answer := httpwire.Executed{
		Success: true, Output: result.Output, Files: []string{}, FilePaths: map[string]string{}, Session: &id,
	}
	for _, f := range files {
		name := strings.TrimPrefix(f.Path, string(contract.StageIncoming)+"/")
		answer.Files = append(answer.Files, name)
		answer.FilePaths[name] = f.Path
	}
	return answer, nil
}
