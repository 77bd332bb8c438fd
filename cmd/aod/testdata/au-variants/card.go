package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const card = `{
  "name": "au-variants",
  "version": "1.0.0",
  "description": "Counts words.",
  "capabilities": ["count"],
  "inputs": [{"media_type": "text/plain", "description": "a text of at most 1 MiB"}],
  "outputs": [{"media_type": "application/json", "description": "how many words it has"}],
  "config": {
    "model-path": {"type": "string", "description": "a list of words that don't count", "default": ""},
    "prompt": {"type": "string", "description": "is taken and not heeded", "default": ""},
    "lang": {"type": "string", "description": "the language", "default": "en"},
    "min-length": {"type": "integer", "description": "shorter words don't count", "default": 1}
  },
  "exit_codes": {"3": "no text"}
}`

// edits are variants of the card: what is replaced by what.
var edits = map[string][2]string{
	"card-version-is-short":        {`"1.0.0"`, `"1.0"`},
	"card-has-no-version":          {`"version": "1.0.0",`, ``},
	"card-version-is-a-number":     {`"1.0.0"`, `1`},
	"card-name-has-a-space":        {`"au-variants"`, `"AU variants"`},
	"card-has-no-inputs":           {`"inputs": [{"media_type": "text/plain", "description": "a text of at most 1 MiB"}],`, ``},
	"card-has-no-outputs":          {`"outputs": [{"media_type": "application/json", "description": "how many words it has"}],`, ``},
	"card-has-no-description":      {`"description": "Counts words.",`, ``},
	"card-has-no-name":             {`"name": "au-variants",`, ``},
	"card-media-type-is-a-word":    {`"application/json"`, `"json"`},
	"card-input-is-not-described":  {`, "description": "a text of at most 1 MiB"`, ``},
	"card-prints-text":             {`"application/json"`, `"text/plain"`},
	"card-has-a-float":             {`"integer"`, `"float"`},
	"card-has-a-number":            {`"integer"`, `"number"`},
	"card-flag-has-dashes":         {`"lang"`, `"--lang"`},
	"card-flag-is-not-described":   {`, "description": "the language"`, ``},
	"card-default-is-of-no-type":   {`"default": 1`, `"default": "one"`},
	"card-names-the-code-of-error": {`"3"`, `"1"`},
	"card-lists-nothing":           {`["count"]`, `null`},
	"card-can-do-nothing":          {`["count"]`, `[]`},
	"card-describes-with-a-space":  {`"the language"`, `" "`},
	"takes-anything":               {`"text/plain"`, `"*/*"`},
	"streams":                      {`"text/plain"`, `"*/*"`},
	"no-parameters":                {card[strings.Index(card, `"config"`):strings.Index(card, `"exit_codes"`)], ``},
}

func describe() {
	text := card
	if edit, ok := edits[variant]; ok {
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	switch variant {
	case "describe-fails":
		defer os.Exit(1)
	case "describe-reads-stdin":
		_, _ = io.ReadAll(os.Stdin)
	case "describe-chats":
		fmt.Println("loading")
	case "describe-prints-twice":
		fmt.Println(text)
	case "describe-prints-nothing":
		return
	case "describe-crashes":
		fmt.Println(text)
		crash()
	case "describe-differs":
		text = strings.Replace(text, "Counts words.", fmt.Sprint("Counts words since ", time.Now().UnixNano()), 1)
	case "cannot-start":
		os.Exit(127) // as env does without the interpreter
	}
	fmt.Println(text)
}
