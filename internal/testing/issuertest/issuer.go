// Package issuertest is an issuer of OpenID Connect for tests: with keys that change, and people who sign in without
// being asked.
package issuertest

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are those of a token.
type Claims map[string]any

// Issuer is one that serves until the test ends. Its fields may be changed while it is asked, under its lock.
type Issuer struct {
	sync.Mutex

	URL    string
	Client string // whose tokens it makes
	Secret string // that the client has to show; "": none
	Person Claims // of whoever signs in
	Nonce  string // of ID tokens, in place of the one that was asked for
	Lasts  time.Duration
	Down   bool           // it answers with 500
	Says   map[string]any // in place of what it says of itself
	Asked  map[string]int // how often, by path

	t      testing.TB
	signer crypto.Signer
	names  []string // of the keys that it shows
	keys   map[string]crypto.Signer
	codes  map[string]url.Values
	fresh  map[string]bool // refresh tokens that are good
}

// New starts an issuer.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{
		Client: "aod", Person: Claims{"sub": "ada"}, Lasts: time.Hour, Asked: map[string]int{},
		t: t, keys: map[string]crypto.Signer{}, codes: map[string]url.Values{}, fresh: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.showKeys)
	mux.HandleFunc("GET /auth", i.signIn)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /revoke", i.revoke)
	mux.HandleFunc("POST /device", i.device)
	server := httptest.NewServer(i.counted(mux))
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.Add("one")
	return i
}

// Add has the issuer sign with a new key of a name, which it shows beside the others.
func (i *Issuer) Add(name string) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.AddKey(name, key)
}

// AddKey is Add for a key.
func (i *Issuer) AddKey(name string, key crypto.Signer) {
	i.Lock()
	defer i.Unlock()
	i.keys[name], i.signer, i.names = key, key, append(i.names, name)
}

// Rotate has the issuer sign with a new key of a name, and show no other one.
func (i *Issuer) Rotate(name string) {
	i.t.Helper()
	i.Add(name)
	i.Lock()
	defer i.Unlock()
	i.names = []string{name}
}

// Count is how often a path was asked for.
func (i *Issuer) Count(path string) int {
	i.Lock()
	defer i.Unlock()
	return i.Asked[path]
}

// Claims are those of a good token of the person, with changes: a nil leaves a claim out.
func (i *Issuer) Claims(changes Claims) Claims {
	now := time.Now()
	claims := Claims{"iss": i.URL, "aud": i.Client, "iat": now.Unix(), "exp": now.Add(i.Lasts).Unix()}
	for _, some := range []Claims{i.Person, changes} {
		maps.Copy(claims, some)
	}
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Token is a good token of the person, with changes of its claims.
func (i *Issuer) Token(changes Claims) string {
	i.t.Helper()
	i.Lock()
	defer i.Unlock()
	return i.sign(changes)
}

func (i *Issuer) sign(changes Claims) string {
	i.t.Helper()
	name := ""
	for n, key := range i.keys {
		if key == i.signer {
			name = n
		}
	}
	key := jose.JSONWebKey{Key: i.signer, KeyID: name}
	return Sign(i.t, jose.SigningKey{Algorithm: algorithmOf(i.signer), Key: key}, i.Claims(changes))
}

func algorithmOf(key crypto.Signer) jose.SignatureAlgorithm {
	if _, ok := key.(*ecdsa.PrivateKey); ok {
		return jose.ES256
	}
	return jose.RS256
}

// Sign makes a token by any key.
func Sign(t testing.TB, by jose.SigningKey, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(by, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (i *Issuer) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.Lock()
		defer i.Unlock()
		i.Asked[r.URL.Path]++
		if i.Down {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	says := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token",
		"device_authorization_endpoint": i.URL + "/device", "jwks_uri": i.URL + "/keys",
		"revocation_endpoint": i.URL + "/revoke",
	}
	maps.Copy(says, i.Says)
	answer(w, http.StatusOK, says)
}

func (i *Issuer) showKeys(w http.ResponseWriter, _ *http.Request) {
	set := jose.JSONWebKeySet{}
	for _, name := range i.names {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: i.keys[name].Public(), KeyID: name, Use: "sig"})
	}
	answer(w, http.StatusOK, set)
}

// signIn sends the browser back at once.
func (i *Issuer) signIn(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	back, err := url.Parse(asked.Get("redirect_uri"))
	if err != nil || asked.Get("response_type") != "code" || asked.Get("client_id") != i.Client ||
		asked.Get("code_challenge_method") != "S256" || asked.Get("state") == "" {
		http.Error(w, "a bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.codes[code] = asked
	query := back.Query()
	query.Set("code", code)
	query.Set("state", asked.Get("state"))
	back.RawQuery = query.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound) //nolint:gosec // tests send it where they like
}

// device lets a device in at once.
func (i *Issuer) device(w http.ResponseWriter, _ *http.Request) {
	code := rand.Text()
	i.codes[code] = url.Values{}
	answer(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": "ABCD-EFGH", "verification_uri": i.URL + "/activate", "expires_in": 60,
		"interval": 1,
	})
}

// token gives tokens for a code, once, or for a refresh token, which another one replaces.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	claims := Claims{}
	id, secret, _ := r.BasicAuth()
	if id == "" {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != i.Client || secret != i.Secret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	good := false
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		var asked url.Values
		code := r.PostFormValue("code")
		asked, good = i.codes[code]
		delete(i.codes, code)
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		good = good && asked.Get("redirect_uri") == r.PostFormValue("redirect_uri") &&
			asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:])
		claims["nonce"] = cmp.Or(i.Nonce, asked.Get("nonce"))
	case "refresh_token":
		good = i.fresh[r.PostFormValue("refresh_token")]
		delete(i.fresh, r.PostFormValue("refresh_token"))
	case "urn:ietf:params:oauth:grant-type:device_code":
		_, good = i.codes[r.PostFormValue("device_code")]
	}
	if !good {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	next := rand.Text()
	i.fresh[next] = true
	answer(w, http.StatusOK, map[string]any{
		"access_token": i.sign(Claims{"at": rand.Text()}), "id_token": i.sign(claims), "refresh_token": next,
		"token_type": "Bearer", "expires_in": int(i.Lasts.Seconds()),
	})
}

// revoke takes a refresh token back from the client to which it was given.
func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.PostFormValue("client_id") != i.Client {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	delete(i.fresh, r.PostFormValue("token"))
}

// Refreshes returns how many refresh tokens are good.
func (i *Issuer) Refreshes() int {
	i.Lock()
	defer i.Unlock()
	return len(i.fresh)
}

// Forget has no refresh token be good any more.
func (i *Issuer) Forget() {
	i.Lock()
	defer i.Unlock()
	clear(i.fresh)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
