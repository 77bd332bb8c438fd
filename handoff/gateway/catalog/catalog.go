// Package catalog says which providers of models there are, and which models under which
// names: the tables `providers` and `models` of a server's file, and of a file of its own.
//
// Read reads a file with both tables. Providers and Models read one table each of a file that
// was parsed already, and Check then holds the two against each other. Findings have lines.
//
// Prices are integers: billionths of the currency for a million tokens. KnownPrice has approximate ones of
// known models, of a date, and KnownLimits what they can read and answer; there is no list of what models there are.
//
// It must not know how a provider is asked.
//
// Its Go API may change with every release: see docs/stability.md.
package catalog

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"
)

// Catalog is what a gateway may ask. The zero Catalog is nothing.
type Catalog struct {
	Providers map[string]Provider
	Models    map[string]Model // by the names that units ask for
	// Other returns a model of a name that Models doesn't have; nil: there is none.
	Other func(name string) (m Model, known bool)
}

// Model returns the model that units ask for by a name.
func (c Catalog) Model(name string) (m Model, known bool) {
	if m, known = c.Models[name]; known || c.Other == nil {
		return m, known
	}
	return c.Other(name)
}

// Dialect is a way to speak with a model.
type Dialect string

// The dialects.
const (
	Chat       Dialect = "chat"       // /chat/completions
	Responses  Dialect = "responses"  // /responses
	Messages   Dialect = "messages"   // /messages
	Embeddings Dialect = "embeddings" // /embeddings
)

// Dialects are all dialects.
func Dialects() []Dialect { return []Dialect{Chat, Responses, Messages, Embeddings} }

// Kind is a kind of provider.
type Kind string

// The kinds.
const (
	OpenAI     Kind = "openai"
	Anthropic  Kind = "anthropic"
	Compatible Kind = "compatible" // another server that speaks some of the dialects
	Script     Kind = "script"     // a file with answers
)

// Provider is who answers.
type Provider struct {
	Kind        Kind
	Key         string // the name of a secret; "" sends none
	BaseURL     string // without a slash at its end; "" is the vendor's own
	PlainHTTP   bool   // that the address may be plain http, though it isn't loopback's
	Dialects    []Dialect
	Concurrency int    // requests at once; 0 bounds nothing
	AnyField    bool   // that fields which nobody knows are passed on
	NoUsage     bool   // that the provider can't be asked for the usage of a stream
	Answers     string // the file of a script
	Timeouts    Timeouts
}

// Speaks reports whether the provider has a dialect.
func (p Provider) Speaks(d Dialect) bool { return slices.Contains(p.Dialects, d) }

// Use is a model of a provider, by the provider's own name for it.
type Use struct{ Provider, Model string }

func (u Use) String() string { return u.Provider + "/" + u.Model }

func (u Use) compare(other Use) int { return cmp.Compare(u.String(), other.String()) }

// Model is what a unit can ask for by a name.
type Model struct {
	Use       []Use         // the first that answers is taken
	Order     Order         // in which they are asked; "" is Listed
	Price     *Price        // nil: nobody knows
	Prices    map[Use]Price // of some of the use, where they aren't Price
	MaxOutput int64         // tokens of an answer at most; 0: see Catalog.Limits
	Context   int64         // tokens that it can read, of the largest model in use; 0: likewise
	RPM       int           // requests a minute; 0 bounds nothing
	TPM       int64         // tokens a minute; 0 bounds nothing
	Allow     []string
	Images    *bool // it takes them: agents show it those that their tools return; nil: see Catalog.Limits
	Timeouts  Timeouts
}

// Order is an order in which the use of a model is asked.
type Order string

// The orders.
const (
	Listed   Order = "listed"   // one after the other, as they stand there
	Cheapest Order = "cheapest" // one after the other, by what the request can cost
	Race     Order = "race"     // the first two at once, and the others after them
)

// Orders are all orders.
func Orders() []Order { return []Order{Listed, Cheapest, Race} }

// Timeouts are how long one attempt may take; 0 is the usual time. A model's go before its provider's.
type Timeouts struct {
	FirstByte time.Duration // until an answer begins
	Silence   time.Duration // between two parts of it
	Whole     time.Duration // until its end
}

// Over returns the timeouts, and of others those that it doesn't have.
func (t Timeouts) Over(others Timeouts) Timeouts {
	return Timeouts{
		FirstByte: cmp.Or(t.FirstByte, others.FirstByte), Silence: cmp.Or(t.Silence, others.Silence),
		Whole: cmp.Or(t.Whole, others.Whole),
	}
}

// DefaultMaxOutput is the cap of an answer where nobody gives one, in tokens: without any, the
// worst that a request can cost would have no bound.
const DefaultMaxOutput = 8192

// Price is what a million tokens cost, in billionths of the currency.
type Price struct {
	Input, Cached, CacheWrite, Output int64
}

// Dialects returns the dialects in which a model can be asked, in their usual order.
func (c Catalog) Dialects(m Model) []Dialect {
	return slices.DeleteFunc(Dialects(), func(d Dialect) bool {
		return !slices.ContainsFunc(m.Use, func(u Use) bool { return c.Providers[u.Provider].Speaks(d) })
	})
}

// Under makes the paths of scripts absolute: they begin at a directory.
func (c Catalog) Under(dir string) Catalog {
	for name, p := range c.Providers {
		if p.Answers != "" && !filepath.IsAbs(p.Answers) {
			p.Answers = filepath.Join(dir, p.Answers)
			c.Providers[name] = p
		}
	}
	return c
}
