// Command au-variants is an Agentic Unit that keeps every rule, and breaks one if $VARIANT
// names it. The test beside it has the table.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const maxBytes = 1 << 20

var variant = os.Getenv("VARIANT")

func is(names ...string) bool { return slices.Contains(names, variant) }

func main() {
	if is("lingering") { // what no-leaks leaves behind
		time.Sleep(time.Minute)
	}
	given := parse(os.Args[1:])
	if given.describe {
		describe()
		return
	}
	model(given.model)
	before(given)
	text := input()
	print(result(text, given))
}

// arguments are what the unit is started with.
type arguments struct {
	describe            bool
	model, prompt, lang string
	least               int
}

func parse(args []string) arguments {
	given := arguments{model: os.Getenv("MODEL_PATH"), least: 1}
	for len(args) > 0 {
		flag, value, joined := strings.Cut(args[0], "=")
		if args = args[1:]; flag == "--describe" {
			given.describe = true
			continue
		}
		if !joined && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch flag {
		case "--model-path":
			given.model = value
		case "--prompt":
			given.prompt = value
		case "--lang":
			given.lang = value
		case "--min-length":
			given.least = number(value)
		default:
			unknown(flag, value)
		}
	}
	return given
}

func number(value string) int {
	n, err := strconv.Atoi(value)
	switch {
	case err == nil:
		return n
	case is("wrong-number-is-general"):
		fail(1, "the number is invalid")
	case is("wrong-number-is-echoed"):
		fail(2, fmt.Sprintf("argument --min-length: invalid value %q", value))
	}
	fail(2, "--min-length takes a whole number")
	return 0
}

func unknown(flag, value string) {
	switch {
	case is("unknown-flag-is-taken"):
		return
	case is("unknown-flag-is-general"):
		fail(1, "there is no such flag")
	case is("unknown-flag-is-echoed"):
		fail(2, "unrecognised argument "+flag+"="+value)
	}
	fail(2, "there is no such flag")
}

func model(path string) {
	_, err := os.Stat(path)
	switch {
	case path == "":
	case strings.Contains(path, ".."):
		switch {
		case is("climbs"):
		case is("climbing-is-general"):
			fail(1, "the model's path leads up")
		case is("climbing-crashes"):
			crash()
		default:
			fail(2, "the model's path leads up")
		}
	case err != nil:
		noModel()
	}
}

func noModel() {
	switch {
	case is("fetches-the-model"):
		dial("tcp", "192.0.2.1:443")
	case is("goes-on-without-the-model"):
		return
	case is("no-model-is-general"):
		fail(1, "there is no model")
	case is("no-model-is-a-domain-error"):
		fail(3, "there is no model")
	case is("no-model-in-silence"):
		os.Exit(2)
	}
	fail(2, "there is no model at that path")
}

// input reads stdin as bytes, to its end, and refuses what isn't text.
func input() []byte {
	text := read()
	switch {
	case len(text) == 0:
		refuseEmpty()
	case len(text) > maxBytes && !is("streams"):
		refuseHuge()
	case !utf8.Valid(text) && bytes.HasPrefix(text, []byte("The")):
		refuseDamaged(text)
	case !utf8.Valid(text):
		refuseCorrupt(text)
	}
	return text
}

func read() []byte {
	switch {
	case is("reads-a-little"):
		head := make([]byte, maxBytes+1)
		n, _ := os.Stdin.ReadAt(head, 0) // which leaves the position where it is
		_, _ = os.Stdin.Read(make([]byte, 4))
		return head[:n]
	case is("keeps-it-all"):
		all := make([]byte, 52<<20)
		n, _ := io.ReadFull(os.Stdin, all)
		return all[:n]
	case is("streams"):
		n, _ := io.Copy(io.Discard, os.Stdin)
		return bytes.Repeat([]byte("x"), int(min(n, maxBytes)))
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, maxBytes+1))
	if err != nil {
		fail(1, "stdin can't be read")
	}
	return text
}

