package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// names is a resolver of the test's own. It remembers what it was asked.
type names struct {
	mu    sync.Mutex
	known map[string][]string // addresses, one answer after the other
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	answers := n.known[strings.TrimSuffix(host, ".")]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		n.known[strings.TrimSuffix(host, ".")] = answers[1:]
	}
	var addrs []netip.Addr
	for text := range strings.SplitSeq(answers[0], " ") {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

// harness is a door with a session, a proxy in front of it, and a server behind it.
type harness struct {
	t       testing.TB
	names   *names
	session *Session
	tally   *Tally
	proxy   *httptest.Server
	host    *httptest.Server // of good.example, by TLS
	plain   *httptest.Server // of good.example, without
	hello   []byte
	mu      sync.Mutex
	told    []api.EgressEvent
	seen    []*http.Request
}

// rules of the world's session; PORT and PLAIN stand for the ports of its servers.
func newWorld(t testing.TB, opts Options, rules ...string) *harness {
	w := &harness{t: t, names: &names{known: map[string][]string{"good.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"}}}, tally: new(Tally)}
	answer := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r)
		w.mu.Unlock()
		if r.URL.Path == "/redirect" {
			http.Redirect(rw, r, "http://other.example/", http.StatusFound)
			return
		}
		_, _ = io.Copy(rw, r.Body)
		_, _ = io.WriteString(rw, "hello")
	})
	w.host, w.plain = httptest.NewUnstartedServer(answer), httptest.NewServer(answer)
	w.host.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that tests cut off
	w.host.StartTLS()
	t.Cleanup(w.host.Close)
	t.Cleanup(w.plain.Close)
	opts.Resolver = w.names
	if opts.Private == nil {
		opts.Private = []outside.Exception{{Host: "good.example"}}
	}
	if opts.Hello == 0 {
		opts.Hello, opts.Connect = testkit.Patience, testkit.Patience
	}
	for i := range rules {
		rules[i] = strings.ReplaceAll(strings.ReplaceAll(rules[i], "PORT", portOf(w.host)), "PLAIN", portOf(w.plain))
	}
	list, findings := outside.ParseList(rules)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	w.session = New(opts).Session(Terms{Unit: "u", Allowed: list, Tally: w.tally, Tell: func(e api.EgressEvent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, e)
	}})
	w.proxy = httptest.NewServer(w.session)
	t.Cleanup(w.proxy.Close)
	t.Cleanup(func() { _ = w.session.Close() })
	return w
}

func portOf(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

// client speaks through the proxy, and trusts the host's certificate whatever the name.
func (w *harness) client() *http.Client {
	proxy, err := url.Parse(w.proxy.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.host.Certificate())
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// connect opens a connection to the proxy, and says CONNECT.
func (w *harness) connect(authority string) (net.Conn, *bufio.Reader, *http.Response) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.proxy.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		w.t.Fatalf("CONNECT %s: %v", authority, err)
	}
	return conn, in, answer
}

func (w *harness) refusedWith(authority string) httpwire.Problem {
	w.t.Helper()
	_, in, answer := w.connect(authority)
	var p httpwire.Problem
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		w.t.Errorf("%s: %s, %v", authority, answer.Status, err)
	}
	if !strings.HasPrefix(strings.SplitN(answer.Status, " ", 2)[1], p.Detail) || answer.StatusCode != p.Status {
		w.t.Errorf("%s: the status line says %q, the problem %+v", authority, answer.Status, p)
	}
	return p
}

func (w *harness) events() []api.EgressEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func TestAListedHostIsReached(t *testing.T) {
	w := newWorld(t, Options{}, "good.example:PORT", "http://good.example:PLAIN")
	for _, address := range []string{"https://good.example:" + portOf(w.host), "http://good.example:" + portOf(w.plain)} {
		answer, err := w.client().Post(address+"/path?q=1", "text/plain", strings.NewReader("said "))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(body) != "said hello" || answer.StatusCode != 200 {
			t.Errorf("%s: %d %s", address, answer.StatusCode, body)
		}
	}
	// What was sent without TLS may be counted after the answer has come.
	testkit.Eventually(t, "two tunnels end", func() bool { return len(w.session.slots) == 0 && w.tally.Rows()[1].BytesOut > 0 })
	rows := w.tally.Rows()
	if len(rows) != 2 || rows[0].Host != "good.example" || fmt.Sprint(rows[0].Port) != portOf(w.host) || rows[0].Tunnels != 1 || rows[1].Tunnels != 1 ||
		rows[0].BytesIn < 1000 || rows[0].BytesOut < 200 || rows[1].BytesIn < 20 || rows[1].BytesOut < 20 || rows[0].Refused+rows[1].Refused != 0 {
		t.Errorf("%+v", rows)
	}
	if events := w.events(); len(events) != 2 || events[0].Refused != "" {
		t.Errorf("%+v", events)
	}
	if totals := w.session.door.Totals(); totals.Tunnels != 2 || totals.BytesIn != rows[0].BytesIn+rows[1].BytesIn {
		t.Errorf("%+v", totals)
	}
}

