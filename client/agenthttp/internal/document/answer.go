package document

import "slices"

// Indication is what an answer says of its success.
type Indication uint8

// The indications.
const (
	Silence Indication = iota
	Contradiction
	Failure
	Success
)

// Indicated reads both styles of success. A boolean overrides an unusual status, such as
// "completed". A boolean that contradicts the status makes the answer neither a success nor
// a failure.
func Indicated(f Fields) Indication {
	status := f.Text("status")
	claimed := status == "ok" || status == "success"
	yes := f.Is("ok", true) || f.Is("success", true)
	no := f.Is("ok", false) || f.Is("success", false)
	switch {
	case no && (claimed || yes):
		return Contradiction
	case claimed || yes:
		return Success
	case no || status != "":
		return Failure
	}
	return Silence
}

// indicates requires an answer to say whether it succeeded or failed.
func indicates(missing string) func(Fields, Asked) string {
	return func(f Fields, _ Asked) string {
		switch Indicated(f) {
		case Silence:
			return missing
		case Contradiction:
			return "status, ok and success contradict one another"
		}
		return ""
	}
}

// IsOddStatus reports whether a status is there that doesn't say by itself how a task went.
func IsOddStatus(status string) bool {
	return !slices.Contains([]string{"", "ok", "success", "error", "failed", "failure"}, status)
}

// ReadRefusal reads the body of an answer with an error status. The refusal may stand alone
// or in a member "detail".
func ReadRefusal(raw []byte) (f Fields, why string) {
	f, err := Read(raw)
	if err != nil {
		return nil, "the body " + err.Error()
	}
	if inner := f.Object("detail"); inner != nil && !f.Has("request_id") {
		if f, err = Read(inner); err != nil {
			return nil, "the body's detail " + err.Error()
		}
	}
	return f, ""
}

// JudgeRefusal says what a refusal lacks of the contract's shape.
func JudgeRefusal(f Fields, asked Asked) string {
	switch why := EchoesID(f, asked); {
	case why != "":
		return why
	case !f.Is("ok", false):
		return "ok is not false"
	case f.Object("outputs") == nil:
		return "outputs is missing, null or no object"
	case !f.Has("warnings"):
		return "warnings is missing or null"
	}
	return ""
}
