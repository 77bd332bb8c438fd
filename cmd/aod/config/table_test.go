package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// What is made from the table is written by these tests with -update, and compared
// without.
var update = flag.Bool("update", false, "write the schema and the guide's tables")

const (
	schemaFile = "../../../schemas/config.schema.json"
	guideFile  = "../../../docs/configuration.md"
)

func TestTheSchemaIsThatOfTheTable(t *testing.T) {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema()); err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, raw.String())
}

func TestTheGuidesTablesAreWhole(t *testing.T) {
	raw, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	text := replaceSection(t, string(raw), "settings", markdown(new(Config).settings()))
	text = replaceSection(t, text, "tls", markdown(new(CertificateConfig).settings()))
	text = replaceSection(t, text, "agents", markdown(new(AgentsConfig).settings()))
	text = replaceSection(t, text, "a2a", markdown(new(A2AConfig).settings()))
	text = replaceSection(t, text, "oidc", markdown(new(OIDCConfig).settings()))
	text = replaceSection(t, text, "oidc scopes", markdown(new(OIDCConfig).scopes()))
	text = replaceSection(t, text, webhooksKey, markdown(new(WebhooksConfig).settings()))
	text = replaceSection(t, text, hooksKey, markdown(new(HookConfig).settings()))
	text = replaceSection(t, text, "teams", markdown(new(TeamConfig).settings()))
	text = replaceSection(t, text, "model_cost", markdown(new(Spending).cost()))
	text = replaceSection(t, text, "model_tokens", markdown(new(Spending).tokens()))
	text = replaceSection(t, text, workerKey, markdown(new(WorkerConfig).settings()))
	text = replaceSection(t, text, "unit", markdown(new(UnitConfig).settings()))
	text = replaceSection(t, text, "limits", markdown(new(LimitsConfig).settings()))
	text = replaceSection(t, text, "unit a2a", markdown(new(UnitA2A).settings()))
	text = replaceSection(t, text, "policy", policyTable())
	golden(t, guideFile, text)
}

func TestEveryRowOfTheTable(t *testing.T) {
	for _, s := range slices.Concat(new(Config).settings(), new(CertificateConfig).settings(), new(AgentsConfig).settings(), new(A2AConfig).settings(), new(OIDCConfig).settings(), new(OIDCConfig).scopes(), new(WebhooksConfig).settings(), new(HookConfig).settings(), new(WorkerConfig).settings(), new(TeamConfig).settings(), new(Spending).cost(), new(Spending).tokens(), new(UnitConfig).settings(),
		new(LimitsConfig).settings(), new(UnitA2A).settings(), new(PolicyConfig).settings(), new(PolicyConfig).uploadSettings()) {
		t.Run(s.key+" is documented on one line", func(t *testing.T) {
			if s.doc == "" || strings.ContainsAny(s.doc, "\n`") || strings.HasSuffix(s.doc, ".") {
				t.Errorf("%q", s.doc)
			}
			if s.into.hint() == "" || s.into.kind() == "" {
				t.Error("it has no hint or no kind")
			}
		})
		t.Run(s.key+" has a default that is written as it is shown", func(t *testing.T) {
			if s.fallback == "" {
				return
			}
			if err := s.into.set(s.fallback); err != nil {
				t.Fatal(err)
			}
			if got := s.into.String(); got != s.fallback {
				t.Errorf("%s is shown as %s", s.fallback, got)
			}
		})
	}
}

// golden compares a file with what it should hold, or writes it.
func golden(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the table; go test ./cmd/aod/config -update writes it (-table +file):\n%s", name, diff)
	}
}

func replaceSection(t *testing.T, text, name, table string) string {
	t.Helper()
	begin := "<!-- " + name + ": written by go test ./cmd/aod/config -update -->\n"
	before, after, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(after, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("%s has no section for %s", guideFile, name)
	}
	return before + begin + table + "<!-- end -->" + after
}

func markdown(rows []setting) string {
	var b strings.Builder
	b.WriteString("| key | type | default | what it is |\n|---|---|---|---|\n")
	for _, s := range rows {
		kind := strings.ReplaceAll(s.into.kind(), "|", `\|`)
		if w, ok := s.into.(word); ok {
			kind = "`" + strings.Join(w.known, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.key, kind, coded(s.fallback), s.doc)
	}
	return b.String()
}

// object keeps the order of its keys, as a person would write a schema.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", m.key, raw)
	}
	return []byte("{" + b.String() + "}"), nil
}

