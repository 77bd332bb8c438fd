package handoff

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestARefusalKeepsItsKind(t *testing.T) {
	t.Parallel()
	err := refuse(RuleDepth, fault.New(fault.Conflict, "x"))
	if !fault.Is(err, fault.Conflict) || err.Error() != "x" {
		t.Errorf("%v", err)
	}
}

func TestQuoteIsBounded(t *testing.T) {
	t.Parallel()
	if got := quote(strings.Repeat("é", 1000) + "\x1b"); len(got) > maxShown+10 || bytes.ContainsRune([]byte(got), '\x1b') {
		t.Error(got)
	}
}

func TestTheOperatorsLimitHoldsWhereARunSaysNone(t *testing.T) {
	t.Parallel()
	for limit, most := range map[int]int64{0: 200, 7: 7} {
		if err := (calls{}).Check(Step{}, Limits{Calls: limit}, most); err != nil {
			t.Errorf("%d: %v", limit, err)
		}
		if err := (calls{}).Check(Step{}, Limits{Calls: limit}, most+1); !fault.Is(err, fault.Busy) {
			t.Errorf("%d: %v", limit, err)
		}
	}
}
