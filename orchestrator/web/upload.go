package web

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// Bounds of a form with files. The operator's setting bounds the whole.
const (
	maxFormParts  = 256
	maxFormText   = contract.DefaultMaxBytes // of a text
	defaultUpload = 256 << 20
)

// filePrefix begins the names of controls for files, before the field of the input that they are for.
const filePrefix = "file:"

// upload is what a form with files was filled in with. Who reads it owns the files.
type upload struct {
	url.Values
	files *spool.Spool // nil: there are none

	svc  *orchestrator.Service
	most int64 // bytes of the whole
}

// readUpload reads a form with files, as it comes.
func (p *Page) readUpload(r *request) (u upload, err error) {
	u = upload{Values: url.Values{}, svc: p.svc, most: p.opts.UploadBytes}
	if err := u.svc.Room(r.ContentLength); err != nil {
		return u, err
	}
	body := httpwire.BodyOf(r.Request, u.most)
	r.Body = io.NopCloser(body)
	parts, err := r.MultipartReader()
	if err != nil {
		return u, fault.Wrap(fault.BadRequest, err, "the form can't be read")
	}
	if err := body.Or(u.readParts(r.Context(), parts)); err != nil {
		return u, errors.Join(err, u.files.Remove())
	}
	return u, nil
}

func (u *upload) readParts(ctx context.Context, parts *multipart.Reader) error {
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fault.Wrap(fault.BadRequest, err, "the form can't be read").WithHint("send it again")
		case n == maxFormParts:
			return fault.New(fault.TooLarge, "the form has more than %d parts", maxFormParts).
				WithHint("put many files into an archive")
		}
		field, isFile := strings.CutPrefix(part.FormName(), filePrefix)
		if isFile {
			err = u.readFile(ctx, field, part)
		} else {
			err = u.readText(part)
		}
		if err != nil {
			return err
		}
	}
}

// readFile stores a file. A control in which none was chosen sends one without a name.
func (u *upload) readFile(ctx context.Context, field string, part *multipart.Part) error {
	if part.FileName() == "" {
		return nil
	}
	name, err := contract.CleanName(part.FileName(), contract.StageInput)
	if err != nil {
		return err
	}
	if u.files == nil {
		if u.files, err = u.svc.NewSpool(); err != nil {
			return err
		}
	}
	return u.files.Add(field, name, httpwire.Streamed(ctx, part), u.most)
}

func (u *upload) readText(part *multipart.Part) error {
	text, err := io.ReadAll(io.LimitReader(part, maxFormText+1))
	if err != nil {
		return fault.Wrap(fault.BadRequest, err, "the form can't be read").WithHint("send it again")
	}
	if len(text) > maxFormText {
		return fault.New(fault.TooLarge, "a text of the form has more than %s", size(maxFormText)).
			WithHint("send it as a file")
	}
	u.Add(part.FormName(), string(text))
	return nil
}
