package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestWhoCanBeAnApprover(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range MaxApprovers {
		many = append(many, fmt.Sprintf("token:t%d", i))
	}
	for _, good := range [][]string{nil, {"team:a"}, {"token:ci.main_2-x", "team:legal-2"}, {"user:auth0|ada", "group:/Legal Leads"}, many} {
		if err := CheckApprovers(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]string{{""}, {"ada"}, {"token:"}, {"team:"}, {"team:A"}, {"team:a.b"}, {"token:a b"}, {"operator"}, {"user:a b"}, {"user:"}, {"user:\u00e4"}, {"group:"}, {"group: x"}, {"group:a\nb"}, {"TEAM:a"}, {"token:" + strings.Repeat("x", 64)}, append(many, "team:a")} {
		if err := CheckApprovers(bad); !fault.Is(err, fault.Input) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
