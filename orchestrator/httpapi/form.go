package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

const (
	maxParts      = 256
	maxFieldBytes = 256 // of a part's name
	maxTextBytes  = 256 // of the parts unit and timeout

	maxMetadataBytes = 32 << 10 // of its JSON, where an escape takes six bytes for one
)

// form reads a submission with files, part by part as they arrive and in any order. Parts
// with a filename are files, the others are named unit, input, timeout and metadata.
type form struct {
	api   *API
	body  *httpwire.Body
	texts map[string][]byte
	spool *orchestrator.Spool // nil until there is a file
}

func (a *API) readForm(c echo.Context) (orchestrator.Submission, error) {
	_, params, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil || params["boundary"] == "" {
		return orchestrator.Submission{}, fault.New(fault.BadRequest, "the form's Content-Type has no boundary").
			WithHint("let the HTTP client set the header")
	}
	if err := a.svc.Room(c.Request().ContentLength); err != nil {
		return orchestrator.Submission{}, err
	}
	f := &form{api: a, body: bodyOf(c, a.opts.UploadBytes), texts: map[string][]byte{}}
	if err := f.body.Or(f.readParts(params["boundary"])); err != nil {
		a.release(c, f.spool)
		return orchestrator.Submission{}, err
	}
	sub := orchestrator.Submission{Unit: string(f.texts["unit"]), Input: f.texts["input"], Files: f.spool}
	if sub.Metadata, err = f.metadata(); err == nil {
		sub, err = completed(sub, string(f.texts["timeout"]))
	}
	if err != nil {
		a.release(c, f.spool)
	}
	return sub, err
}

func (f *form) readParts(boundary string) error {
	parts := multipart.NewReader(f.body, boundary)
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return badForm(err)
		case n == maxParts:
			return fault.New(fault.TooLarge, "the form has more than %d parts", maxParts).
				WithHint("put many files into an archive")
		}
		if err := f.read(part); err != nil {
			return err
		}
	}
}

func (f *form) read(part *multipart.Part) error {
	name := part.FormName()
	if err := checkField(name); err != nil {
		return err
	}
	if part.FileName() != "" {
		return f.readFile(name, part)
	}
	switch name {
	case "input":
		return f.readText(name, part, f.api.opts.PayloadBytes)
	case "unit", "timeout":
		return f.readText(name, part, maxTextBytes)
	case "metadata":
		return f.readText(name, part, maxMetadataBytes)
	}
	return fault.New(fault.BadRequest, "the form has a part that is not known and brings no file").
		WithHint(`the parts without a filename are "unit", "input", "timeout" and "metadata"`)
}

// metadata reads the part "metadata", a JSON object of texts.
func (f *form) metadata() (map[string]string, error) {
	raw, given := f.texts["metadata"]
	if !given {
		return nil, nil
	}
	texts, err := decodeFields(raw, maxMetadataBytes)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the part \"metadata\" is not a JSON object")
	}
	metadata := make(map[string]string, len(texts))
	for key, value := range texts {
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, fault.Wrap(fault.BadRequest, err, "the part \"metadata\" has a value that is no text")
		}
		metadata[key] = text
	}
	return metadata, nil
}

// checkField refuses a text that can't be a field of an input. The unit's contract decides
// whether there is such a field.
func checkField(name string) error {
	if name == "" || len(name) > maxFieldBytes || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fault.New(fault.BadRequest, "a part of the form has no valid name").
			WithHint("name it after the field of the input that it is for, in at most %d bytes", maxFieldBytes)
	}
	return nil
}

func (f *form) readText(name string, part io.Reader, limit int64) error {
	if _, twice := f.texts[name]; twice {
		return fault.New(fault.BadRequest, "the form has the part %q twice", name)
	}
	text, err := io.ReadAll(io.LimitReader(part, limit+1))
	if err != nil {
		return badForm(err)
	}
	if int64(len(text)) > limit {
		return fault.New(fault.TooLarge, "the part %q has more than %d bytes", name, limit).
			WithHint("put large data in a file and declare the field with format file_path")
	}
	f.texts[name] = text
	return nil
}

// readFile stores a file under the last element of its name: the rest is the client's own
// directory.
func (f *form) readFile(field string, part *multipart.Part) error {
	name, err := contract.CleanName(part.FileName(), contract.StageInput)
	if err != nil {
		return err
	}
	if f.spool == nil {
		if f.spool, err = f.api.svc.NewSpool(); err != nil {
			return err
		}
	}
	return f.spool.Add(field, name, content{part}, f.api.opts.UploadBytes)
}

// content is the content of a file in a form. A form that ends within it is a bad request,
// whatever error a reader makes of that.
type content struct{ part io.Reader }

func (c content) Read(p []byte) (int, error) {
	n, err := c.part.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badForm(err)
	}
	return n, err
}

func badForm(err error) error {
	return fault.Wrap(fault.BadRequest, err, "the form can't be read")
}
