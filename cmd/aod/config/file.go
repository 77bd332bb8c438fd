package config

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// file reads one YAML file into a loader's Config.
type file struct {
	*loader
	name string // as the user gave it
	base string // base of its relative paths
}

func (f *file) read() {
	root := f.root("name a YAML file with --config or AOD_CONFIG, or leave both out")
	if root == nil {
		return
	}
	keys := f.readers("", f.rows)
	keys["unit"], keys["policy"], keys[teamsKey], keys[tokensKey] = f.units, f.policy, f.teams, f.tokens
	keys[workerKey] = f.workers
	keys[tlsKey], keys[oidcKey] = f.tls(keys[tlsKey]), f.oidc
	keys["agents"], keys["a2a"] = f.block("agents", f.config.Agents.settings()), f.block("a2a", f.config.A2A.settings())
	keys[webhooksKey], keys[hooksKey] = f.block(webhooksKey, f.config.Webhooks.settings()), f.hooks
	var models *strictyaml.Document
	keys["providers"] = func(_ int, n *yaml.Node) {
		f.config.Providers = table(f, "providers", n, catalog.Providers,
			nil)
	}
	keys["models"] = func(_ int, n *yaml.Node) { f.config.Models = table(f, "models", n, catalog.Models, &models) }
	keys["upstreams"] = func(_ int, n *yaml.Node) { f.config.Upstreams = table(f, "upstreams", n, f.upstreams, nil) }
	f.object("", root.Line, root, keys)
	f.config.Catalog().Under(f.base)
	if models != nil {
		f.findings = append(f.findings, catalog.Check(models, f.config.Catalog())...)
	}
}

// root returns the file's content, or nil where there is none.
func (f *file) root(hint string) *yaml.Node {
	raw, err := readBounded(f.name)
	if err != nil {
		f.report(place{name: f.name}, err.Error(), hint)
		return nil
	}
	root, finding := strictyaml.ParseNode(f.name, raw)
	if finding != nil {
		f.findings = append(f.findings, *finding)
		return nil
	}
	if root == nil || isNull(root) {
		return nil
	}
	return root
}

func readBounded(name string) ([]byte, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("it can't be read: %s", safefs.Reason(err))
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it can't be read: %s", safefs.Reason(err))
	case len(raw) > maxFile:
		return nil, fmt.Errorf("it is larger than %s", quantity.SizeText(maxFile))
	}
	return raw, nil
}

// reader reads the value of a key at the given line.
type reader func(line int, n *yaml.Node)

// readers returns a reader for each setting of a table.
func (f *file) readers(under string, rows []setting) map[string]reader {
	readers := make(map[string]reader, len(rows)+1)
	for _, s := range rows {
		readers[s.key] = func(line int, n *yaml.Node) { f.setting(s, join(under, s.key), line, n) }
	}
	return readers
}

// object reads a mapping and refuses unknown keys.
func (f *file) object(under string, line int, n *yaml.Node, keys map[string]reader) {
	for key, value := range f.pairs(under, line, n) {
		if read, ok := keys[key.Value]; ok {
			read(key.Line, value)
			continue
		}
		f.report(f.at(key.Line), "there is no setting "+fault.Quote(join(under, key.Value)),
			fault.Suggest(key.Value, slices.Collect(maps.Keys(keys)), "aod config lists what there is"))
	}
}

// pairs yields the keys of a mapping with their values, each key once.
func (f *file) pairs(under string, line int, n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			f.report(f.at(line), named(under, "it must hold keys with values"), "write them as key: value")
			return
		}
		firstAt := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			first, taken := firstAt[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
				f.report(f.at(key.Line), named(under, "a key must be a text"), "put it in quotes")
			case taken:
				f.report(f.at(key.Line),
					fmt.Sprintf("%s stands twice, first in line %d", fault.Quote(join(under, key.Value)), first),
					"keep one of them")
			default:
				firstAt[key.Value] = key.Line
				if !yield(key, follow(n.Content[i+1])) {
					return
				}
			}
		}
	}
}

// units reads the settings of single units, by name.
func (f *file) units(line int, n *yaml.Node) {
	for key, value := range f.named("unit", line, n, api.CheckUnitName) {
		f.unit(key.Value, key.Line, value)
	}
}

func (f *file) unit(name string, line int, n *yaml.Node) {
	var u UnitConfig
	rows := u.settings()
	setDefaults(rows)
	setDefaults(u.A2A.settings())
	keys := f.readers(unitKey(name), rows)
	keys["limits"] = f.block(join(unitKey(name), "limits"), u.Limits.settings())
	keys["policy"] = f.block(join(unitKey(name), "policy"), u.Policy.own())
	keys["a2a"] = f.block(join(unitKey(name), "a2a"), u.A2A.settings())
	f.object(unitKey(name), line, n, keys)
	f.config.Unit[name] = u
}

// table reads a block that another package knows. It sets doc, unless that is nil, where the
// block is one.
func table[T any](
	f *file, key string, n *yaml.Node, read func(*strictyaml.Document) (T, []fault.Finding), doc **strictyaml.Document,
) (rows T) {
	block, findings := strictyaml.FromNode(f.name, n)
	if len(findings) == 0 {
		rows, findings = read(block)
		if doc != nil {
			*doc = block
		}
	}
	for _, finding := range findings {
		finding.Message = named(key, finding.Message)
		f.findings = append(f.findings, finding)
	}
	return rows
}

// upstreams reads the block "upstreams".
func (f *file) upstreams(doc *strictyaml.Document) (upstream.Table, []fault.Finding) {
	return upstream.Read(doc, f.base)
}

// block returns a reader for a mapping with the settings of a table.
func (f *file) block(under string, rows []setting) reader {
	return func(line int, n *yaml.Node) { f.object(under, line, n, f.readers(under, rows)) }
}

// fresh is block for settings that have no defaults yet.
func (f *file) fresh(under string, rows []setting) reader {
	setDefaults(rows)
	return f.block(under, rows)
}

// policy reads the block "policy".
func (f *file) policy(line int, n *yaml.Node) {
	keys := f.readers("policy", f.config.Policy.settings())
	keys["uploads"] = f.block(uploadsKey, f.config.Uploads.uploadSettings())
	f.object("policy", line, n, keys)
}

// setting reads the value of one setting, if its YAML type is right.
func (f *file) setting(s setting, key string, line int, n *yaml.Node) {
	if field, ok := s.into.(several); ok && n.Kind == yaml.SequenceNode {
		f.list(s, field, key, line, n)
		return
	}
	if field, ok := s.into.(mapping); ok && n.Kind == yaml.MappingNode {
		f.entries(s, field, key, line, n)
		return
	}
	if !fits(s.into, n) {
		f.report(f.at(line), key+": it can't be "+describe(n), s.into.hint())
		return
	}
	f.set(s, key, f.at(line), f.base, s.into.set(n.Value))
}

// list reads a list, and reports each problem at its item's line.
func (f *file) list(s setting, field several, key string, line int, n *yaml.Node) {
	items := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		item = follow(item)
		if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" {
			f.report(f.at(item.Line), key+": an item can't be "+describe(item), field.hint())
			continue
		}
		if _, err := field.check(item.Value); err != nil {
			f.report(f.at(item.Line), key+": "+err.Error(), field.hint())
			continue
		}
		items = append(items, item.Value)
	}
	f.set(s, key, f.at(line), f.base, field.setAll(items))
}

func (f *file) at(line int) place { return place{f.name, line} }

// named puts the key before a message about it.
func named(key, message string) string {
	if key == "" {
		return message
	}
	return key + ": " + message
}
