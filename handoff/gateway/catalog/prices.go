package catalog

import (
	_ "embed" // the table of prices
	"sync"
)

//go:embed prices.yaml
var pricesFile []byte

var prices = sync.OnceValue(func() knownTable[Price] {
	return readKnown(pricesFile, "prices", (*reader).price)
})

// KnownPrice returns about what a provider takes for a model, by a table of the date asOf; nil: it isn't in there.
func KnownPrice(p Provider, model string) (price *Price, asOf string) {
	return prices().of(p, model), prices().asOf
}

// PriceOf returns what a model costs at one of its use, as its file says; nil: it says nothing.
func (m Model) PriceOf(u Use) *Price {
	if p, own := m.Prices[u]; own {
		return &p
	}
	return m.Price
}

// ListPrice returns the price by which Cheapest compares one of a model's use: that of Prices, else a known one; nil:
// nobody knows it.
func (c Catalog) ListPrice(m Model, u Use) *Price {
	if p, own := m.Prices[u]; own {
		return &p
	}
	price, _ := KnownPrice(c.Providers[u.Provider], u.Model)
	return price
}