func refuseEmpty() {
	switch {
	case is("empty-is-good", "takes-anything"):
		return
	case is("warns"):
		print(map[string]any{"words": 0, "warnings": []string{"there was no text"}})
		os.Exit(0)
	case is("empty-is-general"):
		fail(1, "the input is empty")
	case is("empty-in-silence"):
		os.Exit(2)
	case is("empty-crashes"):
		crash()
	}
	fail(2, "the input is empty")
}

func refuseCorrupt(text []byte) {
	switch {
	case is("corrupt-is-good", "takes-anything"):
		return
	case is("warns"):
		print(map[string]any{"words": 0, "warnings": []string{"it was no text"}})
		os.Exit(0)
	case is("names-its-codes"):
		fail(3, "the input is not text")
	case is("corrupt-is-general"):
		fail(1, "the input is not text")
	case is("corrupt-in-silence"):
		os.Exit(2)
	case is("corrupt-crashes"):
		crash()
	case is("corrupt-is-a-traceback"):
		fail(2, "Traceback (most recent call last):\n  UnicodeDecodeError")
	case is("corrupt-is-echoed"):
		fail(2, fmt.Sprintf("unexpected token in %.10q...", text))
	case is("corrupt-is-echoed-in-hex"):
		fail(2, fmt.Sprintf("bad magic % x, that is %x", text[:4], text[:16]))
	}
	fail(2, "the input is not text in UTF-8")
}

func refuseDamaged(text []byte) {
	switch {
	case is("takes-anything"):
		return
	case is("warns"):
		print(map[string]any{"words": 0, "warnings": []string{"it was no text"}})
		os.Exit(0)
	case is("damaged-crashes"):
		fmt.Fprintln(os.Stderr, "Error: the input is not text")
		crash()
	case is("damaged-needs-a-program"):
		fail(127, "iconv: not found")
	case is("damaged-is-echoed"):
		fail(2, fmt.Sprintf("the line %.80q is not text", text))
	}
	fail(2, "the input is not text in UTF-8")
}

func refuseHuge() {
	switch {
	case is("huge-hangs"):
		time.Sleep(time.Hour)
	case is("huge-in-silence"):
		os.Exit(2)
	case is("huge-crashes"):
		crash()
	case is("huge-says-nothing"):
		fail(2, "Something went wrong")
	case is("eats-all-memory"):
		for {
			kept = append(kept, bytes.Repeat([]byte("x"), 1<<20))
		}
	}
	fail(2, "the input is larger than 1 MiB")
}

var kept [][]byte

// fail says on stderr what is wrong, and nothing of the input.
func fail(code int, message string) {
	if is("errors-on-stdout") {
		print(map[string]string{"error": message})
	}
	fmt.Fprintln(os.Stderr, "Error:", message)
	os.Exit(code)
}

// crash ends the program by a signal that Go's runtime doesn't turn into an exit code.
func crash() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	time.Sleep(time.Hour)
}

func result(text []byte, given arguments) any {
	words := 0
	for _, word := range bytes.Fields(text) {
		if len(word) >= given.least {
			words++
		}
	}
	switch {
	case is("refuses-a-good-input"):
		fail(3, "no text")
	case is("hangs"):
		time.Sleep(time.Hour)
	case is("random"):
		return map[string]any{"words": words, "at": time.Now().UnixNano()}
	case is("random-order"):
		return map[string]any{"words": words, "order": shuffled()}
	case is("list"):
		return []map[string]int{{"words": words}}
	}
	return map[string]int{"words": words}
}

func print(result any) {
	raw, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		fail(1, "the result can't be written")
	}
	text := string(raw)
	switch {
	case is("log-line-before"):
		text = "loading\n" + text
	case is("log-line-after"):
		text += "\ndone"
	case is("two-results"):
		text += text
	case is("bare-value"):
		text = `"one"`
	case is("no-utf8"):
		text = "{\"a\": \"\xff\"}"
	case is("no-number"):
		text = `{"a": NaN}`
	case is("half-a-result"):
		text = text[:len(text)-1]
	case is("field-twice"):
		text = `{"a": 1, "a": 2}`
	case is("success-in-silence"):
		text = ""
	case is("other-order"):
		text = anyOrder(result)
	}
	fmt.Println(text)
}
