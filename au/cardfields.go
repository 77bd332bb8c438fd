package au

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
)

// readCard reads the fields of a card that keeps the schema. It looks them up by their
// exact names: encoding/json would accept "Name" for "name" as well.
func readCard(p contract.Payload, raw []byte) *Card {
	card := &Card{raw: slices.Clone(raw), Warnings: ignored("", keys(p), cardKeys)}
	card.Name, card.Version, card.Description = field(p, "name"), field(p, "version"), field(p, "description")
	for _, v := range list(p, "capabilities") {
		tag, _ := v.(string)
		card.Capabilities = append(card.Capabilities, tag)
	}
	card.Inputs, card.Outputs = card.media(p, "inputs"), card.media(p, "outputs")
	card.readConfig(p)
	card.readExitCodes(p)
	return card
}

// The keys of a card's objects.
var (
	cardKeys      = []string{"name", "version", "description", "capabilities", "inputs", "outputs", "config", "exit_codes"}
	mediaKeys     = []string{"media_type", "description"}
	parameterKeys = []string{"type", "description", "default"}
)

func (c *Card) media(p contract.Payload, key string) []Media {
	var all []Media
	for i, v := range list(p, key) {
		m, _ := v.(map[string]any)
		c.Warnings = append(c.Warnings, ignored("/"+key+"/"+strconv.Itoa(i), slices.Sorted(maps.Keys(m)), mediaKeys)...)
		all = append(all, Media{Type: text(m["media_type"]), Description: text(m["description"])})
	}
	return all
}

func (c *Card) readConfig(p contract.Payload) {
	for name, m := range sortedObjects(p, "config") {
		c.Warnings = append(c.Warnings, ignored("/config/"+name, slices.Sorted(maps.Keys(m)), parameterKeys)...)
		value, stated := m["default"]
		c.Config = append(c.Config, Parameter{
			Name: name, Type: Type(text(m["type"])), Description: text(m["description"]),
			Default: value, Required: stated && value == nil,
		})
	}
}

func (c *Card) readExitCodes(p contract.Payload) {
	v, _ := p.Get("exit_codes")
	names, _ := v.(map[string]any)
	for code, name := range names {
		if c.ExitCodes == nil {
			c.ExitCodes = map[int]string{}
		}
		n, _ := strconv.Atoi(code) // the schema admits whole numbers only
		c.ExitCodes[n] = text(name)
	}
}

// ignored warns of unknown keys. It names at most a few of them.
func ignored(pointer string, given, known []string) []fault.Finding {
	const most = 10
	var found []fault.Finding
	for _, key := range given {
		if slices.Contains(known, key) || len(found) == most {
			continue
		}
		found = append(found, fault.Finding{
			Pointer: pointer + "/" + strictjson.Escape(fmt.Sprintf("%.80s", key)), Warning: true,
			Message: "is no field of a model card and is ignored", Hint: "fields here are " + strings.Join(known, ", "),
		})
	}
	return found
}

// keys lists the names of a payload's fields, sorted.
func keys(p contract.Payload) []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(p.JSON(), &fields) // it was decoded before
	return slices.Sorted(maps.Keys(fields))
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func field(p contract.Payload, key string) string {
	v, _ := p.Get(key)
	return text(v)
}

func list(p contract.Payload, key string) []any {
	v, _ := p.Get(key)
	l, _ := v.([]any)
	return l
}

// sortedObjects yields the objects in an object, sorted by name.
func sortedObjects(p contract.Payload, key string) func(yield func(string, map[string]any) bool) {
	v, _ := p.Get(key)
	all, _ := v.(map[string]any)
	return func(yield func(string, map[string]any) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			m, _ := all[name].(map[string]any)
			if !yield(name, m) {
				return
			}
		}
	}
}
