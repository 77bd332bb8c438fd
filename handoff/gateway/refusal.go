package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// The rules under which a request is refused, or fails.
const (
	RuleRequest     = "request"     // 400, 404, 405: it can't be read
	RuleSize        = "size"        // 413
	RuleBusy        = "busy"        // 503: too many under way, no memory left, or the server ends
	RuleModel       = "model"       // 403 not allowed, 404 unknown
	RuleDialect     = "dialect"     // 400: nobody who has the model speaks it
	RuleField       = "field"       // 403: a field that reaches further, or that nobody knows
	RuleTool        = "tool"        // 403: a tool that the provider would run
	RulePart        = "part"        // 403: a part of a kind that nobody knows
	RuleURL         = "remote_url"  // 403: an address that the provider would fetch
	RuleFile        = "file"        // 403: something that is kept at the provider
	RuleTokens      = "tokens"      // 402
	RuleCost        = "cost"        // 402
	RuleQuota       = "quota"       // 402: of a team or a token, for the day or the month
	RulePrice       = "price"       // 402: a budget of cost, and a model without a price
	RuleContext     = "context"     // 402: a budget, and an image or the like that nobody can bound
	RuleDeadline    = "deadline"    // 504: the run's
	RuleKey         = "key"         // 502: of the provider
	RuleProvider    = "provider"    // 502: it doesn't answer, or not as it should
	RuleSilent      = "silent"      // 504: it doesn't answer in time
	RuleRate        = "rate_limit"  // 429: the provider's
	RuleIdempotency = "idempotency" // 422: another body under a key
	RuleReplay      = "replay"      // 400: the cassette has no such request
	RuleInternal    = "internal"    // 500
)

// Refusal is an answer that is an error: the status, why, and what to do.
type Refusal struct {
	Status int
	Rule   string
	Msg    string
	Hint   string

	again  bool   // clients may send the request again by themselves
	err    error  // the cause, for the operator; may be nil
	told   bool   // the stream has said it already
	passed []byte // the provider's own body, which is shown instead; nil for none
}

func (r *Refusal) Error() string {
	if r.err != nil {
		return r.Msg + ": " + r.err.Error()
	}
	return r.Msg
}

func (r *Refusal) Unwrap() error { return r.err }

func refuse(status int, rule, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Rule: rule, Msg: fmt.Sprintf(format, args...)}
}

func (r *Refusal) hint(format string, args ...any) *Refusal {
	r.Hint = fmt.Sprintf(format, args...)
	return r
}

func (r *Refusal) because(err error) *Refusal {
	r.err = err
	return r
}

// errGone says that whoever asked doesn't listen any more.
var errGone = errors.New("the reader is gone")

// refusalOf makes an answer of any error.
func refusalOf(err error) *Refusal {
	var known *Refusal
	var excess *ledger.Excess
	var broken *fault.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &excess):
		return refuseExcess(excess)
	case errors.Is(err, context.DeadlineExceeded), fault.Is(err, fault.Deadline):
		return refuse(http.StatusGatewayTimeout, RuleDeadline, "the run's time was up").
			hint("raise the timeout of the unit, or ask for less").because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, errGone), fault.Is(err, fault.Cancelled):
		return refuse(499, RuleRequest, "the request was cancelled").hint("send it again").because(err)
	case errors.As(err, &broken) && broken.Kind == fault.TooLarge:
		return refuse(http.StatusRequestEntityTooLarge, RuleSize, "%s", broken.Msg).
			hint("send less in one request: the most is %d bytes", maxBody)
	case errors.As(err, &broken) && broken.Kind == fault.Unavailable:
		return refuseForNow(broken)
	case errors.As(err, &broken) && broken.Kind == fault.BadRequest:
		return refuse(http.StatusBadRequest, RuleRequest, "%s", broken.Msg).hint("send the whole body in one go")
	}
	return refuse(http.StatusInternalServerError, RuleInternal, "something went wrong inside AOD").
		hint("ask again; whoever runs this server finds the cause in its log").because(err)
}

// refuseForNow is for what there is no memory for.
func refuseForNow(full *fault.Error) *Refusal {
	r := refuse(http.StatusServiceUnavailable, RuleBusy, "%s", full.Msg).hint("%s", full.Hint)
	r.again = true
	return r
}

// refuseEnding is for those who wait while whoever serves the run lets go of it.
func refuseEnding(err error) *Refusal {
	r := refuse(http.StatusServiceUnavailable, RuleBusy, "the server ends, and another one goes on with the run").
		hint("send it again, with the same Idempotency-Key").because(err)
	r.again = true
	return r
}