func schema() object {
	unit := object{
		{"type", "object"},
		{"additionalProperties", false},
		{"properties", append(properties(new(UnitConfig).settings()),
			member{"limits", block("What it gets instead of the limits of its agent.yaml.", new(LimitsConfig).settings())},
			member{"policy", block("What it may have at most, instead of what policy and policy.uploads say.", new(PolicyConfig).own())},
			member{"a2a", block("What is in force for A2A clients of it, instead of what a2a says.", new(UnitA2A).settings())})},
	}
	units := object{
		{"description", "What is set for single units, by their names."},
		{"type", "object"},
		{"propertyNames", object{{"pattern", "^[a-z0-9]+([._-][a-z0-9]+)*$"}, {"maxLength", 63}}},
		{"additionalProperties", unit},
	}
	spending := object{
		{"model_cost", block("What models may cost.", new(Spending).cost())},
		{"model_tokens", block("How many tokens models may take.", new(Spending).tokens())},
	}
	teams := object{
		{"description", "The most that teams may have, by their names."},
		{"type", "object"},
		{"propertyNames", object{{"pattern", "^[a-z0-9]([a-z0-9_-]{0,29}[a-z0-9])?$"}}},
		{"additionalProperties", object{{"type", "object"}, {"additionalProperties", false}, {"properties", append(properties(new(TeamConfig).settings()), spending...)}}},
	}
	tokens := object{
		{"description", "The most that single tokens may have, by their names."},
		{"type", "object"},
		{"additionalProperties", object{{"type", "object"}, {"additionalProperties", false}, {"properties", append(properties(new(Quota).quota()), spending...)}}},
	}
	hooks := object{
		{"description", "What starts runs when others send webhooks, by their names."},
		{"type", "object"},
		{"propertyNames", object{{"pattern", "^[a-z0-9]+([._-][a-z0-9]+)*$"}, {"maxLength", 63}}},
		{"additionalProperties", append(block("A hook.", new(HookConfig).settings()), member{"required", []string{"unit", "secret"}})},
	}
	workers := object{
		{"description", "What is set for single workers, by their names."},
		{"type", "object"},
		{"additionalProperties", block("A worker.", new(WorkerConfig).settings())},
	}
	policy := block("The most that units may have.", new(PolicyConfig).settings(),
		member{"uploads", block("The most that uploaded units may have; the stricter of this and policy counts.", new(PolicyConfig).uploadSettings())})
	agents := object{
		{"description", "What is in force for requests of the agent HTTP contract."},
		{"type", "object"},
		{"additionalProperties", false},
		{"properties", properties(new(AgentsConfig).settings())},
	}
	people := append(block("People whom an issuer of OpenID Connect signs in.", new(OIDCConfig).settings(),
		member{"scopes", block("What they may do.", new(OIDCConfig).scopes())}), member{"required", []string{"issuer", "audience", "team", "scopes"}})
	agent2agent := block("How clients of the Agent2Agent protocol find units.", new(A2AConfig).settings())
	return object{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"$id", "https://github.com/agent-on-demand/aod/schemas/config.schema.json"},
		{"title", "The server's configuration"},
		{"description", "The file that --config or AOD_CONFIG names. Every key is optional."},
		{"type", "object"},
		{"additionalProperties", false},
		{"properties", append(properties(new(Config).settings()), member{"agents", agents}, member{"a2a", agent2agent}, member{"oidc", people}, member{webhooksKey, block("How receivers are told of the runs of teams.", new(WebhooksConfig).settings())}, member{hooksKey, hooks}, member{"policy", policy}, member{"teams", teams}, member{"tokens", tokens}, member{workerKey, workers}, member{"unit", units},
			member{"upstreams", upstreamsSchema()}, member{"providers", providersSchema()}, member{"models", modelsSchema()})},
	}
}

func block(doc string, rows []setting, more ...member) object {
	return object{
		{"description", doc},
		{"type", "object"},
		{"additionalProperties", false},
		{"properties", append(properties(rows), more...)},
	}
}

// policyTable has a column for uploads.
func policyTable() string {
	var b strings.Builder
	b.WriteString("| key | type | default | of uploads | what it is |\n|---|---|---|---|---|\n")
	uploads := new(PolicyConfig).uploadSettings()
	for i, s := range new(PolicyConfig).settings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.key, s.into.kind(), coded(s.fallback), coded(uploads[i].fallback), s.doc)
	}
	return b.String()
}

