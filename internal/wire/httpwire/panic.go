package httpwire

import (
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
)

// PanicError is the panic of a handler. Its text has nothing of the panic's value, which
// may hold a payload.
type PanicError struct {
	What  string // the text of a runtime error, or the type of any other value
	Stack []byte
}

func (e *PanicError) Error() string { return "panic: " + e.What }

// Catch calls do and returns its error, or a *PanicError if it panics. The panic
// http.ErrAbortHandler goes on: it asks for the connection to be cut.
func Catch(do func() error) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			err = &PanicError{What: describe(v), Stack: debug.Stack()}
		}
	}()
	return do()
}

func describe(v any) string {
	var bug goruntime.Error
	if err, ok := v.(error); ok && errors.As(err, &bug) {
		return bug.Error()
	}
	return fmt.Sprintf("a value of type %T", v)
}
