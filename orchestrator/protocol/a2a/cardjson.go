package a2a

import (
	"context"
	"encoding/json"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
)

// cardJSON writes a card in the words of a version; "" are those of both, in one document.
func cardJSON(ctx context.Context, card *sdk.AgentCard, version string) ([]byte, error) {
	if version == version10 {
		return json.MarshalIndent(withoutRequirements(card), "", "  ")
	}
	document, err := bothVersions(ctx, card)
	if err != nil {
		return nil, err
	}
	if version == version03 {
		withoutNewWords(document)
	}
	return json.MarshalIndent(document, "", "  ")
}

// jsonCard is a card in the words of both versions.
type jsonCard interface {
	CardJSON(context.Context) ([]byte, error)
}

// bothVersions is a card in the words of both versions.
func bothVersions(ctx context.Context, card *sdk.AgentCard) (document map[string]any, err error) {
	raw, err := a2av0.NewStaticAgentCardProducer(card).(jsonCard).CardJSON(ctx)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	for _, scheme := range schemesOf(document) {
		inNewWords(scheme)
	}
	delete(document, "securityRequirements") // see withoutRequirements
	return document, nil
}

// schemesOf lists the security schemes of a card.
func schemesOf(document map[string]any) (all []map[string]any) {
	schemes, _ := document["securitySchemes"].(map[string]any)
	for _, scheme := range schemes {
		if object, ok := scheme.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// newWords are the names that version 1.0 has for the security schemes, by those of the SDK.
var newWords = map[string]string{"http": "httpAuthSecurityScheme", "apiKey": "apiKeySecurityScheme"}

// inNewWords adds to a security scheme what version 1.0 reads: the SDK writes it under a key that
// the SDK itself doesn't know.
func inNewWords(scheme map[string]any) {
	for old, name := range newWords {
		if value, there := scheme[old]; there {
			scheme[name] = value
			delete(scheme, old)
		}
	}
}

// withoutNewWords removes from a card of both versions what version 0.3 doesn't have.
func withoutNewWords(document map[string]any) {
	delete(document, "supportedInterfaces")
	if capabilities, ok := document["capabilities"].(map[string]any); ok {
		delete(capabilities, "extendedAgentCard")
	}
	for _, scheme := range schemesOf(document) {
		for _, name := range newWords {
			delete(scheme, name)
		}
	}
}

// withoutRequirements is a card as JSON of version 1.0 can have it. The SDK writes the scopes of a
// requirement as a list, and reads nothing else; the protocol has an object with a list in it, and
// readers that keep to that can't read such a card at all. Without requirements all can.
func withoutRequirements(card *sdk.AgentCard) *sdk.AgentCard {
	readable := *card
	readable.SecurityRequirements = nil
	return &readable
}
