package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// manyWatches takes as many inotify instances as there are for the user, and tells how many.
const manyWatches = `
echo "uid: $(id -u)"
case $(uname -m) in x86_64) call=294 ;; *) call=26 ;; esac
exec perl -e "\$| = 1; while (\$n < 100) { last if syscall($call, 0) < 0; \$n++ } print qq(instances: \$n\n); open(F, '>', '/io/output.json'); print F '{}'; close(F); sleep(\$ARGV[0])"`

// The kernel counts inotify instances by user: 128 by default.
func TestNoSandboxTakesAwayWhatIsCountedByUser(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	if os.Geteuid() != 0 || p.remote() {
		t.Skip("each sandbox has a user of its own where AOD is root, and its engine on this machine")
	}
	ctx, cancel := context.WithCancelCause(trusted.Context(t))
	held := make(chan struct{})
	ended := make(chan error, 1)
	var greedy logLines
	req := p.request(manyWatches + " 60\n")
	req.Observe = func(e run.Event) {
		greedy.add(e)
		if e.Log != nil && strings.HasPrefix(e.Log.Text, "instances") {
			close(held)
		}
	}
	go func() { _, err := p.submit(ctx, req); ended <- err }()
	<-held
	log, record := p.logs(manyWatches + " 0\n")
	cancel(errors.New("enough"))
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if record.Outcome != api.Success {
		t.Fatal(show(record))
	}
	var uids, instances [2]int
	for i, text := range []string{greedy.text(), log} {
		if _, err := fmt.Sscanf(text, "uid: %d\ninstances: %d\n", &uids[i], &instances[i]); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if uids[i] < probeUIDs.First || uids[i] > probeUIDs.Last || instances[i] < 100 {
			t.Errorf("uid %d has %d instances", uids[i], instances[i])
		}
	}
}
