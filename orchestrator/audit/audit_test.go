package audit

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// TestRefusalsOutliveAFailure asks for the audit with a request that is over, which can store nothing.
func TestRefusalsOutliveAFailure(t *testing.T) {
	home := t.TempDir()
	s, err := store.Open(filepath.Join(home, "db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	log := New(Options{Rows: s.Audits, Home: home})
	ada := access.WithGrant(t.Context(), access.Grant{Name: "ada", Scopes: []access.Scope{access.Read}})
	log.Refused(ada, Refusal{Verb: "post", Noun: "route", Result: Forbidden})
	over, end := context.WithCancel(trusted.Context(t))
	end()
	if _, err := log.List(over, api.AuditFilter{}); err == nil {
		t.Fatal("a request that is over has an answer")
	}
	log.Refused(ada, Refusal{Verb: "post", Noun: "route", Result: Forbidden})
	page, err := log.List(trusted.Context(t), api.AuditFilter{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Count != 2 || page.Entries[0].Identity != "token:ada" {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}
