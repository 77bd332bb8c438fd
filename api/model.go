package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// ModelCall is one request of a run for a model, without what was asked and answered. It is
// the data of an EventModel, too.
type ModelCall struct {
	N         int64       `json:"n"` // 1, 2, 3, … within the run, as they were noted: soon after the end of each
	At        time.Time   `json:"at"`
	Dialect   string      `json:"dialect"`
	Model     string      `json:"model"`              // as the run asked for it
	Provider  string      `json:"provider,omitempty"` // "": none was asked
	Upstream  string      `json:"upstream,omitempty"` // the provider's name for the model
	Source    string      `json:"source,omitempty"`   // who answered: provider, cache, replay or key
	Stream    bool        `json:"stream,omitempty"`
	Status    int         `json:"status"` // of HTTP; 0: it isn't over, or its process died
	Rule      string      `json:"rule,omitempty"`
	Attempts  int         `json:"attempts,omitempty"` // at providers
	Raced     string      `json:"raced,omitempty"`    // the provider that was asked at the same time, and lost
	Tokens    ModelTokens `json:"tokens"`
	Charged   int64       `json:"charged"`             // tokens that count in budgets
	Cost      Cost        `json:"cost,omitempty"`      // in the currency of the prices
	Estimated bool        `json:"estimated,omitempty"` // charged in full, because nobody said what it took
	FirstMS   float64     `json:"first_ms,omitempty"`  // until the first content of a stream
	MS        float64     `json:"ms"`
}

// EventType returns EventModel.
func (ModelCall) EventType() EventType { return EventModel }

// ModelCallPage is a part of the model calls of a run, in their order.
type ModelCallPage struct {
	Calls []ModelCall `json:"calls"`
	Next  *int64      `json:"next"` // after which there are more; nil: that was the last
}

// ModelTokens is what a provider counted.
type ModelTokens struct {
	Input      int64 `json:"input"`            // all of it, also what was cached
	Cached     int64 `json:"cached,omitempty"` // read from the provider's cache
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output"` // all of it, also reasoning
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// ModelUsage is what a run spent on models.
type ModelUsage struct {
	Calls     int64       `json:"calls"`
	Tokens    ModelTokens `json:"tokens"`
	Charged   int64       `json:"charged"` // tokens that count in budgets
	Cost      Cost        `json:"cost,omitempty"`
	Estimated int64       `json:"estimated,omitempty"` // calls that were charged in full
	// calls without a charge, which have no event: there were too many
	Unlisted int64       `json:"unlisted,omitempty"`
	Tree     *ModelTotal `json:"tree,omitempty"` // with all runs below it; nil: the same
}

// ModelTotal is what a run and all runs below it spent on models.
type ModelTotal struct {
	Charged int64 `json:"charged"`
	Cost    Cost  `json:"cost,omitempty"`
}

// Total is what the run and all runs below it spent; nil where nothing was.
func (u *ModelUsage) Total() *ModelTotal {
	switch {
	case u == nil:
		return nil
	case u.Tree != nil:
		return u.Tree
	}
	return &ModelTotal{Charged: u.Charged, Cost: u.Cost}
}

// Add counts one more call.
func (u *ModelUsage) Add(c ModelCall) {
	u.Calls++
	u.Tokens.Input += c.Tokens.Input
	u.Tokens.Cached += c.Tokens.Cached
	u.Tokens.CacheWrite += c.Tokens.CacheWrite
	u.Tokens.Output += c.Tokens.Output
	u.Tokens.Reasoning += c.Tokens.Reasoning
	u.Charged += c.Charged
	u.Cost += c.Cost
	if c.Estimated {
		u.Estimated++
	}
}

// Cost is an amount of the currency of the prices, in billionths. In JSON it is a number of
// that currency, exact to the billionth.
type Cost int64

const billion = 1_000_000_000

// String writes the cost without zeros at its end: "0.0212".
func (c Cost) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	text := fmt.Sprintf("%s%d.%09d", sign, int64(c)/billion, int64(c)%billion)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON implements json.Marshaler.
func (c Cost) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// maxCostText bounds the text of a cost, in bytes.
const maxCostText = 100

// UnmarshalJSON implements json.Unmarshaler. What is less than a billionth is cut off.
func (c *Cost) UnmarshalJSON(raw []byte) error {
	var number json.Number
	if err := json.Unmarshal(raw, &number); err != nil {
		return err
	}
	if number == "" {
		return nil // null
	}
	near, err := number.Float64()
	if err != nil || math.Abs(near) > math.MaxInt64/billion || len(raw) > maxCostText {
		return errors.New("a cost is out of range") // before its digits are written out
	}
	exact := new(big.Rat)
	if near != 0 {
		exact.SetString(number.String())
	}
	exact.Mul(exact, big.NewRat(billion, 1))
	whole := new(big.Int).Quo(exact.Num(), exact.Denom())
	if !whole.IsInt64() {
		return errors.New("a cost is out of range")
	}
	*c = Cost(whole.Int64())
	return nil
}

// ModelExchange is what a run asked with one call of a model, and what came.
type ModelExchange struct {
	ModelCall
	Request json.RawMessage `json:"request"`
	Answer  json.RawMessage `json:"answer,omitempty"` // a text where it isn't JSON, such as a stream
	Cut     bool            `json:"cut,omitempty"`    // the answer was too long to be kept whole
}

// Model is what units can ask for by a name.
type Model struct {
	Name       string   `json:"name"`
	Dialects   []string `json:"dialects"`             // that its providers speak
	Translated []string `json:"translated,omitempty"` // others in which it can be asked
	Use        []string `json:"use"`                  // provider/model, as the file lists them
	Order      string   `json:"order,omitempty"`      // in which they are asked; "": as they are listed
	Context    int64    `json:"context,omitempty"`    // tokens that it can read; 0: nobody knows
	MaxOutput  int64    `json:"max_output"`
	Images     bool     `json:"images,omitempty"`  // agents show it those that their tools return
	Price      *Price   `json:"price,omitempty"`   // nil: nobody knows
	Problem    string   `json:"problem,omitempty"` // why it can't be asked now; "" for none
}

// Price is what a million tokens cost.
type Price struct {
	Input      Cost `json:"input"`
	Cached     Cost `json:"cached"`
	CacheWrite Cost `json:"cache_write"`
	Output     Cost `json:"output"`
}

// TokensEvent is the data of an EventTokens: some of what a model says to a run at the moment, for those who ask for
// that. It has no number, isn't stored and doesn't come again: the run's answer has the whole.
type TokensEvent struct {
	// Answer is the name of the model's answer that it is a part of. One that broke off and is asked for anew has
	// another name.
	Answer string `json:"answer"`
	Kind   string `json:"kind"`            // AgentText or AgentThought
	Field  string `json:"field,omitempty"` // of the run's output, whose text it is; "": it is said beside that
	Text   string `json:"text"`            // masked
	Lost   bool   `json:"lost,omitempty"`  // some came before it that isn't there: its reader was too slow, or late
}

// EventType returns EventTokens.
func (TokensEvent) EventType() EventType { return EventTokens }