func refuseExcess(e *ledger.Excess) *Refusal {
	left := max(e.Limit-e.Spent, 0)
	if e.Window != "" {
		return refuseQuota(e, left)
	}
	if e.Cost {
		return refuse(http.StatusPaymentRequired, RuleCost,
			"this request may cost %s, and %s of %s are left to run %s with all that it calls",
			money(e.Needed), money(left), money(e.Limit), e.Account).
			hint("ask for fewer max_tokens or send less; budgets.cost in agent.yaml and model_cost of the server " +
				"bound it")
	}
	return refuse(http.StatusPaymentRequired, RuleTokens,
		"this request may take %d tokens, and %d of %d are left to run %s with all that it calls",
		e.Needed, left, e.Limit, e.Account).
		hint("ask for fewer max_tokens or send less: until the provider has counted them, bytes are tokens; " +
			"budgets.tokens in agent.yaml and model_tokens of the server bound it")
}

// refuseQuota is for what has no room in a window, by whose account the setting is called that bounds it.
func refuseQuota(e *ledger.Excess, left int64) *Refusal {
	opens := e.Opens.UTC().Format(time.RFC3339)
	hint := "ask for fewer max_tokens, send less, or wait until then; the operator's setting bounds it"
	if e.Cost {
		return refuse(http.StatusPaymentRequired, RuleQuota,
			"this request may cost %s, and %s of %s are left until %s (%s.model_cost.%s)",
			money(e.Needed), money(left), money(e.Limit), opens, e.Account, e.Window).hint("%s", hint)
	}
	return refuse(http.StatusPaymentRequired, RuleQuota,
		"this request may take %d tokens, and %d of %d are left until %s (%s.model_tokens.%s)",
		e.Needed, left, e.Limit, opens, e.Account, e.Window).hint("%s", hint)
}

// money writes billionths of a currency.
func money(n int64) string {
	return strconv.FormatFloat(float64(n)/1e9, 'f', -1, 64)
}

// types are what dialects call an error of a status.
var types = map[int][2]string{ // of OpenAI, of Anthropic
	http.StatusBadRequest:            {"invalid_request_error", "invalid_request_error"},
	http.StatusPaymentRequired:       {"insufficient_quota", "billing_error"},
	http.StatusForbidden:             {"permission_denied_error", "permission_error"},
	http.StatusNotFound:              {"invalid_request_error", "not_found_error"},
	http.StatusMethodNotAllowed:      {"invalid_request_error", "invalid_request_error"},
	http.StatusRequestEntityTooLarge: {"invalid_request_error", "request_too_large"},
	http.StatusUnprocessableEntity:   {"invalid_request_error", "invalid_request_error"},
	http.StatusTooManyRequests:       {"rate_limit_error", "rate_limit_error"},
	http.StatusGatewayTimeout:        {"server_error", "timeout_error"},
}

// envelope writes a refusal as an error of a dialect.
func (r *Refusal) envelope(d catalog.Dialect) []byte {
	kind, known := types[r.Status]
	if !known {
		kind = [2]string{"server_error", "api_error"}
	}
	message := r.Msg
	if r.Hint != "" {
		message += " (" + r.Hint + ")"
	}
	problem := map[string]any{"message": message, "rule": r.Rule, "hint": r.Hint}
	body := map[string]any{"error": problem}
	if d == catalog.Messages {
		problem["type"], body["type"] = kind[1], "error"
	} else {
		problem["type"], problem["code"], problem["param"] = kind[0], r.Rule, nil
	}
	raw, _ := strictjson.Encode(body) // texts can be written
	return raw
}

// body is what is shown of a refusal.
func (r *Refusal) body(d catalog.Dialect) []byte {
	if r.passed != nil {
		return r.passed
	}
	return r.envelope(d)
}

// event writes a refusal as the last event of a stream that has begun.
func (r *Refusal) event(d catalog.Dialect) []byte {
	switch d {
	case catalog.Messages:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", r.envelope(d))
	case catalog.Responses:
		raw, _ := strictjson.Encode(map[string]any{
			"type": "error", "code": r.Rule, "message": r.Msg, "param": nil,
			"rule": r.Rule, "hint": r.Hint,
		})
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", raw)
	}
	return fmt.Appendf(nil, "data: %s\n\n", r.envelope(d))
}
