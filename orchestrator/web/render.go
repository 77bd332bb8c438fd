package web

import (
	"bytes"
	"embed"
	"encoding/base64"
	"hash/fnv"
	"html/template"
	"io"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

//go:embed templates
var templateFiles embed.FS

// part is a piece of a page that is shown, and sent again by itself when it has changed.
type part struct {
	key      string // among those of its page
	template string
	data     any
}

// shown is a part as the browser has it.
type shown struct {
	Key, Hash string
	HTML      template.HTML
}

// on is what a part's template sees: what it is about, and how all pages show things.
type on struct {
	*frame
	D any
}

// On is for a template that shows something with another one.
func (o on) On(d any) on { return on{o.frame, d} }

func parseTemplates(found assets) (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"asset": found.path, "icon": icon, "short": short, "num": num, "bytes": size, "plural": plural,
	}).ParseFS(templateFiles, "templates/*.html")
}

// render shows parts.
func (p *Page) render(f *frame, parts ...part) ([]shown, error) {
	all := make([]shown, 0, len(parts))
	for _, one := range parts {
		var text bytes.Buffer
		if err := p.texts.ExecuteTemplate(&text, one.template, on{f, one.data}); err != nil {
			return nil, err
		}
		//nolint:gosec // it was made by a template
		all = append(all, shown{one.key, hash(text.Bytes()), template.HTML(text.String())})
	}
	return all, nil
}

// counting is the time that something has lasted until now, which browsers count on.
var counting = lazyregexp.New(`(data-since="[^"]*">)[^<]*`)

// hash tells two states of a part apart.
func hash(text []byte) string { return digest(string(counting().ReplaceAll(text, []byte("$1")))) }

// digest tells two texts apart.
func digest(text string) string {
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, text) // it never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// write answers with a page of parts.
func (p *Page) write(w http.ResponseWriter, status int, f *frame, parts ...part) {
	var err error
	if f.Parts, err = p.render(f, parts...); err == nil {
		var text bytes.Buffer
		if err = p.texts.ExecuteTemplate(&text, "page.html", f); err == nil {
			sendPage(w, status, f.zipped, text.Bytes())
			return
		}
	}
	p.opts.Logger.Error("page not rendered", "page", f.Section, "error", err)
	http.Error(w, httpwire.ProblemOf(err).Detail, http.StatusInternalServerError)
}

// piece answers with a part alone, for a script.
func (p *Page) piece(w http.ResponseWriter, r *request, of part) error {
	shows, err := p.render(r.frame, of)
	if err != nil {
		return err
	}
	sendPage(w, http.StatusOK, r.frame.zipped, []byte(shows[0].HTML))
	return nil
}

// sendPage sends a page, and compresses it where the browser knows that. There is no secret in a page that whoever
// sees only its size could guess.
func sendPage(w http.ResponseWriter, status int, zipped bool, text []byte) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Vary", "Accept-Encoding")
	if zipped {
		text = httpwire.Gzip(header, text)
	}
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the browser may have gone
}
