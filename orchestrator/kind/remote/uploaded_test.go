package remote

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// uploaded makes the bench's unit an uploaded one, with a door.
func (b *harness) uploaded(opts egress.Options) {
	b.t.Helper()
	b.kind = New(Options{Secrets: secrets.Files{Dir: b.secrets}, Door: egress.New(opts)})
	b.t.Cleanup(func() { _ = b.kind.Close() }) // it returns nil
	b.unit.Source = unit.FromUpload
}

// moving is a resolver by which a name leads to a public address at first.
type moving struct{ asked atomic.Int32 }

func (m *moving) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch {
	case strings.HasPrefix(host, "nobody."):
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case strings.HasPrefix(host, "moves.") && m.asked.Add(1) == 1:
		return []netip.Addr{netip.MustParseAddr("198.41.0.4")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

const plain = "  plain_http: true\n"

func TestAnUploadedUnitNamesNoAddressOfThisMachineOrItsNetwork(t *testing.T) {
	for url, kind := range map[string]fault.Kind{
		"http://127.0.0.1:9": fault.Forbidden, "https://10.0.0.1": fault.Forbidden, "http://169.254.169.254/latest": fault.Forbidden, "http://[::1]:9": fault.Forbidden,
		"http://[::ffff:127.0.0.1]": fault.Forbidden, "https://localhost": fault.Forbidden, "https://private.example": fault.Forbidden, "http://0.0.0.0:1": fault.Forbidden,
		"http://2130706433": fault.BadRequest, "http://127.1": fault.BadRequest, "http://0x7f.0.0.1:80": fault.BadRequest,
	} {
		for _, protocol := range []string{"agent-http", "a2a"} {
			more := "  protocol: " + protocol + "\n"
			if strings.HasPrefix(url, "http:") {
				more += plain
			}
			b := newBench(t, url, more)
			b.uploaded(egress.Options{Resolver: &moving{}})
			if err := b.kind.Accept(t.Context(), b.unit); !fault.Is(err, kind) || fault.Public(err).Hint == "" {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
	b := newBench(t, "https://nobody.example", "")
	b.uploaded(egress.Options{Resolver: &moving{}})
	if err := b.kind.Accept(t.Context(), b.unit); err != nil {
		t.Errorf("a host that can't be looked up now: %v", err)
	}
}

func TestAnUploadedUnitsAddressIsCheckedWhenItIsConnectedTo(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	port := a.URL[strings.LastIndex(a.URL, ":"):]
	for _, protocol := range []string{"agent-http", "a2a"} {
		b := newBench(t, "http://moves.example"+port, plain+"  protocol: "+protocol+"\n")
		b.uploaded(egress.Options{Resolver: &moving{}})
		if err := b.kind.Accept(t.Context(), b.unit); err != nil {
			t.Fatalf("when it leads to a public address: %v", err)
		}
		got, _ := b.ends()
		wants(t, got, api.SystemError, api.CategoryPermanent, "forbidden", "public address")
		if got.Failure != nil && !strings.Contains(got.Failure.Hint, "egress_private") {
			t.Errorf("%+v", got.Failure)
		}
	}
	if n := a.opened.Load(); n > 0 {
		t.Errorf("the agent was connected to %d times", n)
	}
}

func TestAnUploadedUnitMayBeWhereItsOperatorSays(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	port := a.URL[strings.LastIndex(a.URL, ":"):]
	b := newBench(t, "http://near.example"+port, plain)
	b.uploaded(egress.Options{Private: []outside.Exception{{Host: "near.example", Addr: netip.MustParseAddr("127.0.0.1")}}})
	if err := b.kind.Accept(t.Context(), b.unit); err != nil {
		t.Fatal(err)
	}
	got, _ := b.ends()
	wants(t, got, api.Success, "", "", "")
	b.unit.Source = unit.FromDirectory
	b.load(a.URL, "") // its connections are no longer those of an upload
	got, _ = b.ends()
	wants(t, got, api.Success, "", "", "")
}

func TestAnUploadedUnitsAgentLeadsNobodyElsewhere(t *testing.T) {
	var asked atomic.Int32
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request, request agenthttp.Request) {
		asked.Add(1)
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		says(200, good)(w, r, request)
	}, (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	got, _ := b.ends()
	wants(t, got, api.Success, "", "", "")
	b.load("http://near.example"+a.URL[strings.LastIndex(a.URL, ":"):], plain)
	b.uploaded(egress.Options{Private: []outside.Exception{{Host: "near.example", Addr: netip.MustParseAddr("127.0.0.1")}}})
	asked.Store(0)
	got, _ = b.ends()
	wants(t, got, api.RemoteError, api.CategoryPermanent, api.KindRemoteRefused, "307")
	if n := asked.Load(); n != 1 {
		t.Errorf("the agent was asked %d times", n)
	}
}
