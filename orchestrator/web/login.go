package web

import (
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// door is the page where people sign in.
type door struct {
	Next    string
	Issuer  string       // where people sign in; "": nowhere
	Problem *fault.Error // why they couldn't; nil: they haven't tried
}

// showLogin shows where people sign in, or signs them in by a code of `aod ui`.
func (p *Page) showLogin(w http.ResponseWriter, r *request) error {
	next := local(r.URL.Query().Get("next"))
	code := r.URL.Query().Get("code")
	if code == "" {
		p.showDoor(w, r, http.StatusOK, door{Next: next})
		return nil
	}
	session, err := p.svc.Signins.Redeem(r.Context(), code)
	if err != nil {
		return p.refused(w, r, next, err)
	}
	p.enter(w, r, session, next)
	return nil
}

// login signs somebody in with a token.
func (p *Page) login(w http.ResponseWriter, r *request) error {
	form, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	next := local(form.Get("next"))
	session, err := p.opts.SignIn(r.Context(), strings.TrimSpace(form.Get("token")))
	if err != nil {
		return p.refused(w, r, next, err)
	}
	p.enter(w, r, session, next)
	return nil
}

// refusals are what is told at the door, and not on a page of its own.
var refusals = map[fault.Kind]int{
	fault.Unauthorized: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.Unavailable: http.StatusServiceUnavailable,
}

// refused shows the door again to somebody whose token or code isn't good.
func (p *Page) refused(w http.ResponseWriter, r *request, next string, err error) error {
	status, known := refusals[fault.KindOf(err)]
	if !known {
		return err
	}
	p.showDoor(w, r, status, door{Next: next, Problem: fault.Public(err)})
	return nil
}

func (p *Page) showDoor(w http.ResponseWriter, r *request, status int, d door) {
	r.frame.Title, r.frame.Alone = "Sign in", true
	if p.opts.People != nil {
		d.Issuer = p.opts.People.Host()
	}
	p.write(w, status, r.frame, part{"door", "door", d})
}

func (p *Page) enter(w http.ResponseWriter, r *request, session signins.Session, next string) {
	http.SetCookie(w, p.svc.Signins.Cookie(session, p.opts.overTLS(r)))
	redirect(w, "./"+next)
}

// overTLS reports whether the browser came by TLS, to this server or to the proxy before it: the browser says so in its
// Origin, the proxy in a header. Whoever makes that up has a cookie that they can't send, and harms nobody else.
func overTLS(r *request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https:") ||
		strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// overTLS is overTLS for a page whose address the operator may have said.
func (o Options) overTLS(r *request) bool {
	return overTLS(r) || strings.HasPrefix(o.Redirect, "https:")
}

// logout signs somebody out.
func (p *Page) logout(w http.ResponseWriter, r *request) error {
	if secret := p.svc.Signins.SecretOf(r.Request); secret != "" {
		if err := p.svc.Signins.End(r.Context(), secret); err != nil {
			return err
		}
	}
	http.SetCookie(w, p.svc.Signins.Cookie(signins.Session{}, p.opts.overTLS(r)))
	redirect(w, "login")
	return nil
}