func TestWhatIsNotListedIsRefusedAndNeverLookedUp(t *testing.T) {
	w := newWorld(t, Options{}, "good.example", "*.below.example", "http://plain.example")
	for authority, want := range map[string]string{
		"evil.example:443":      `403 egress egress: [evil.example]`,
		"good.example:8443":     `403 egress egress: [good.example:8443]`,
		"below.example:443":     `403 egress egress: [below.example]`,
		"xgood.example:443":     `403 egress egress: [xgood.example]`,
		"plain.example:80":      `403 egress egress: [plain.example:80]`,
		"10.0.0.1:443":          `403 egress by its name`,
		"127.0.0.1:443":         `403 egress by its name`,
		"[::1]:443":             `403 egress by its name`,
		"0x7f.1:443":            `403 egress by its name`,
		"2130706433:443":        `403 egress by its name`,
		"169.254.169.254:80":    `403 egress by its name`,
		"good.example:0":        `400  host:port`,
		"good.example:x":        `400  `,
		"a b:443":               `400  `,
		"good.example%00.x:443": `400  `,
	} {
		if strings.HasPrefix(want, "400  ") && !strings.HasSuffix(authority, ":0") {
			if _, _, answer := w.connect(authority); answer.StatusCode != 400 {
				t.Errorf("%s: %s", authority, answer.Status)
			}
			continue
		}
		p := w.refusedWith(authority)
		if got := fmt.Sprintf("%d %s %s", p.Status, p.Rule, p.Hint); !strings.HasPrefix(got, want[:4]) || !strings.Contains(got, want[strings.LastIndex(want[:11], " ")+1:]) {
			t.Errorf("%s: %+v, want %s", authority, p, want)
		}
	}
	for _, address := range []string{"http://good.example/", "http://evil.example/", "http://127.0.0.1:" + portOf(w.plain) + "/", "http://plain.example:81/"} {
		answer, err := w.client().Get(address)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != 403 || answer.Header.Get("Content-Type") != httpwire.TypeProblem {
			t.Errorf("%s: %s", address, answer.Status)
		}
	}
	if len(w.names.asked) > 0 {
		t.Errorf("names were looked up: %v", w.names.asked)
	}
	if totals := w.session.door.Totals(); totals.Tunnels != 0 || totals.Refused < 13 {
		t.Errorf("%+v", totals)
	}
}

func TestARefusalNamesTheOperatorsLine(t *testing.T) {
	w := newWorld(t, Options{}, "good.example", "was.example")
	w.session.terms.Bounded, w.session.terms.Cap = true, outside.List{{Host: "good.example", Port: 443}, {Host: "may.example", Port: 443}}
	for host, want := range map[string]string{
		"may.example": "allow it in agent.yaml: egress: [may.example]",
		"new.example": "allow it in agent.yaml: egress: [new.example], and in the server's file: unit.u.policy.egress: [new.example]",
		"was.example": "in the server's file: unit.u.policy.egress: [was.example]",
	} {
		if p := w.refusedWith(host + ":443"); p.Hint != want || p.Rule != RuleList {
			t.Errorf("%s: %+v", host, p)
		}
	}
}

func TestANameThatLeadsToAPrivateAddressIsRefused(t *testing.T) {
	w := newWorld(t, Options{Private: []outside.Exception{}}, "*.private.example")
	for i, addr := range []string{
		"127.0.0.1", "10.0.0.1", "192.168.0.1 10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
		"fe80::1", "fd00::1", "64:ff9b::7f00:1", "2002:7f00:1::1", "224.0.0.1", "255.255.255.255",
	} {
		host := fmt.Sprintf("n%d.private.example", i)
		w.names.known[host] = []string{addr}
		p := w.refusedWith(host + ":443")
		if p.Rule != RulePrivate || p.Status != 403 || strings.Contains(p.Detail+p.Hint, addr) || !strings.Contains(p.Hint, "egress_private: ["+host+"]") {
			t.Errorf("%s: %+v", addr, p)
		}
	}
	if events := w.events(); events[len(events)-1].Refused != RulePrivate {
		t.Errorf("%+v", events)
	}
}

