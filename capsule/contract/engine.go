package contract

import (
	"errors"

	"github.com/xeipuuv/gojsonschema"
)

// documentOf writes a schema and all that it leads to as a document of its own for
// gojsonschema: draft-07 names only, each schema once, no identifier, no annotation. What
// the compiler did not check can't be in it.
func documentOf(root *node) any {
	definitions := map[string]any{}
	for _, n := range closure([]*node{root}, (*node).parts) {
		definitions[n.name()] = n.form
		if n.always != nil {
			definitions[n.name()] = *n.always
		}
	}
	return map[string]any{"$ref": "#/$defs/" + root.name(), "$defs": definitions}
}

// engineFor hands a document to gojsonschema. The recover is for its dereferences of what
// it did not check; none is known to be reachable.
func engineFor(document any) (s *gojsonschema.Schema, err error) {
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

// New returns a loader that has nothing to load: contracts refer to nothing outside
// themselves.
func (refusal) New(string) gojsonschema.JSONLoader { return gojsonschema.NewStringLoader("") }