func coded(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func properties(rows []setting) object {
	all := object{}
	for _, s := range rows {
		all = append(all, member{s.key, property(s)})
		if s.key == tlsKey {
			files := append(block("The files of a certificate.", new(CertificateConfig).settings()), member{"required", []string{"cert", "key"}})
			all[len(all)-1].value = object{{"description", "How the server speaks TLS."}, {"anyOf", []any{property(s), files}}}
		}
	}
	return all
}

func property(s setting) object {
	doc := strings.ToUpper(s.doc[:1]) + s.doc[1:] + "."
	return append(object{{"description", doc}}, append(typeOf(s.into), defaultOf(s)...)...)
}

func typeOf(v value) object {
	switch v := v.(type) {
	case integer:
		return object{{"type", "integer"}, {"minimum", v.least}, {"maximum", v.most}}
	case boolean:
		return object{{"type", "boolean"}}
	case word:
		return object{{"type", "string"}, {"enum", v.known}}
	case duration:
		if v.least == 0 {
			return object{{"type", []string{"string", "integer"}}, {"pattern", "^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$"}, {"maximum", 0}, {"minimum", 0}}
		}
		return object{{"type", "string"}, {"pattern", quantity.DurationPattern}}
	case size:
		return object{{"type", []string{"string", "integer"}}, {"minimum", v.least}, {"maximum", v.most}}
	case money:
		return object{{"type", "number"}, {"minimum", 0}}
	case cores:
		return object{{"type", "number"}, {"minimum", leastCores}, {"maximum", mostCores}}
	case single:
		if v.name == "runtime" {
			return object{{"type", "string"}, {"pattern", runtimeRule().String()}}
		}
	case mapping:
		if v.name == "texts by names" {
			return object{
				{"type", "object"},
				{"maxProperties", maxVariables},
				{"propertyNames", object{{"pattern", variableRule().String()}, {"not", object{{"pattern", "^AOD_"}}}}},
				{"additionalProperties", object{{"type", []string{"string", "number", "boolean"}}, {"maxLength", maxVariableBytes}}},
			}
		}
		if v.name == "teams by values" {
			return object{{"type", "object"}, {"additionalProperties", object{{"type", "string"}, {"pattern", "^[a-z0-9]([a-z0-9_-]{0,29}[a-z0-9])?$"}}}}
		}
		if v.name == "scopes by values" {
			scope := object{{"type", "string"}, {"enum", scopeWords()}}
			return object{{"type", "object"}, {"additionalProperties", object{{"anyOf", []any{scope, object{{"type", "array"}, {"items", scope}}}}}}}
		}
		return object{
			{"type", "object"},
			{"propertyNames", object{{"minLength", 1}, {"maxLength", maxLabel}}},
			{"additionalProperties", nameSchema()},
		}
	case list:
		if v.name == "fields" {
			return object{{"type", "array"}, {"items", object{{"type", "string"}, {"enum", contractFields}}}}
		}
		if v.name == "scopes" && v.advice == scopeNames(nil).advice {
			return object{{"type", "array"}, {"items", object{{"type", "string"}, {"enum", scopeWords()}}}}
		}
		if v.name == "networks" {
			return object{{"type", "array"}, {"items", object{{"type", "string"}, {"enum", networkWords}}}}
		}
		if v.name == "runtimes" {
			return object{{"type", "array"}, {"items", object{{"type", "string"}, {"pattern", runtimeRule().String()}}}}
		}
		if v.name == "tokens" {
			return object{{"type", "array"}, {"items", object{{"type", "string"}, {"pattern", tokenRule().String()}}}}
		}
		if v.name == "texts" {
			return object{{"type", "array"}, {"items", object{{"type", "string"}, {"minLength", 1}, {"maxLength", maxLabel}}}}
		}
		return texts()
	case several:
		return texts()
	}
	return object{{"type", "string"}, {"minLength", 1}}
}

func texts() object {
	return object{{"type", "array"}, {"items", object{{"type", "string"}, {"minLength", 1}}}}
}

func nameSchema() object {
	return object{{"type", "string"}, {"pattern", "^[a-z0-9]+([._-][a-z0-9]+)*$"}, {"maxLength", 63}}
}

func defaultOf(s setting) object {
	if s.fallback == "" {
		return nil
	}
	switch s.into.(type) {
	case list:
		return object{{"default", strings.Split(s.fallback, ",")}}
	case cores:
		n, _ := strconv.ParseFloat(s.fallback, 64)
		return object{{"default", n}}
	case integer:
		n, _ := strconv.Atoi(s.fallback)
		return object{{"default", n}}
	case boolean:
		return object{{"default", s.fallback == "true"}}
	case money:
		n, _ := strconv.ParseFloat(s.fallback, 64)
		return object{{"default", n}}
	}
	return object{{"default", s.fallback}}
}
