package web

import (
	"context"
	"net/url"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

const (
	defaultUpload = 256 << 20 // bytes of a form with its files
	// maxFormParts bounds what a form sends: as many values as form.Read takes, and those of the page.
	maxFormParts = form.MaxValues + 20
	// maxFormFiles bounds its files, with those of an earlier run that are given again.
	maxFormFiles = 1000
)

// upload is what a form with files was filled in with. Who reads it owns the files.
type upload struct {
	url.Values
	spool *spool.Spool // nil until there is a file
	files int          // how many there are

	svc   *orchestrator.Service
	most  int64 // bytes of the whole
	texts int64 // bytes that are left for texts
	// text is called for each text as it comes, unless it is nil. place says for which field of the input a file is,
	// and under which name.
	text  func(ctx context.Context, control, text string) error
	place func(control, base string) (field, name string)
}

func (p *Page) newUpload(texts int64) upload {
	return upload{Values: url.Values{}, svc: p.svc, most: p.opts.UploadBytes, texts: texts}
}

// read reads a form as it comes. A control in which no file was chosen sends an empty text.
func (u *upload) read(r *request) error {
	if err := u.svc.Room(r.ContentLength); err != nil {
		return err
	}
	for part, err := range httpwire.FormParts(r.Request, u.most, maxFormParts) {
		if err == nil {
			err = u.readPart(r.Context(), part)
		}
		if err = part.Or(err); err != nil {
			_ = u.spool.Remove() // the error that led here is the one to tell
			return err
		}
	}
	return nil
}

func (u *upload) readPart(ctx context.Context, part *httpwire.FormPart) error {
	control := unnamed.Replace(part.Name)
	if part.File != "" {
		return u.readFile(ctx, control, part)
	}
	text, err := part.Text(u.texts)
	if err != nil {
		return err
	}
	u.texts -= int64(len(text))
	u.Add(control, string(text))
	if u.text == nil {
		return nil
	}
	return u.text(ctx, control, string(text))
}

func (u *upload) readFile(ctx context.Context, control string, part *httpwire.FormPart) error {
	base, err := contract.CleanName(part.File, contract.StageInput)
	if u.files++; err == nil && u.files > maxFormFiles {
		err = fault.New(fault.TooLarge, "the form has more than %d files", maxFormFiles).
			WithHint("put many files into an archive")
	}
	if err == nil && u.spool == nil {
		u.spool, err = u.svc.NewSpool()
	}
	if err != nil {
		return err
	}
	field, name := u.place(control, base)
	return u.spool.Add(field, name, httpwire.Streamed(ctx, part), u.most)
}
