package servicetest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// oneSlot has the second of two runs wait for the first.
func oneSlot(s *servicetest.Settings) { s.Concurrency = 1 }

func TestARecordTellsThatItsLogIsNotWhole(t *testing.T) {
	t.Parallel()
	h := servicetest.New(t, servicetest.Set(oneSlot))
	hold := h.Submit("worker", servicetest.Orders{Mark: "hold", Until: "gate"})
	h.Until(hold, servicetest.Running)
	waits := h.Submit("worker", servicetest.Orders{Mark: "waits", Lines: 1})
	log := filepath.Join(h.Settings.Home, "runs", waits, "log.jsonl")
	if err := os.MkdirAll(log, 0o700); err != nil { // where its log is to be
		t.Fatal(err)
	}
	h.OpenGate("gate")
	record := h.Await(waits)
	told := slices.ContainsFunc(record.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "the run's log lacks lines") && strings.Contains(w, "is a directory")
	})
	if record.Outcome != api.Success || !told {
		t.Errorf("%s, %q", record.Outcome, record.Warnings)
	}
	if whole := h.Await(hold); len(whole.Warnings) > 0 {
		t.Errorf("of a log that is whole: %q", whole.Warnings)
	}
}

// A disk may give other bytes than it was given, of the same size and time.
func TestFilesThatAreNoLongerWhatTheyWereAreAnError(t *testing.T) {
	t.Parallel()
	h := servicetest.New(t, servicetest.Set(oneSlot))
	orders := servicetest.Orders{Mark: "copies", File: "copy.txt"}
	send := func() string {
		return h.Send(spool.Submission{
			Unit: "worker", Input: servicetest.JSON(orders), Files: spoolOf(h, "doc", "doc", "content"),
		})
	}
	done := h.Await(send())
	hold := h.Submit("worker", servicetest.Orders{Mark: "hold", Until: "gate"})
	h.Until(hold, servicetest.Running)
	waits := send()
	h.Stop()
	for _, name := range []string{filepath.Join(waits, "input", "doc"), filepath.Join(done.ID, "output", "copy.txt")} {
		path := filepath.Join(h.Settings.Home, "runs", name)
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("comment"), 0o600); err != nil { // of the same size
			t.Fatal(err)
		}
		if err := os.Chtimes(path, was.ModTime(), was.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	h.Start()
	h.OpenGate("gate")
	got := h.Await(waits)
	if got.Outcome != api.SystemError || got.Error == nil || !strings.Contains(got.Error.Message, "input lost") {
		t.Errorf("a run on another input: %s, %+v", got.Outcome, got.Error)
	}
	if f, _, err := h.Service.Files.Open(trusted.Context(t), done.ID, "copy.txt"); !fault.Is(err, fault.Internal) {
		t.Errorf("a file that isn't what its record says: %v, %v", f, err)
	}
}
