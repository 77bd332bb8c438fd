package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// signed are the algorithms of signatures that count: whoever checks one by them can't make one.
var signed = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

const maxKeys = 100 // of an issuer

// keySet is the document of an issuer's keys.
type keySet struct {
	Keys []json.RawMessage `json:"keys"`
}

// parseKeys reads the keys by which signatures are checked, and leaves out those of other kinds.
func parseKeys(set keySet) (keys []jose.JSONWebKey, err error) {
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && key.Valid() && key.IsPublic() && key.Use != "enc" {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("keys: %d of %d can be used", len(keys), len(set.Keys))
	}
	return keys, nil
}

// named reports whether there is a key of a name; "": any.
func (k *known) named(id string) bool {
	for _, key := range k.keys {
		if id == "" || key.KeyID == id {
			return true
		}
	}
	return false
}

// VerifySignature implements oidc.KeySet. Only oidc.IDTokenVerifier may call it.
func (k *known) VerifySignature(_ context.Context, text string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(text, signed)
	if err != nil {
		return nil, err
	}
	id := token.Signatures[0].Header.KeyID
	for _, key := range k.keys {
		if id != "" && key.KeyID != id || key.Algorithm != "" && key.Algorithm != token.Signatures[0].Header.Algorithm {
			continue
		}
		if payload, err := token.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("no key of the issuer has signed it")
}
