package au

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// readCard reads the fields of a card that keeps the schema. It looks them up by their
// exact names: encoding/json would accept "Name" for "name" as well.
func readCard(p contract.Payload, raw []byte) *Card {
	card := &Card{raw: slices.Clone(raw), Warnings: ignored("", keys(p), cardKeys)}
	card.Name, card.Version, card.Description = field(p, "name"), field(p, "version"), field(p, "description")
	if n, _ := p.Get("version"); card.Version == "" && n != nil {
		card.Version = fmt.Sprint(n) // a number: 1.0
	}
	for _, v := range list(p, "capabilities") {
		tag, _ := v.(string)
		card.Capabilities = append(card.Capabilities, tag)
	}
	card.Inputs, card.Outputs = card.media(p, "inputs", "*/*"), card.media(p, "outputs", "application/json")
	card.readConfig(p)
	card.readExitCodes(p)
	return card
}

// The keys of a card's objects.
var (
	cardKeys = []string{
		"name", "version", "description", "capabilities", "inputs", "outputs", "config",
		"exit_codes",
	}
	mediaKeys     = []string{"media_type", "description"}
	parameterKeys = []string{"type", "description", "short", "default"}
)

// media reads kinds of bytes; where none is stated it is the usual one.
func (c *Card) media(p contract.Payload, key, usual string) []Media {
	var all []Media
	for i, v := range list(p, key) {
		m, _ := v.(map[string]any)
		c.Warnings = append(c.Warnings, ignored("/"+key+"/"+strconv.Itoa(i), slices.Sorted(maps.Keys(m)), mediaKeys)...)
		all = append(all, Media{Type: text(m["media_type"]), Description: text(m["description"])})
	}
	if len(all) == 0 {
		return []Media{{Type: usual}}
	}
	return all
}

func (c *Card) readConfig(p contract.Payload) {
	for key, m := range sortedObjects(p, "config") {
		c.Warnings = append(c.Warnings, ignored("/config/"+key, slices.Sorted(maps.Keys(m)), parameterKeys)...)
		value, stated := m["default"]
		name := strings.TrimLeft(key, "-")
		c.Config = append(c.Config, Parameter{
			Name: name, Short: shortFlag(key, text(m["short"])), ShortOnly: len(name) == 1 &&
				strings.TrimSuffix(key, name) == "-",
			Type: typeCalled(text(m["type"])), Description: text(m["description"]),
			Default: value, Required: stated && value == nil,
		})
	}
	slices.SortFunc(c.Config, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
}

// shortFlag is the letter of a parameter: the stated one, or that of a name of one letter.
func shortFlag(key, stated string) string {
	letter := strings.TrimLeft(cmp.Or(stated, key), "-")
	if len(letter) != 1 {
		return ""
	}
	return letter
}

// flagsTwice finds flags that stand for two parameters: "--lang" beside "lang".
func (c *Card) flagsTwice() []fault.Finding {
	var found []fault.Finding
	seen := map[string]bool{}
	for _, p := range c.Config {
		for _, flag := range slices.Compact([]string{p.Name, p.Short}) {
			if flag != "" && seen[flag] {
				found = append(found, fault.Finding{
					Pointer: "/config", Message: "two parameters have the same flag",
					Hint: "name each parameter once, without dashes",
				})
			}
			seen[flag] = true
		}
	}
	return found
}

// breaches are what a card promises against the specification: an output that isn't JSON (5.2), and a
// model that nobody gave (4.2).
func (c *Card) breaches() (found []fault.Finding) {
	for i, m := range c.Outputs {
		declared := essence(m.Type)
		if !slices.Contains([]string{"*/*", "application/*", "application/json"}, declared) &&
			!strings.HasSuffix(declared, "+json") {
			found = append(found, fault.Finding{
				Pointer: fmt.Sprintf("/outputs/%d/media_type", i),
				Message: "isn't a form of JSON, which is what a unit prints",
				Hint:    "write application/json, or a type that ends in +json",
			})
		}
	}
	if p, ok := c.Parameter(modelPath); ok && p.Default != nil && p.Default != "" {
		found = append(found, fault.Finding{
			Pointer: "/config/" + modelPath + "/default", Message: "a model's path has no default",
			Hint: "write null, which says that it has to be given, or leave the default out",
		})
	}
	return found
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
			Message: "isn't a field of a model card and is ignored",
			Hint:    "fields here are " + strings.Join(known, ", "),
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
