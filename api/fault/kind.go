package fault

import "net/http"

// Kind is a way of failing. The zero Kind is Internal.
type Kind uint8

// The kinds. The table below says what each means to the outside: exit code 2 is for what the one who asks can mend,
// 125 for what AOD, the engine or a build couldn't do.
const (
	Internal     Kind = iota // a bug of AOD, or something that it did not foresee
	Input                    // an input that breaks its contract, or a wrong use of a command
	Capsule                  // a capsule directory that breaks the rules
	NotFound                 // a unit, run, file or image that isn't there
	TooLarge                 // a payload, a file or a number of files over its limit
	Build                    // an image that could not be built
	BuildTimeout             // an image whose build took too long
	Unavailable              // the engine, or something else we need, does not answer
	Unsupported              // something that this version or this engine can't do
	BadRequest               // a request that can't even be read
	Unauthorized             // nobody said who asks
	Forbidden                // who asks may not
	Conflict                 // a thing is not in the state that this needs
	Disabled                 // a unit that is switched off
	Exists                   // a thing that was to be new, and isn't
	Busy                     // too much is waiting already; later it may go
	Cancelled                // whoever asked doesn't want it any more
	Deadline                 // time was up
	Quota                    // what may be spent is spent, until a later time
	kinds                    // how many there are
)

// row is what one kind means to the outside.
type row struct {
	code   string // stable, machine-readable
	title  string
	exit   int
	status int
}

// table decides every exit code and every HTTP status that a fault can become.
var table = [kinds]row{
	Internal:     {"internal", "something went wrong inside AOD", 125, http.StatusInternalServerError},
	Input:        {"invalid_input", "the input is not valid", 2, http.StatusUnprocessableEntity},
	Capsule:      {"invalid_capsule", "the capsule is not valid", 2, http.StatusUnprocessableEntity},
	NotFound:     {"not_found", "not found", 2, http.StatusNotFound},
	TooLarge:     {"too_large", "too large", 2, http.StatusRequestEntityTooLarge},
	Build:        {"build_failed", "the image could not be built", 125, http.StatusUnprocessableEntity},
	BuildTimeout: {"build_timeout", "the image took too long to build", 125, http.StatusUnprocessableEntity},
	Unavailable:  {"unavailable", "not available at the moment", 125, http.StatusServiceUnavailable},
	Unsupported:  {"unsupported", "not supported", 125, http.StatusNotImplemented},
	BadRequest:   {"bad_request", "the request can't be read", 2, http.StatusBadRequest},
	Unauthorized: {"unauthorized", "a token is needed", 2, http.StatusUnauthorized},
	Forbidden:    {"forbidden", "not allowed", 2, http.StatusForbidden},
	Conflict:     {"conflict", "not possible in this state", 2, http.StatusConflict},
	Disabled:     {"disabled", "switched off", 2, http.StatusConflict},
	Exists:       {"exists", "there is one already", 2, http.StatusPreconditionFailed},
	Busy:         {"busy", "too much at once", 125, http.StatusTooManyRequests},
	Cancelled:    {"cancelled", "cancelled", 130, 499},
	Deadline:     {"deadline", "the time was up", 124, http.StatusGatewayTimeout},
	Quota:        {"quota_exceeded", "what may be spent is spent", 125, http.StatusPaymentRequired},
}

func (k Kind) row() row {
	if k >= kinds {
		return table[Internal]
	}
	return table[k]
}

// String returns the stable, machine-readable name of the kind.
func (k Kind) String() string { return k.row().code }

// KindNamed returns the kind whose String is the given code, and whether there is one.
func KindNamed(code string) (Kind, bool) {
	for k := range kinds {
		if k.String() == code {
			return k, true
		}
	}
	return Internal, false
}

// Title returns the fixed text that may always be shown.
func (k Kind) Title() string { return k.row().title }

// ExitCode returns the exit code of a command that ended with err; 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return KindOf(err).row().exit
}

// HTTPStatus returns the status of a response that reports err; 200 for nil.
func HTTPStatus(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return KindOf(err).row().status
}
