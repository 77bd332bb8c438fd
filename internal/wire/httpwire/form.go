package httpwire

import (
	"errors"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxFormNames bounds the names of a form's parts and files, in bytes: they are kept in memory.
const maxFormNames = 4 << 20

// FormPart is a part of a form (multipart/form-data), to be read before the next one.
type FormPart struct {
	Name string
	File string // as its client calls it; "": it is a text, or a control in which no file was chosen
	part *multipart.Part
	body *Body
}

// FormParts yields the parts of a form as they come: at most so many, in so many bytes. An error is a fault and
// the last that is yielded, with a part on which no more than Or may be called.
func FormParts(r *http.Request, limit int64, most int) iter.Seq2[*FormPart, error] {
	return func(yield func(*FormPart, error) bool) {
		body := BodyOf(r, limit)
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || params["boundary"] == "" {
			yield(&FormPart{body: body}, fault.New(fault.BadRequest, "the form's Content-Type has no boundary").
				WithHint("let the HTTP client set the header"))
			return
		}
		parts := multipart.NewReader(body, params["boundary"])
		names := 0
		for n := 0; ; n++ {
			part, err := parts.NextRawPart()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(&FormPart{body: body}, body.Or(badForm(err)))
				return
			case n == most:
				yield(&FormPart{body: body}, fault.New(fault.TooLarge, "the form has more than %d parts", most).
					WithHint("put many files into an archive"))
				return
			}
			p := &FormPart{part.FormName(), part.FileName(), part, body}
			if names += len(p.Name) + len(p.File); names > maxFormNames {
				long := fault.New(fault.TooLarge, "the names of the form's parts have more than %d bytes", maxFormNames)
				yield(&FormPart{body: body}, long.WithHint("choose shorter names"))
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// Read implements io.Reader. A form that ends within the part is a bad request, whatever error a reader makes of
// that.
func (p *FormPart) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badForm(err)
	}
	return n, err
}

// Text reads the part, of at most so many bytes.
func (p *FormPart) Text(limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(p, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fault.New(fault.TooLarge, "the part %q has more than %d bytes", p.Name, limit).
			WithHint("put large data in a file and declare the field with format file_path")
	}
	return text, p.Or(err)
}

// Or returns the error of the form's body, if it has one, and else err. It is nil where err is nil.
func (p *FormPart) Or(err error) error { return p.body.Or(err) }

func badForm(err error) error {
	return fault.Wrap(fault.BadRequest, err, "the form can't be read")
}
