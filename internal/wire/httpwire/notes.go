package httpwire

import (
	"context"
	"log/slog"
)

// Notes are what a handler tells the server around it of its request. The handler answers
// by itself; the server logs.
type Notes struct {
	Run   string      // the id of the run that the request is about; "": none
	Attrs []slog.Attr // for the line of the request in the log; no payload
	// Report takes an error that the handler answers with. cut says that the answer had
	// begun already, so that it isn't whole. It is never nil.
	Report func(err error, cut bool)
}

type notesKey struct{}

// WithNotes returns a context for a request with its Notes.
func WithNotes(ctx context.Context, notes *Notes) context.Context {
	return context.WithValue(ctx, notesKey{}, notes)
}

// NotesOf returns the Notes of a request. Where nobody wants them they are dropped.
func NotesOf(ctx context.Context) *Notes {
	if notes, ok := ctx.Value(notesKey{}).(*Notes); ok {
		return notes
	}
	return &Notes{Report: func(error, bool) {}}
}

type ownerKey struct{}

// WithOwner returns a context of a request that says who sends it, as far as two can be told apart:
// what goes over several requests belongs to who began it.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// OwnerOf returns what WithOwner gave a context, or "".
func OwnerOf(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}
