package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// inputRequired answers a call whose client has to come back with answers.
type inputRequired struct {
	sdk.ResultBase
	ResultType    string              `json:"resultType"`
	InputRequests sdk.InputRequestMap `json:"inputRequests"`
	RequestState  string              `json:"requestState"`
}

// rounds are the calls that wait for their clients to come back with answers. What names such a call is held by the
// client meanwhile: it is signed, good once, for a time, and for whoever made the call.
type rounds struct {
	key [sha256.Size]byte

	mu   sync.Mutex
	open map[string]round // by run
}

// round is what is known of a call that waits.
type round struct {
	nonce   string
	ends    time.Time
	hearing context.Context //nolint:containedctx // it ends when the client can't answer any more
}

// roundState is what the client holds.
type roundState struct {
	Run       string   `json:"run"`
	Questions []string `json:"questions"`
	Ends      int64    `json:"ends"` // in seconds since 1970
	Nonce     string   `json:"nonce"`
}

const (
	answerTime = 24 * time.Hour // how long a client has to come back
	maxRounds  = 10_000
	maxState   = 4 << 10 // bytes
)

func newRounds() *rounds {
	r := &rounds{open: map[string]round{}}
	_, _ = rand.Read(r.key[:]) // it ends the process rather than failing
	return r
}

// begin notes that a call waits for answers to questions, and returns what its client has to come back with.
func (r *rounds) begin(ctx context.Context, req *sdk.CallToolRequest, run string, questions []string) string {
	now := time.Now()
	state := roundState{
		Run: run, Questions: questions, Ends: now.Add(answerTime).Unix(), Nonce: rand.Text(),
	}
	r.mu.Lock()
	r.forget(now)
	r.open[run] = round{state.Nonce, time.Unix(state.Ends, 0), hearingOf(ctx)}
	r.mu.Unlock()
	payload, _ := json.Marshal(state) // texts and a number can't fail
	return base64.RawURLEncoding.EncodeToString(payload) + "." +
		base64.RawURLEncoding.EncodeToString(r.sign(payload, boundTo(ctx, req)))
}

// forget drops what nobody may come back to, and makes room for one more.
func (r *rounds) forget(now time.Time) {
	oldest := ""
	for run, each := range r.open {
		if !now.Before(each.ends) {
			delete(r.open, run)
			continue
		}
		if oldest == "" || each.ends.Before(r.open[oldest].ends) {
			oldest = run
		}
	}
	if len(r.open) >= maxRounds {
		delete(r.open, oldest)
	}
}

// sign signs a state together with the call that it is good for.
func (r *rounds) sign(payload, boundTo []byte) []byte {
	mac := hmac.New(sha256.New, r.key[:])
	_, _ = mac.Write(boundTo) // a hash takes everything
	_, _ = mac.Write(payload)
	return mac.Sum(nil)
}

// boundTo is a digest of what a client has to send again: the same call, by the same token.
func boundTo(ctx context.Context, req *sdk.CallToolRequest) []byte {
	digest := sha256.New()
	for _, part := range []string{httpwire.OwnerOf(ctx), req.Params.Name, string(req.Params.Arguments)} {
		one := sha256.Sum256([]byte(part))
		_, _ = digest.Write(one[:]) // a hash takes everything
	}
	return digest.Sum(nil)
}

// end takes a call whose client has come back. The error is the protocol's.
func (r *rounds) end(ctx context.Context, req *sdk.CallToolRequest) (state roundState, err error) {
	foreign := invalid("requestState is none that was given to this call: make the call again without it")
	text, signature, _ := strings.Cut(req.Params.RequestState, ".")
	if len(req.Params.RequestState) > maxState {
		return state, foreign
	}
	payload, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return state, foreign
	}
	signed, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(signed, r.sign(payload, boundTo(ctx, req))) {
		return state, foreign
	}
	if err := json.Unmarshal(payload, &state); err != nil {
		return state, foreign
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, waits := r.open[state.Run]
	if !waits || known.nonce != state.Nonce || !time.Now().Before(known.ends) {
		return state, invalid("requestState is used up, or too old: `aod answer` answers what the run %s asks",
			state.Run)
	}
	delete(r.open, state.Run)
	return state, nil
}

// reopen has the client of a call come back once more with the same state: its answers were none.
func (r *rounds) reopen(ctx context.Context, state roundState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[state.Run] = round{state.Nonce, time.Unix(state.Ends, 0), hearingOf(ctx)}
}

// left takes the runs whose clients can't come back any more.
func (r *rounds) left() (runs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run, each := range r.open {
		if each.hearing.Err() != nil {
			runs = append(runs, run)
			delete(r.open, run)
		}
	}
	slices.Sort(runs)
	return runs
}
