package terminal

import (
	"strings"
	"testing"
)

func TestOnlyTheEndOfAProgressBarIsShown(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"a": "a", "5%\r10%\rdone": "done", "5%\r10%\r": "10%", "\r": ""} {
		if got := Settled(line); got != want {
			t.Errorf("settled(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestWhatATerminalObeysIsSeen(t *testing.T) {
	t.Parallel()
	hostile := "a\x1b[2J\x00\x7f\u009b\u202e\u2066\u200f\tb\nc שלום"
	if got, want := Plain(hostile), "a\uFFFD[2J\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\tb\nc שלום"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestASequenceEndsWhereATerminalEndsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sequence, rest string }{
		"none":                               {"", "[31m"},
		"nothing":                            {"", ""},
		"a colour":                           {"\x1b[1;38:5:9m", "red"},
		"a private mode":                     {"\x1b[?25l", "h"},
		"one with an intermediate":           {"\x1b[4 q", "q"},
		"a title":                            {"\x1b]0;a title\a", "text"},
		"a link":                             {"\x1b]8;;https://example.org/a?b=[c]\x1b\\", "text\x1b]8;;\x1b\\"},
		"a picture":                          {"\x1bPq#0;2;0;0;0\x1b\\", "text"},
		"a title that another one cuts":      {"\x1b]0;a", "\x1b[0m"},
		"a title that doesn't end":           {"\x1b]", "0;a text that must stay"},
		"a colour that doesn't end":          {"\x1b[1;", ""},
		"a colour with a strange letter":     {"\x1b[1", "é"},
		"a colour with a control character":  {"\x1b[1", "\nm"},
		"a set of characters":                {"\x1b(B", "B"},
		"a set of characters that is cut":    {"\x1b(", ""},
		"a reset":                            {"\x1bc", "c"},
		"a saved cursor":                     {"\x1b7", "7"},
		"an escape alone":                    {"\x1b", ""},
		"two escapes":                        {"\x1b", "\x1b[0m"},
		"an escape before another character": {"\x1b", "é"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Sequence(c.sequence + c.rest); got != len(c.sequence) {
				t.Errorf("%d bytes, want %d", got, len(c.sequence))
			}
			if got := Sequence([]byte(c.sequence + c.rest)); got != len(c.sequence) {
				t.Errorf("%d bytes of bytes, want %d", got, len(c.sequence))
			}
		})
	}
}

func TestManyBrokenSequencesTakeLittleTime(t *testing.T) {
	t.Parallel()
	for text := strings.Repeat("\x1b]0;", 1<<20); text != ""; {
		text = text[max(1, Sequence(text)):]
	}
}
