package web

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/questions"
)

// frame is what all pages have around their parts, and by what they show times and links.
type frame struct {
	Title   string
	Section string // of the menu that is open
	Up      string // from the page's address to /ui/, such as "../"
	Who     string // has signed in; "": nobody has, or has to
	Team    string // of whoever has; "": the default one, or several
	Asked   string // how many questions are open; "": none
	Chat    bool   // the menu has sessions
	Alone   bool   // without a menu
	Live    bool   // parts of it are sent again when they have changed
	Parts   []shown
	Version string
	view
	// Key is new for each page that is loaded, and stays the same while the page is followed: a form that is sent twice
	// does its work once.
	Key  string
	Here string // the page's address below /ui/, to come back to it
	now  time.Time
	// zipped says that the browser takes compressed pages.
	zipped bool
	may    func(access.Scope) bool
}

// view is how somebody wants to see pages; a cookie keeps it.
type view struct {
	Theme    string // light or dark; "": as the system has it
	Absolute bool   // times of the clock, in place of "4 min ago"
	Zone     string
	zone     *time.Location
}

const viewCookie = "aod_view"

func (p *Page) newFrame(r *http.Request) *frame {
	below := strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/ui/"), "/") // as the browser has it
	if r.URL.Path == "/ui" {
		below = 0
	}
	f := &frame{
		Up: strings.Repeat("../", below), view: viewOf(r), Version: p.opts.Version, now: time.Now(), Here: here(r),
		Key: rand.Text(), Chat: p.hasChats.known(r.Context()), zipped: httpwire.TakesGzip(r),
		may: func(scope access.Scope) bool { return access.May(r.Context(), scope) },
	}
	if !p.opts.NoAuth && !access.IsAnonymous(r.Context()) {
		f.Who = access.ClientOf(r.Context())
		if f.Who == "" {
			f.Who = "server"
		}
		if team := access.OwnerOf(r.Context()).Team; team != access.DefaultTeam {
			f.Team = team
		}
	}
	if f.Up == "" {
		f.Up = "./"
	}
	return f
}

// May reports whether whoever looks at the page may do something, such as run.
func (f *frame) May(scope string) bool { return f.may(access.Scope(scope)) }

// ask sets how many questions are open, and whether there are sessions, as the menu shows it.
func (p *Page) ask(r *request) {
	r.frame.Chat = chats{runPages{p}}.exist(r.Context())
	const most = 100
	page, err := p.svc.Questions.List(r.Context(), questions.Filter{Limit: most})
	if err == nil && len(page.Questions) > 0 {
		r.frame.Asked = count(int64(len(page.Questions)), len(page.Questions) == most)
	}
}

// viewOf reads how a browser wants to see pages. What it doesn't understand is as if it hadn't been said.
func viewOf(r *http.Request) view {
	v := view{Zone: "UTC", zone: time.UTC}
	cookie, err := r.Cookie(viewCookie)
	if err != nil {
		return v
	}
	kept, err := url.ParseQuery(cookie.Value)
	if err != nil {
		return v
	}
	return viewFrom(kept)
}

func viewFrom(kept url.Values) view {
	v := view{Zone: "UTC", zone: time.UTC, Absolute: kept.Get("time") == "at"}
	if theme := kept.Get("theme"); theme == "light" || theme == "dark" {
		v.Theme = theme
	}
	if name := kept.Get("zone"); len(name) < 64 && name != "" && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			v.Zone, v.zone = name, zone
		}
	}
	return v
}

func (v view) encode() string {
	kept := url.Values{"theme": {v.Theme}, "zone": {v.Zone}}
	if v.Absolute {
		kept.Set("time", "at")
	}
	return kept.Encode()
}

// keepView keeps how somebody wants to see pages, and leads back to where they were.
func (p *Page) keepView(w http.ResponseWriter, r *request) error {
	form, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	const year = 365 * 24 * 60 * 60
	//nolint:gosec // it is no secret
	http.SetCookie(w, &http.Cookie{
		Name: viewCookie, Value: viewFrom(form).encode(), MaxAge: year, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	redirect(w, "./"+local(form.Get("next")))
	return nil
}

// local is an address below /ui/, relative to that, if a text is one; else that of the first page.
func local(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Path == "" || u.IsAbs() || u.Host != "" || u.User != nil || strings.HasPrefix(text, "/") ||
		strings.ContainsAny(text, "\\\r\n") || strings.Contains(u.Path, "..") || strings.Contains(u.Path, ":") {
		return "runs"
	}
	return text
}

// here is the address of the page below /ui/, to come back to it.
func here(r *http.Request) string {
	at := strings.TrimPrefix(r.URL.EscapedPath(), "/ui/")
	if r.URL.RawQuery != "" {
		at += "?" + r.URL.RawQuery
	}
	return at
}