// What a name led to before is nothing that counts: each tunnel looks it up once, and connects to
// what it checked.
func TestANameThatMovesIsCheckedAgain(t *testing.T) {
	known := &names{known: map[string][]string{"moves.example": {"198.41.0.4 10.0.0.1 ::ffff:198.41.0.4", "127.0.0.1"}}}
	d := New(Options{Resolver: known})
	first, _, err := d.addresses(t.Context(), target{host: "moves.example", port: 443})
	if err != nil || len(first) != 1 || first[0].String() != "198.41.0.4" {
		t.Errorf("%v, %v", first, err)
	}
	var r *refusal
	if _, err = d.dial(t.Context(), target{host: "moves.example", port: 443}); !errors.As(err, &r) || r.rule != RulePrivate {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"moves.example.", "moves.example."}, known.asked); diff != "" {
		t.Error(diff)
	}
}

// The socket itself is the last that looks at an address.
func TestTheDialerLooksAtTheAddressAgain(t *testing.T) {
	d, to := New(Options{}), target{host: "sly.example", port: 443}
	for address, allowed := range map[string]bool{"198.41.0.4:443": true, "127.0.0.1:443": false, "[::ffff:10.0.0.1]:443": false, "[fe80::1%lo]:443": false, "strange": false} {
		if err := d.lastLook(to, false)("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := d.lastLook(to, true)("tcp", "127.0.0.1:443", nil); err != nil {
		t.Error(err)
	}
}

func TestAnExceptionIsExact(t *testing.T) {
	w := newWorld(t, Options{Private: []outside.Exception{{Host: "good.example"}, {Host: "fixed.example", Addr: netip.MustParseAddr("127.0.0.1")}}},
		"good.example:PORT", "fixed.example:PORT", "other.example:PORT")
	for _, host := range []string{"good.example", "fixed.example"} {
		answer, err := w.client().Get("https://" + host + ":" + portOf(w.host))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if p := w.refusedWith("other.example:" + portOf(w.host)); p.Rule != RulePrivate {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]string{"good.example.", "other.example."}, w.names.asked); diff != "" {
		t.Error(diff)
	}
}

func TestATunnelCarriesTLSForItsHostAlone(t *testing.T) {
	w := newWorld(t, Options{}, "good.example:PORT")
	saying := func(w *harness, name string, said []byte) (rest []byte) {
		conn, in, answer := w.connect("good.example:" + portOf(w.host))
		if answer.StatusCode != 200 {
			t.Fatalf("%s: %s", name, answer.Status)
		}
		_, _ = conn.Write(said)
		rest, _ = io.ReadAll(in)
		return rest
	}
	for name, said := range map[string][]byte{
		"another name": named(t, "other.example"), "no name": named(t, ""), "HTTP": []byte("GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"),
	} {
		rest := saying(w, name, said)
		if want := name == "another name" || name == "no name"; want != bytes.Equal(rest, unrecognised) || !want && len(rest) > 0 {
			t.Errorf("%s: %x", name, rest)
		}
	}
	if rows := w.tally.Rows(); rows[0].Tunnels != 0 || rows[0].Refused != 3 || len(w.seen) != 0 {
		t.Errorf("%+v, %d requests", rows, len(w.seen))
	}
	if events := w.events(); len(events) != 2 || events[1].Refused != RuleTLS {
		t.Errorf("%+v", events)
	}
	hasty := newWorld(t, Options{Hello: 200 * time.Millisecond}, "good.example:PORT")
	if rest := saying(hasty, "nothing", nil); len(rest) > 0 {
		t.Errorf("nothing: %x", rest)
	}
	if rows := hasty.tally.Rows(); rows[0].Tunnels != 0 || rows[0].Refused != 0 || len(hasty.seen) != 0 {
		t.Errorf("%+v, %d requests", rows, len(hasty.seen))
	}
}

func TestAFirstMessageInPiecesOpensATunnel(t *testing.T) {
	w := newWorld(t, Options{}, "good.example:PORT")
	conn, in, _ := w.connect("good.example:" + portOf(w.host))
	for _, b := range split(named(t, "good.example"), 100) {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := in.ReadByte(); err != nil || b != handshake {
		t.Errorf("%x, %v", b, err)
	}
}

func TestARequestIsPassedOnWithoutWhatIsTheProxys(t *testing.T) {
	w := newWorld(t, Options{}, "http://good.example:PLAIN")
	r, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://good.example:"+portOf(w.plain)+"/a%2Fb?q=1", strings.NewReader("body "))
	for name, value := range map[string]string{
		"Proxy-Authorization": "x", "Connection": "X-Hop, Upgrade", "X-Hop": "x", "Upgrade": "websocket", "Te": "trailers", "X-Kept": "k", "Authorization": "own", "Accept-Encoding": "identity",
	} {
		r.Header.Set(name, value)
	}
	answer, err := w.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	got := w.seen[0]
	for _, gone := range []string{"Proxy-Authorization", "Proxy-Connection", "Connection", "X-Hop", "Upgrade", "X-Forwarded-For", "Via"} {
		if got.Header.Get(gone) != "" && (gone != "Connection" || got.Header.Get(gone) != "close") {
			t.Errorf("%s: %s", gone, got.Header.Get(gone))
		}
	}
	if string(body) != "body hello" || got.Host != "good.example:"+portOf(w.plain) || got.RequestURI != "/a%2Fb?q=1" || got.Header.Get("X-Kept")+got.Header.Get("Authorization") != "kown" {
		t.Errorf("%s, %s %s %v", body, got.Host, got.RequestURI, got.Header)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	w := newWorld(t, Options{}, "http://good.example:PLAIN")
	answer, err := w.client().Get("http://good.example:" + portOf(w.plain) + "/redirect")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 302 || answer.Header.Get("Location") != "http://other.example/" || len(w.seen) != 1 || slices.Contains(w.names.asked, "other.example.") {
		t.Errorf("%s %v, asked for %v", answer.Status, answer.Header, w.names.asked)
	}
}

func TestAHostThatCantBeReached(t *testing.T) {
	w := newWorld(t, Options{}, "good.example:1", "missing.example")
	for authority, why := range map[string]string{"good.example:1": "it refuses connections", "missing.example:443": "nobody knows its name"} {
		if p := w.refusedWith(authority); p.Status != 503 || p.Rule != "" || !strings.Contains(p.Detail, why) || strings.Contains(p.Detail, "127.0.0.1") {
			t.Errorf("%s: %+v", authority, p)
		}
	}
	if rows := w.tally.Rows(); rows[0].Refused+rows[1].Refused != 0 {
		t.Errorf("%+v", rows)
	}
}

func TestATallyHasSoManyRows(t *testing.T) {
	var tally Tally
	for n := range 1000 {
		tally.of(fmt.Sprintf("evil%d.example", n), 443, false).refused.Add(1)
	}
	for n := range 1000 {
		tally.of(fmt.Sprintf("good%d.example", n), 443, true).tunnels.Add(1)
	}
	rows := tally.Rows()
	var tunnels, refused int64
	for _, row := range rows {
		tunnels, refused = tunnels+row.Tunnels, refused+row.Refused
	}
	if len(rows) != MaxRows || tunnels != 1000 || refused != 1000 || rows[MaxRows-1].Host != Others || rows[maxStrangers].Host != "good0.example" {
		t.Errorf("%d rows, %d tunnels, %d refused, %+v", len(rows), tunnels, refused, rows[maxStrangers:])
	}
	var again Tally
	again.Restore(rows)
	again.of("good1.example", 443, true).tunnels.Add(1)
	if got := again.Rows(); len(got) != MaxRows || got[maxStrangers+1].Tunnels != 2 {
		t.Errorf("%+v", got[maxStrangers+1])
	}
}

// Whatever a program sends, no name that isn't listed is looked up, and the door lives on.
func FuzzDoor(f *testing.F) {
	f.Add([]byte("CONNECT good.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n\x16\x03\x01"))
	f.Add([]byte("CONNECT evil.example:443 HTTP/1.1\r\n\r\n"))
	f.Add([]byte("GET http://good.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"))
	f.Add([]byte("GET http://user:pw@evil.example:80/ HTTP/1.1\r\nHost: x\r\n\r\n"))
	w := newWorld(f, Options{Hello: 50 * time.Millisecond, Connect: 50 * time.Millisecond}, "good.example:1", "http://good.example:1")
	fuzzbound.Run(f, func(t *testing.T, said []byte) {
		conn, err := net.Dial("tcp", w.proxy.Listener.Addr().String())
		if err != nil {
			t.Skip(err)
		}
		_, _ = conn.Write(said)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
		w.names.mu.Lock()
		defer w.names.mu.Unlock()
		for _, host := range w.names.asked {
			if host != "good.example." {
				t.Errorf("%q was looked up", host)
			}
		}
	})
}
