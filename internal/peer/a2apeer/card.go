package a2apeer

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer"
)

// cardPath is where an agent's card lies below its address.
const cardPath = ".well-known/agent-card.json"

// Card is what an agent tells of itself, as far as a client goes by it.
type Card struct {
	Name        string
	Description string
	Version     string // of the agent
	Streams     bool   // it answers with streams
	// Interfaces are those that can be used, the best first. After those of the card each of version 1.0 stands once
	// more with 0.3: some agents speak that behind a card of 1.0.
	Interfaces []Interface
	Raw        json.RawMessage // the card itself
}

// cardWire is a card of version 1.0 or 0.3.
type cardWire struct {
	Name         string `json:"name"`
	Description  string `json:"description"`
	Version      string `json:"version"`
	Capabilities struct {
		Streaming  bool `json:"streaming"`
		Extensions []struct {
			Required bool `json:"required"`
		} `json:"extensions"`
	} `json:"capabilities"`
	Interfaces []interfaceWire `json:"supportedInterfaces"` // 1.0

	URL             string          `json:"url"` // 0.3, and what follows
	Transport       string          `json:"preferredTransport"`
	ProtocolVersion string          `json:"protocolVersion"`
	Additional      []interfaceWire `json:"additionalInterfaces"`
}

type interfaceWire struct {
	URL       string `json:"url"`
	Binding   string `json:"protocolBinding"`
	Transport string `json:"transport"` // 0.3 for Binding
	Version   string `json:"protocolVersion"`
	Tenant    string `json:"tenant"`
}

// Card fetches the agent's card within CardTime. The error is a *Violation for a card that can't be gone by, a
// *Refusal, an Unavailable or a Deadline fault, or the cause of ctx's end.
func (c *Client) Card(ctx context.Context) (Card, error) {
	raw, err := c.fetchCard(ctx)
	if err != nil {
		return Card{}, err
	}
	return readCard(raw, c.far.Base)
}

// fetchCard returns the text of the agent's card.
func (c *Client) fetchCard(ctx context.Context) ([]byte, error) {
	limited, stop := context.WithTimeoutCause(ctx, CardTime, errTimeout)
	defer stop()
	x := &exchange{form: document, most: MaxCard}
	address := c.far.Base
	if !strings.HasSuffix(address.Path, ".json") {
		address = address.JoinPath(cardPath)
	}
	req, err := http.NewRequestWithContext(x.begin(limited), http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fault.New(fault.Input, "no request can be made to the agent's address")
	}
	req.Header.Set("Accept", "application/json")
	response, err := c.far.HTTP.Do(req)
	if err != nil {
		return nil, explain(limited, x, err)
	}
	defer func() { _ = response.Body.Close() }() // read as far as it is wanted
	if response.StatusCode != http.StatusOK {
		return nil, refusedBy(response.StatusCode)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, explain(limited, x, err)
	}
	return raw, nil
}

// readCard reads a card of an agent at an address. The error is a *Violation.
func readCard(raw []byte, base *url.URL) (Card, error) {
	var w cardWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return Card{}, broken(RuleCard, "its card isn't an object with the members of a card")
	}
	for _, extension := range w.Capabilities.Extensions {
		if extension.Required {
			return Card{}, broken(RuleInterfaces,
				"it wants an extension of the protocol from its clients, which AOD doesn't have")
		}
	}
	card := Card{
		Name: shown(w.Name), Description: shown(w.Description), Version: shown(w.Version),
		Streams: w.Capabilities.Streaming, Raw: raw,
	}
	var err error
	card.Interfaces, err = usable(w.interfaces(), base)
	return card, err
}

// interfaces lists what the card says of where the agent can be asked.
func (w *cardWire) interfaces() []interfaceWire {
	if len(w.Interfaces) > 0 {
		return w.Interfaces
	}
	version := w.ProtocolVersion
	if version == "" {
		version = string(V03)
	}
	var all []interfaceWire
	if w.URL != "" {
		all = append(all, interfaceWire{URL: w.URL, Binding: w.Transport, Version: version})
	}
	for _, each := range w.Additional {
		if each.URL != w.URL || each.Transport != w.Transport {
			all = append(all, interfaceWire{URL: each.URL, Binding: each.Transport, Version: version})
		}
	}
	return all
}

// usable returns the interfaces that can be used, the best first. The error is a *Violation if there is none.
func usable(all []interfaceWire, base *url.URL) (list []Interface, err error) {
	if len(all) > maxInterfaces {
		return nil, broken(RuleInterfaces, "its card has more than %d interfaces", maxInterfaces)
	}
	foreign := false
	for _, w := range all {
		i, spoken := w.known()
		if !spoken {
			continue
		}
		if address, err := url.Parse(i.URL); err != nil || address.User != nil || !peer.SameOrigin(address, base) {
			foreign = true
			continue
		}
		list = append(list, i)
	}
	switch {
	case len(list) > 0:
		slices.SortStableFunc(list, compareInterfaces)
		return withOlder(list), nil
	case foreign:
		return nil, broken(RuleOrigin,
			"its card names no interface at the origin of its address, and no other place is asked")
	}
	return nil, broken(RuleInterfaces, "its card has no interface of JSON-RPC or HTTP+JSON in version 1.0 or 0.3")
}

// shown bounds a text that is only shown.
func shown(text string) string { return fault.Clip(fault.OneLine(text), maxWords) }
