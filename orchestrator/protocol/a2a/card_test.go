package a2a

import (
	"context"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/google/go-cmp/cmp"
)

const wellKnown = "/.well-known/agent-card.json"

func TestACardIsReadByBothVersions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"bearer":  func(o *Options) { o.NoAuth, o.GRPC = false, "127.0.0.1:7071" },
		"api key": func(o *Options) { o.NoAuth, o.GRPC, o.Header = false, "127.0.0.1:7071", "X-Key" },
		"no auth": func(o *Options) { o.GRPC = "127.0.0.1:7071" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, change)
			raw := w.do("GET", "/a2a/echo"+wellKnown, "").body
			card, err := agentcard.DefaultResolver.Resolve(trusted.Context(t), w.url+"/a2a/echo")
			if err != nil {
				t.Fatalf("%v: %s", err, raw)
			}
			var bindings []string
			for _, i := range card.SupportedInterfaces {
				bindings = append(bindings, string(i.ProtocolBinding)+" "+string(i.ProtocolVersion)+" "+i.Tenant)
			}
			want := []string{"JSONRPC 1.0 ", "HTTP+JSON 1.0 ", "GRPC 1.0 echo", "JSONRPC 0.3 ", "HTTP+JSON 0.3 "}
			if !slices.Equal(bindings, want) {
				t.Errorf("%q", bindings)
			}
			if card.Name != "echo" || card.Version != "v-echo" || card.Skills[0].Tags[0] != "test" || !slices.Contains(card.DefaultInputModes, "text/plain") {
				t.Errorf("%+v", card)
			}
			if (len(card.SecuritySchemes) == 0) != (name == "no auth") {
				t.Errorf("%+v", card.SecuritySchemes)
			}
			old, err := a2av0.NewAgentCardParser()([]byte(raw))
			if err != nil || len(old.SupportedInterfaces) == 0 || len(old.SecuritySchemes) != len(card.SecuritySchemes) {
				t.Errorf("%+v %v", old, err)
			}
			if document := decode(t, raw); document["protocolVersion"] != "0.3" || document["url"] != w.url+"/a2a/echo" || document["preferredTransport"] != "JSONRPC" {
				t.Errorf("%v", document)
			}
		})
	}
}

// A card of one version is held against that version's own definition by whatever the harness asks for.
func TestACardOfOneVersion(t *testing.T) {
	w := newHarness(t, func(o *Options) { o.NoAuth, o.GRPC, o.Root = false, "127.0.0.1:7071", "echo" })
	both := w.do("GET", "/a2a/echo"+wellKnown, "")
	of10 := w.do("GET", "/a2a/echo"+wellKnown, "", "A2A-Version: 1.0")
	of03 := w.do("GET", "/a2a/echo"+wellKnown, "", "A2A-Version: 0.3")
	for _, same := range []struct {
		want, got answerRead
	}{
		{of10, w.do("GET", "/a2a/echo"+wellKnown+"?A2A-Version=1.0", "")},
		{of10, w.do("GET", "/a2a/echo"+wellKnown, "", "A2A-Version: 1.0.7")},
		{of10, w.do("GET", wellKnown, "", "A2A-Version: 1.0")},
		{of03, w.do("GET", "/a2a/echo"+wellKnown+"?A2A-Version=0.3", "")},
		{both, w.do("GET", "/a2a/echo"+wellKnown, "", "A2A-Version: 99.0")}, // it tells which versions there are
	} {
		if same.got.StatusCode != 200 || same.got.body != same.want.body || same.got.Header.Get("ETag") != same.want.Header.Get("ETag") {
			t.Errorf("%s %v: %d %s", same.got.Request.URL, same.got.Request.Header, same.got.StatusCode, same.got.body)
		}
	}
	for name, said := range map[string]answerRead{"both": both, "1.0": of10, "0.3": of03} {
		card := decode(t, said.body)
		for _, key := range oldCardKeys {
			if _, there := card[key]; there != (name != "1.0") {
				t.Errorf("%s: %s is %v", name, key, card[key])
			}
		}
		scheme := at(card, "securitySchemes", "token")
		if (card["supportedInterfaces"] != nil) != (name != "0.3") || (at(scheme, "httpAuthSecurityScheme") != nil) != (name != "0.3") || (at(scheme, "type") != nil) != (name != "1.0") {
			t.Errorf("%s: %s", name, said.body)
		}
		if vary := said.Header.Values("Vary"); !slices.Contains(vary, "A2A-Version") || !slices.Contains(vary, "Authorization") {
			t.Errorf("%s: it varies by %q", name, vary)
		}
		again := w.do("GET", "/a2a/echo"+wellKnown, "", "A2A-Version: 1.0", "If-None-Match: "+said.Header.Get("ETag"))
		if (again.StatusCode == 304) != (name == "1.0") {
			t.Errorf("who has the card of %s is answered with %d", name, again.StatusCode)
		}
	}
}

