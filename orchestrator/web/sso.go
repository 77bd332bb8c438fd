package web

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// maxNext bounds the address to which a sign-in leads: it is in a cookie meanwhile.
const maxNext = 1 << 10

// doorPages lead to the issuer, and back.
type doorPages struct{ *Page }

func (p doorPages) addDoors() {
	p.open("GET /ui/sso", p.leave)
	p.open("GET /ui/callback", p.comeBack)
}

// leave sends a browser to the issuer. What it needs to come back is with it alone.
func (p doorPages) leave(w http.ResponseWriter, r *request) error {
	if p.opts.People == nil {
		return errNoPeople()
	}
	next := local(r.URL.Query().Get("next"))
	if len(next) > maxNext {
		next = local("")
	}
	secret := issuer.NewSecret()
	address, err := p.opts.People.Begin(r.Context(), issuer.VisitBy(secret, p.callback(r)))
	if err != nil {
		return p.refused(w, r, next, err)
	}
	kept := secret + "." + base64.RawURLEncoding.EncodeToString([]byte(next))
	http.SetCookie(w, p.svc.Signins.VisitCookie(kept, p.opts.overTLS(r)))
	redirect(w, address)
	return nil
}

// comeBack signs somebody in who comes back from the issuer, by the browser that was sent there.
func (p doorPages) comeBack(w http.ResponseWriter, r *request) error {
	if p.opts.People == nil {
		return errNoPeople()
	}
	secret, text, _ := strings.Cut(p.svc.Signins.VisitOf(r.Request), ".")
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	next, asked := local(string(raw)), r.URL.Query()
	visit := issuer.VisitBy(secret, p.callback(r))
	if secret == "" || subtle.ConstantTimeCompare([]byte(asked.Get("state")), []byte(visit.State())) != 1 {
		return p.refused(w, r, next, fault.New(fault.Unauthorized,
			"this browser didn't begin to sign in, or took too long").WithHint("sign in again"))
	}
	http.SetCookie(w, p.svc.Signins.VisitCookie("", p.opts.overTLS(r)))
	session, err := p.admit(r, asked, visit)
	if err != nil {
		return p.refused(w, r, next, err)
	}
	p.enter(w, r, session, next)
	return nil
}

// admit signs somebody in by what their browser came back with.
func (p doorPages) admit(r *request, asked url.Values, visit issuer.Visit) (signins.Session, error) {
	code := asked.Get("code")
	if code == "" {
		return signins.Session{}, fault.New(fault.Unauthorized, "the issuer has let nobody in: %s",
			fault.Quote(asked.Get("error"))).WithHint("sign in again, or ask the operator of the server")
	}
	person, err := p.opts.People.End(r.Context(), code, visit)
	if err == nil {
		_, err = p.opts.People.Grant(person)
	}
	if err != nil {
		return signins.Session{}, err
	}
	return p.svc.Signins.Begin(r.Context(), signins.Proof{Person: person.Text()})
}

// callback is the address to which the issuer sends browsers back. That of the request is one of this server: others
// are refused before.
func (p doorPages) callback(r *request) string {
	if p.opts.Redirect != "" {
		return p.opts.Redirect
	}
	at := url.URL{Scheme: "http", Host: r.Host, Path: "/ui/callback"}
	if p.opts.overTLS(r) {
		at.Scheme = "https"
	}
	return at.String()
}

func errNoPeople() error {
	return fault.New(fault.NotFound, "nobody signs in elsewhere for this server").WithHint("sign in with a token")
}
