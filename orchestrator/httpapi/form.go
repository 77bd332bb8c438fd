package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

const (
	maxParts      = 256
	maxFieldBytes = 256 // of a part's name
	maxTextBytes  = 256 // of the parts unit, session, context, timeout and unattended

	maxMetadataBytes = 32 << 10 // of its JSON, where an escape takes six bytes for one; of that of env, too
	maxDirBytes      = 1 << 10
)

// form reads texts and files, part by part as they arrive and in any order. Parts with a
// filename are files. The file workspace of a submission is a tar of the project that the run
// works on.
type form struct {
	in    bodies
	ctx   context.Context  //nolint:containedctx // of the request: it knows what is held of its body
	takes map[string]int64 // the texts that there may be, each with its limit in bytes
	works bool             // there may be a workspace
	texts map[string][]byte
	spool *spool.Spool // nil until there is a file
}

// parseForm reads a form with the given texts. The caller releases its spool, unless it is handed on.
func (b bodies) parseForm(c echo.Context, f *form) error {
	if err := b.room(c); err != nil {
		return err
	}
	f.in, f.ctx, f.texts = b, c.Request().Context(), map[string][]byte{}
	for part, err := range httpwire.FormParts(c.Request(), b.upload, maxParts) {
		if err == nil {
			err = f.read(part)
		}
		if err = part.Or(err); err != nil {
			b.release(c, f.spool)
			return err
		}
	}
	return nil
}

func (b bodies) readForm(c echo.Context, session string) (spool.Submission, error) {
	f := &form{works: true, takes: map[string]int64{
		"unit": maxTextBytes, "session": maxTextBytes, "message": b.payload, "input": b.payload,
		"timeout": maxTextBytes, "metadata": maxMetadataBytes, "env": maxMetadataBytes, "dir": maxDirBytes,
		"unattended": maxTextBytes,
		"context":    maxTextBytes,
	}}
	if err := b.parseForm(c, f); err != nil {
		return spool.Submission{}, err
	}
	var err error
	sub := spool.Submission{
		Unit: string(f.texts["unit"]), Session: cmp.Or(session, string(f.texts["session"])),
		Input: f.texts["input"], Files: f.spool, Context: string(f.texts["context"]),
	}
	if text, given := f.texts["message"]; given {
		message := string(text)
		sub, err = withMessage(sub, &message)
	}
	if err == nil {
		sub.Unattended, err = f.flag("unattended")
	}
	if err == nil {
		sub.Metadata, err = f.labels("metadata")
	}
	if err == nil {
		sub.Start.Dir = string(f.texts["dir"])
		sub.Start.Env, err = f.labels("env")
	}
	if err == nil {
		sub, err = completed(sub, string(f.texts["timeout"]))
	}
	if err != nil {
		b.release(c, f.spool)
	}
	return sub, err
}

// noFiles refuses a form with files, but for a workspace.
func (f *form) noFiles() error {
	for _, file := range f.spool.Files() {
		if file.Field != "workspace" {
			return fault.New(fault.BadRequest, "the form has the part %s, which means nothing here",
				fault.Quote(file.Field)).
				WithHint("the only file is workspace, a tar")
		}
	}
	return nil
}

func (f *form) read(part *httpwire.FormPart) error {
	name := part.Name
	if err := checkField(name); err != nil {
		return err
	}
	if f.works && name == "workspace" && part.File != "" {
		return f.readProject(part)
	}
	if part.File != "" {
		return f.readFile(name, part)
	}
	limit, known := f.takes[name]
	if !known {
		return fault.New(fault.BadRequest, "the form has a part that is not known and brings no file").
			WithHint("the parts without a filename are %q", slices.Sorted(maps.Keys(f.takes)))
	}
	return f.readText(name, part, limit)
}

// flag reads a part that is true or false; false where it is missing.
func (f *form) flag(name string) (bool, error) {
	switch text, given := f.texts[name]; {
	case !given, string(text) == "false":
		return false, nil
	case string(text) == "true":
		return true, nil
	}
	return false, fault.New(fault.BadRequest, "the part %q is neither true nor false", name)
}

// labels reads a part that is a JSON object of texts; nil where it is missing.
func (f *form) labels(name string) (map[string]string, error) {
	raw, given := f.texts[name]
	if !given {
		return nil, nil
	}
	texts, err := decodeFields(raw, maxMetadataBytes)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the part %q is not a JSON object", name)
	}
	labels := make(map[string]string, len(texts))
	for key, value := range texts {
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, fault.Wrap(fault.BadRequest, err, "the part %q has a value that is not text", name)
		}
		labels[key] = text
	}
	return labels, nil
}

// object reads a part that is a JSON object, and must be there.
func (f *form) object(name string, limit int64) (httpwire.Fields, error) {
	raw, given := f.texts[name]
	if !given {
		return nil, fault.New(fault.BadRequest, "the form has no part %q", name).
			WithHint("it is a JSON object, beside the files")
	}
	fields, err := decodeFields(raw, limit)
	return fields, httpwire.AsKind(fault.BadRequest, err)
}

// checkField refuses a text that can't be a field of an input. The unit's contract decides
// whether there is such a field.
func checkField(name string) error {
	if name == "" || len(name) > maxFieldBytes || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return fault.New(fault.BadRequest, "a part of the form has no valid name").
			WithHint("name it after the field of the input that it is for, in at most %d bytes", maxFieldBytes)
	}
	return nil
}

func (f *form) readText(name string, part *httpwire.FormPart, limit int64) (err error) {
	if _, twice := f.texts[name]; twice {
		return fault.New(fault.BadRequest, "the form has the part %q twice", name)
	}
	f.texts[name], err = part.Text(limit)
	return err
}

// readFile stores a file under the last element of its name: the rest is the client's own
// directory.
func (f *form) readFile(field string, part *httpwire.FormPart) error {
	name, err := contract.CleanName(part.File, contract.StageInput)
	if err != nil {
		return err
	}
	if err := f.openSpool(); err != nil {
		return err
	}
	return f.spool.Add(field, name, httpwire.Streamed(f.ctx, part), f.in.upload)
}

// readProject stores the project that the run works on.
func (f *form) readProject(part *httpwire.FormPart) error {
	if err := f.openSpool(); err != nil {
		return err
	}
	return f.spool.AddProject(httpwire.Streamed(f.ctx, part), f.in.upload)
}

func (f *form) openSpool() (err error) {
	if f.spool == nil {
		f.spool, err = f.in.spools.NewSpool()
	}
	return err
}
