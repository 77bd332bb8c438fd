package au

import "strconv"

// ExitClass is the general meaning of an exit code: a stable word.
type ExitClass string

// The classes (specification, sections 3.1 and 7.1; signals as every shell counts them).
const (
	ExitSuccess      ExitClass = "success"       // 0
	ExitGeneralError ExitClass = "general_error" // 1
	ExitInvalidInput ExitClass = "invalid_input" // 2
	ExitDomainError  ExitClass = "domain_error"  // 3 and up, the unit's own
	ExitSignal       ExitClass = "signal"        // 128 and the signal's number
	ExitNotStarted   ExitClass = "start_failed"  // 126 and 127, unless they are the unit's own
)

// The codes with which shells, env and the sandbox's init tell of a program that they could
// not start (POSIX, XCU 2.8.2).
const (
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// Exit describes how a unit ended.
type Exit struct {
	Class ExitClass `json:"class"`
	Code  int       `json:"code"`
	Name  string    `json:"name"` // for a person: the card's name for it, or the signal's
	// Retry says that the same call may end otherwise. A unit gives the same output for the
	// same input (section 2.2), so only an end that came from outside is worth another
	// attempt.
	Retry bool `json:"retry"`
}

// signals are the signals that end programs, by Linux's numbers. A signal from outside may
// not come again.
var signals = map[int]struct {
	name    string
	outside bool
}{
	1: {"SIGHUP", true}, 2: {"SIGINT", true}, 3: {"SIGQUIT", false}, 4: {"SIGILL", false}, 5: {"SIGTRAP", false},
	6: {"SIGABRT", false},
	7: {"SIGBUS", false}, 8: {"SIGFPE", false}, 9: {"SIGKILL", true}, 11: {"SIGSEGV", false}, 13: {"SIGPIPE", false},
	14: {"SIGALRM", false},
	15: {"SIGTERM", true}, 24: {"SIGXCPU", false}, 25: {"SIGXFSZ", false}, 31: {"SIGSYS", false},
}

const maxSignal = 64

// ExitMeaning says what an exit code means. The card, which may be nil, names the unit's
// own codes. A caller that knows more, such as that the unit was killed for its memory or
// its time, judges that first: here 137 is a SIGKILL like any other.
func ExitMeaning(code int, card *Card) Exit {
	exit := Exit{Code: code}
	switch {
	case code == 0:
		exit.Class, exit.Name = ExitSuccess, "success"
	case code == 2:
		exit.Class, exit.Name = ExitInvalidInput, "invalid input or arguments"
	case code == 1 || code < 0 || code > 255: // a program can't give a code out of 0 to 255
		exit.Class, exit.Name = ExitGeneralError, "general error"
	case code > 128 && code <= 128+maxSignal:
		signal := signals[code-128]
		exit.Class, exit.Name, exit.Retry = ExitSignal, signal.name, signal.outside
		if exit.Name == "" {
			exit.Name = "signal " + strconv.Itoa(code-128)
		}
	case (code == ExitNotExecutable || code == ExitNotFound) && !names(card, code):
		exit.Class, exit.Name = ExitNotStarted, "a program could not be started"
	default:
		exit.Class, exit.Name = ExitDomainError, domainName(code, card)
	}
	return exit
}

// names reports whether the card has a name for a code.
func names(card *Card, code int) bool { return card != nil && card.ExitCodes[code] != "" }

func domainName(code int, card *Card) string {
	if names(card, code) {
		return card.ExitCodes[code]
	}
	return "domain error " + strconv.Itoa(code)
}
