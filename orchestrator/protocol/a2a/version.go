package a2a

import (
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

// The versions of the protocol that a Server speaks.
const (
	version10 = "1.0"
	version03 = "0.3"
)

// Versions are the versions of the protocol that a Server speaks, newest first.
func Versions() []string { return []string{version10, version03} }

// versionOf returns the version that a request asks for, "" where it doesn't say.
func versionOf(r *http.Request) (string, error) {
	asked := r.Header.Get(sdk.SvcParamVersion)
	if asked == "" {
		asked = r.URL.Query().Get(sdk.SvcParamVersion)
	}
	return plainVersion(asked)
}

// plainVersion returns a version without its patch, which changes nothing on the wire.
func plainVersion(asked string) (string, error) {
	asked = strings.TrimSpace(asked)
	if asked == "" {
		return "", nil
	}
	for _, known := range Versions() {
		patch, ours := strings.CutPrefix(asked, known)
		if ours && (patch == "" || isPatch(patch)) {
			return known, nil
		}
	}
	return "", refuse(badVersion, "this server speaks the versions "+strings.Join(Versions(), " and ")+" of A2A")
}

func isPatch(text string) bool {
	digits, dotted := strings.CutPrefix(text, ".")
	return dotted && digits != "" && len(digits) < 10 && strings.Trim(digits, "0123456789") == ""
}
