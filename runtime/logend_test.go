package runtime

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

var endIDs = []string{strings.Repeat("0a", initreport.EndIDBytes/2), strings.Repeat("0b", initreport.EndIDBytes/2)}

func endLine(n int) string { return initreport.EndHead + endIDs[n] + initreport.EndTail }

// endingLog is a Log whose streams go on until the test ends.
func endingLog(t *testing.T) (log *Log, stdout, stderr io.Writer, lines func() string) {
	var texts strings.Builder
	log = NewLog(1<<20, func(l LogLine) { fmt.Fprintf(&texts, "%s %s\n", l.Stream[3:], l.Text) })
	out, outWriter := io.Pipe()
	errs, errWriter := io.Pipe()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		log.drain(&Streams{Stdout: out, Stderr: errs})
	}()
	return log, outWriter, errWriter, func() string {
		outWriter.Close()
		errWriter.Close()
		<-drained
		return texts.String()
	}
}

func TestALogEndsWithTheLinesOfItsInit(t *testing.T) {
	for name, reportedFirst := range map[string]bool{"told of before they come": true, "told of after they have come": false} {
		t.Run(name, func(t *testing.T) {
			log, stdout, stderr, lines := endingLog(t)
			if reportedFirst {
				log.endsWith(endIDs[0])
			}
			fmt.Fprint(stdout, "one\nwithout an end", endLine(0))
			if pause.Over(log.Ended()) {
				t.Error("it has ended before stderr has")
			}
			fmt.Fprint(stderr, endLine(0))
			if !reportedFirst {
				if pause.Over(log.Ended()) {
					t.Error("it has ended before that is known")
				}
				log.endsWith(endIDs[0])
			}
			testkit.Eventually(t, "it has ended", func() bool { return pause.Over(log.Ended()) })
			kept, _ := log.Bytes()
			if diff := cmp.Diff("out one\nout without an end\n", lines()); diff != "" || kept != int64(len("one\nwithout an end")) {
				t.Errorf("%d bytes: %s", kept, diff)
			}
		})
	}
	t.Run("and not with one of a program", func(t *testing.T) {
		log, stdout, stderr, lines := endingLog(t)
		fmt.Fprint(stdout, endLine(1))
		fmt.Fprint(stderr, endLine(1))
		log.endsWith(endIDs[0])
		if pause.Over(log.Ended()) {
			t.Error("a program has ended it")
		}
		fmt.Fprint(stdout, "more\n", endLine(0))
		fmt.Fprint(stderr, endLine(0))
		testkit.Eventually(t, "it has ended", func() bool { return pause.Over(log.Ended()) })
		text := strings.TrimSuffix(endLine(1), "\n")
		for _, want := range []string{"out " + text + "\nout more\n", "err " + text + "\n"} {
			if got := lines(); !strings.Contains(got, want) {
				t.Errorf("%q is not in %q", want, got)
			}
		}
	})
	t.Run("or where both streams do", func(t *testing.T) {
		log, stdout, _, lines := endingLog(t)
		fmt.Fprint(stdout, "one\n", endLine(0)) // of a report that nobody heard
		if got := lines(); got != "out one\n" || !pause.Over(log.Ended()) {
			t.Errorf("%q", got)
		}
	})
}

func TestALongLineIsNotCutWithinTheLineThatEndsIt(t *testing.T) {
	for before := maxLine - endLineBytes - 4; before <= maxLine+4; before++ {
		texts, log := logged(1<<20, strings.NewReader(strings.Repeat("x", before)+endLine(0)))
		if got := strings.Join(texts, ""); len(got) != before || strings.Trim(got, "x") != "" {
			t.Fatalf("of %d bytes: %d lines, %d bytes, ends with %q", before, len(texts), len(got), got[max(len(got)-50, 0):])
		}
		if kept, _ := log.Bytes(); kept != int64(before) {
			t.Fatalf("of %d bytes %d were kept", before, kept)
		}
	}
}
