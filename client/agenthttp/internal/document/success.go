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