func TestCardsMayBeKept(t *testing.T) {
	w := newHarness(t, nil)
	card := w.do("GET", "/a2a/echo"+wellKnown, "")
	etag, changed := card.Header.Get("ETag"), card.Header.Get("Last-Modified")
	if etag == "" || changed != "Fri, 02 Jan 2026 03:04:05 GMT" || card.Header.Get("Cache-Control") != "public, max-age=60" || card.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", card.Header)
	}
	for _, header := range []string{"If-None-Match: " + etag, "If-Modified-Since: " + changed} {
		if again := w.do("GET", "/a2a/echo"+wellKnown, "", header); again.StatusCode != 304 || again.body != "" {
			t.Errorf("%s: %d %s", header, again.StatusCode, again.body)
		}
	}
	if head := w.do("HEAD", "/a2a/echo"+wellKnown, ""); head.StatusCode != 200 || head.Header.Get("ETag") != etag {
		t.Errorf("%d %v", head.StatusCode, head.Header)
	}
	if none := w.do("GET", "/a2a/canary"+wellKnown, ""); none.StatusCode != 404 {
		t.Errorf("%d %s", none.StatusCode, none.body)
	}
	private := newHarness(t, func(o *Options) { o.Private = true })
	if said := private.do("GET", "/a2a/echo"+wellKnown, "").Header.Get("Cache-Control"); said != "private, max-age=60" {
		t.Error(said)
	}
}

func TestTheCardAtTheOrigin(t *testing.T) {
	all := newHarness(t, nil)
	card := decode(t, all.do("GET", wellKnown, "").body)
	if card["name"] != "aod" || card["url"] != all.url+"/a2a/_" || at(card, "skills", 0, "id") != "echo" || at(card, "skills", 1, "id") != "other" {
		t.Errorf("%v", card)
	}
	root := newHarness(t, func(o *Options) { o.Root, o.PublicURL = "echo", "https://aod.example" })
	if card := decode(t, root.do("GET", wellKnown, "").body); card["name"] != "echo" || card["url"] != "https://aod.example/a2a/echo" {
		t.Errorf("%v", card)
	}
}

func TestTheExtendedCardTellsOfTheContract(t *testing.T) {
	w := newHarness(t, nil)
	cards := map[string]map[string]any{
		"JSON-RPC 1.0":  w.rpc("echo", "GetExtendedAgentCard", "{}"),
		"JSON-RPC 0.3":  w.rpc("echo", "agent/getAuthenticatedExtendedCard", "{}"),
		"HTTP+JSON 1.0": decode(t, w.do("GET", "/a2a/echo/extendedAgentCard", "").body),
		"HTTP+JSON 0.3": decode(t, w.do("GET", "/a2a/echo/v1/card", "").body),
	}
	for name, card := range cards {
		extension := at(card, "capabilities", "extensions", 0)
		if at(extension, "uri") != Extension || at(extension, "params", "input_schema", "properties", "count", "type") != "integer" || at(extension, "params", "max_output_bytes") != float64(1<<20) {
			t.Errorf("%s: %v", name, card)
		}
	}
}

func TestTheExtendedCardOf03HasWhatThatVersionHas(t *testing.T) {
	w := newHarness(t, func(o *Options) { o.NoAuth, o.Header, o.PublicURL = false, "X-Key", "https://aod.example" })
	for name, card := range map[string]map[string]any{
		"JSON-RPC": w.rpc("echo", "agent/getAuthenticatedExtendedCard", "{}"), "HTTP+JSON": decode(t, w.do("GET", "/a2a/echo/v1/card", "").body),
	} {
		got := map[string]any{}
		for _, key := range append([]string{"securitySchemes", "supportedInterfaces"}, oldCardKeys...) {
			got[key] = card[key]
		}
		want := map[string]any{
			"protocolVersion": "0.3", "url": "https://aod.example/a2a/echo", "preferredTransport": "JSONRPC", "supportedInterfaces": nil,
			"additionalInterfaces":              []any{map[string]any{"transport": "HTTP+JSON", "url": "https://aod.example/a2a/echo"}},
			"security":                          []any{map[string]any{"token": []any{}}},
			"securitySchemes":                   map[string]any{"token": map[string]any{"type": "apiKey", "in": "header", "name": "X-Key"}},
			"supportsAuthenticatedExtendedCard": true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheStatus(t *testing.T) {
	w := newHarness(t, nil)
	w.rpc("echo", "SendMessage", parts10(`{"text":"x"}`))
	status, err := New(w.fakeService, Options{GRPC: "x:1"}).Status(context.Background())
	if err != nil || !slices.Equal(status.Units, []string{"echo", "other"}) || len(status.Bindings) != 3 || status.Tasks["completed"] != 1 || status.Tasks["working"] != 0 {
		t.Errorf("%+v %v", status, err)
	}
}
