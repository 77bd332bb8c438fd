package contract

import (
	"errors"
	"fmt"
	"maps"

	"github.com/xeipuuv/gojsonschema"
)

// render writes a node and all that it refers to as a document of its own for
// gojsonschema: draft-07 names only, every reference canonical, no identifier, no
// annotation. What the compiler did not check can't be in it.
func render(root *node) map[string]any {
	r := &renderer{definitions: map[string]any{}}
	document := r.reference(root)
	for len(r.waiting) > 0 {
		n := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.definitions[n.name()] = r.body(n)
	}
	document["$defs"] = r.definitions
	return document
}

type renderer struct {
	definitions map[string]any
	waiting     []*node
}

func (n *node) name() string { return fmt.Sprintf("n%d", n.id) }

func (r *renderer) reference(n *node) map[string]any {
	if _, known := r.definitions[n.name()]; !known {
		r.definitions[n.name()] = true
		r.waiting = append(r.waiting, n)
	}
	return map[string]any{"$ref": "#/$defs/" + n.name()}
}

// schema renders a node where it stands; one that is referred to is rendered once,
// as a definition.
func (r *renderer) schema(n *node) any {
	if n.target {
		return r.reference(n)
	}
	return r.body(n)
}

func (r *renderer) body(n *node) any {
	if n.always != nil {
		return *n.always
	}
	if n.ref != nil {
		return r.reference(n.ref)
	}
	return r.object(n)
}

func (r *renderer) object(n *node) any {
	out := map[string]any{}
	maps.Copy(out, n.asserts)
	if n.types != 0 {
		out["type"] = anys(n.types.names())
	}
	if len(n.required) > 0 {
		out["required"] = anys(n.required)
	}
	for key, field := range singles {
		if child := *field(n); child != nil {
			out[key] = r.schema(child)
		}
	}
	for key, field := range lists {
		if children := *field(n); len(children) > 0 {
			out[key] = r.schemas(children)
		}
	}
	r.containers(n, out)
	return out
}

func (r *renderer) containers(n *node, out map[string]any) {
	if len(n.properties) > 0 {
		properties := map[string]any{}
		for key, child := range n.properties {
			properties[key] = r.schema(child)
		}
		out["properties"] = properties
	}
	if len(n.patterns) > 0 {
		patterns := map[string]any{}
		for _, p := range n.patterns {
			patterns[p.re.String()] = r.schema(p.schema)
		}
		out["patternProperties"] = patterns
	}
	if len(n.dependencies)+len(n.dependentKeys) > 0 {
		dependencies := map[string]any{}
		for key, child := range n.dependencies {
			dependencies[key] = r.schema(child)
		}
		for key, names := range n.dependentKeys {
			dependencies[key] = anys(names)
		}
		out["dependencies"] = dependencies
	}
	if n.items != nil {
		out["items"] = r.schema(n.items)
	}
	if len(n.tuple) > 0 {
		out["items"] = r.schemas(n.tuple)
	}
}

func (r *renderer) schemas(nodes []*node) []any {
	list := make([]any, len(nodes))
	for i, n := range nodes {
		list[i] = r.schema(n)
	}
	return list
}

func anys(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}

// compileRendered hands a rendered document to gojsonschema. The recover is for
// its dereferences of what it did not check; none is known to be reachable.
func compileRendered(document any) (s *gojsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, errors.New("the schema library gave up on it")
		}
	}()
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect, loader.Draft = false, gojsonschema.Draft7
	return loader.Compile(sealed{gojsonschema.NewRawLoader(document)})
}

// sealed is a loader of one document whose factory refuses all others, so that no
// contract can make gojsonschema fetch an address or read a file.
type sealed struct{ gojsonschema.JSONLoader }

// LoaderFactory returns the factory that refuses.
func (sealed) LoaderFactory() gojsonschema.JSONLoaderFactory { return refusal{} }

type refusal struct{}

// New returns a loader that refuses.
func (refusal) New(string) gojsonschema.JSONLoader {
	return refused{gojsonschema.NewRawLoader(nil)}
}

type refused struct{ gojsonschema.JSONLoader }

// LoadJSON refuses.
func (refused) LoadJSON() (any, error) {
	return nil, errors.New("contracts refer to nothing outside themselves")
}

// LoaderFactory returns the factory that refuses.
func (refused) LoaderFactory() gojsonschema.JSONLoaderFactory { return refusal{} }
