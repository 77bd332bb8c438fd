package api

// Login is what a client needs to have somebody sign in at the issuer of a server.
type Login struct {
	Issuer   string   `json:"issuer"` // of OpenID Connect
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"` // to ask the issuer for
	// IDToken says that the server takes the ID token; else it takes the access token.
	IDToken bool `json:"id_token"`
}
