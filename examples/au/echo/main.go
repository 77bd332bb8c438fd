// Echo is an Agentic Unit in its smallest form: bytes on stdin, their size and SHA-256 as
// JSON on stdout.
package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Exit codes (Agentic Unit specification, section 3.1).
const (
	exitSuccess = 0
	exitError   = 1
	exitInvalid = 2
)

//go:embed card.json
var card []byte

// result is what it prints.
type result struct {
	InputSize int64  `json:"input_size"` // bytes
	SHA256    string `json:"sha256"`     // hexadecimal
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var err error
	switch {
	case slices.Equal(args, []string{"--describe"}):
		_, err = stdout.Write(card)
	case len(args) > 0: // what they are may be a secret, so they aren't shown
		return complain(stderr, exitInvalid, "Invalid arguments. Expected none, or --describe alone")
	default:
		err = echo(stdin, stdout)
	}
	if err != nil {
		return complain(stderr, exitError, err.Error())
	}
	return exitSuccess
}

func complain(stderr io.Writer, code int, message string) int {
	_, _ = fmt.Fprintln(stderr, "Error:", message) // there is no other place to say it
	return code
}

// echo reads to the end before it prints, and keeps nothing of what it reads.
func echo(stdin io.Reader, stdout io.Writer) error {
	hash := sha256.New()
	size, err := io.Copy(hash, stdin)
	if err != nil {
		return fmt.Errorf("stdin can't be read: %w", err)
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	return out.Encode(result{InputSize: size, SHA256: hex.EncodeToString(hash.Sum(nil))})
}
