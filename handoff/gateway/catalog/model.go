package catalog

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

const (
	maxTokens = 1_000_000_000
	maxPrice  = 1_000_000 // of the currency, for a million tokens
	billion   = 1_000_000_000
)

var (
	modelName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)
	allowWord = lazyregexp.New(`^(remote_urls|files|((field|tool|part):)?[a-z0-9][a-z0-9_.-]{0,63})$`)
)

// CheckName returns an error for what can't be the name of a model.
func CheckName(name string) error {
	if !modelName().MatchString(name) {
		return errors.New("a model can't have this name")
	}
	return nil
}

func (r *reader) models(at string, v any) map[string]Model {
	all := map[string]Model{}
	for name, value := range r.Each(at, v) {
		if !modelName().MatchString(name) {
			r.Report(strictyaml.Under(at, name), "a model can't have this name",
				"use up to 128 letters, digits and . _ : / @ + -")
			continue
		}
		all[name] = r.model(strictyaml.Under(at, name), value)
	}
	return all
}

func (r *reader) model(at string, v any) Model {
	var m Model
	var rpm int64
	r.Object(at, v, strictyaml.Fields{
		"use": r.uses(&m.Use), "order": r.order(&m.Order),
		"price":      func(at string, v any) { m.Price = r.price(at, v) },
		"prices":     func(at string, v any) { m.Prices = r.prices(at, v) },
		"max_output": r.integer(&m.MaxOutput, maxTokens), "context": r.integer(&m.Context, maxTokens),
		"rpm": r.integer(&rpm, maxTokens), "tpm": r.integer(&m.TPM, maxTokens),
		"allow": r.allow(&m.Allow), "images": r.flag(&m.Images),
		"timeouts": r.timeouts(&m.Timeouts),
	})
	m.RPM = int(rpm)
	if len(m.Use) == 0 {
		r.Report(at, "it uses nothing", "write use: [provider/model]")
	}
	r.checkPrices(at+"/prices", m)
	return m
}

func (r *reader) checkPrices(at string, m Model) {
	for _, u := range slices.SortedFunc(maps.Keys(m.Prices), Use.compare) {
		if !slices.Contains(m.Use, u) {
			r.Report(strictyaml.Under(at, u.String()), "it isn't in use", "name one of use, as it stands there")
		}
	}
}

func (r *reader) order(into *Order) func(string, any) {
	return func(at string, v any) {
		s, _ := v.(string)
		if *into = Order(s); !slices.Contains(Orders(), *into) {
			r.Report(at, "it isn't an order", "write listed, cheapest or race")
		}
	}
}

// flag reads true or false, of which neither is the default.
func (r *reader) flag(into **bool) func(string, any) {
	return func(at string, v any) {
		*into = new(false)
		r.Boolean(*into)(at, v)
	}
}

func (r *reader) uses(into *[]Use) func(string, any) {
	return func(at string, v any) {
		r.Texts(at, v, maxList, "write provider/model, where model is the provider's name for it", func(s string) bool {
			use := useOf(s)
			*into = append(*into, use)
			return use.Provider != "" && use.Model != "" && len(s) <= maxText
		})
	}
}

// useOf reads provider/model.
func useOf(text string) (u Use) {
	u.Provider, u.Model, _ = strings.Cut(text, "/")
	return u
}

func (r *reader) prices(at string, v any) map[Use]Price {
	all := map[Use]Price{}
	for name, value := range r.Each(at, v) {
		all[useOf(name)] = *r.price(strictyaml.Under(at, name), value)
	}
	return all
}

func (r *reader) allow(into *[]string) func(string, any) {
	return func(at string, v any) {
		r.Texts(at, v, maxList,
			"write remote_urls, files, field:NAME, part:TYPE, or the type of a tool such as web_search",
			func(s string) bool {
				*into = append(*into, s)
				return allowWord().MatchString(s)
			})
	}
}

func (r *reader) price(at string, v any) *Price {
	p := Price{Cached: -1, CacheWrite: -1}
	r.Object(at, v, strictyaml.Fields{
		"input": r.money(&p.Input), "cached": r.money(&p.Cached), "cache_write": r.money(&p.CacheWrite),
		"output": r.money(&p.Output),
	})
	if p.Cached < 0 {
		p.Cached = p.Input
	}
	if p.CacheWrite < 0 {
		p.CacheWrite = p.Input
	}
	return &p
}

// money reads an amount for a million tokens to the billionth.
func (r *reader) money(into *int64) func(string, any) {
	return func(at string, v any) {
		n, ok := billionths(v)
		if !ok {
			r.Report(at, "it isn't a price",
				"write what a million tokens cost, such as 0.25, with up to 9 digits behind the point")
			return
		}
		*into = n
	}
}

func billionths(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v * billion, v >= 0 && v <= maxPrice
	case float64:
		if v < 0 || v > maxPrice {
			return 0, false
		}
		whole, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
		if len(fraction) > 9 {
			return 0, false
		}
		n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", 9-len(fraction)), 10, 64)
		return n, err == nil && n < math.MaxInt64
	}
	return 0, false
}
