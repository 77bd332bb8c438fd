package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const (
	proxies   = "../../examples/proxy"
	proxyName = "aod.example.com"
)

// proxied is a server behind a proxy with the configuration of examples.
type proxied struct {
	*server
	front string // where the proxy listens
	calls string // where gRPC does, behind it
	trust *tls.Config
	dir   string // for the proxy
	pair  certs.Pair
	outer *http.Client   // asks the proxy
	by    *client.Client // likewise
}

func newProxied(t *testing.T) *proxied {
	t.Helper()
	p := &proxied{server: newServer(t), front: programtest.FreeAddress(t), calls: programtest.FreeAddress(t), dir: t.TempDir()}
	settings := filepath.Join(p.data, "aod.yaml")
	write(t, fmt.Sprintf("hosts: [%s]\na2a: {grpc: '%s'}\n", proxyName, p.calls), settings)
	p.flags = append(p.flags, "--config", settings)
	p.addWorker("worker", "")
	p.start()
	var pin certs.Pin
	p.pair, pin = newPair(t, proxyName)
	var err error
	if p.trust, err = (certs.Trust{Pins: func() ([]certs.Pin, error) { return []certs.Pin{pin}, nil }}).Config(); err != nil {
		t.Fatal(err)
	}
	return p
}

// config is a file of examples, for this machine's ports and files. Each text has to be in it.
func (p *proxied) config(name string, changes ...string) string {
	p.t.Helper()
	raw, err := os.ReadFile(filepath.Join(proxies, name))
	if err != nil {
		p.t.Fatal(err)
	}
	changes = append(changes, "127.0.0.1:7070", p.address, "127.0.0.1:7071", p.calls)
	for i := 0; i < len(changes); i += 2 {
		if !bytes.Contains(raw, []byte(changes[i])) {
			p.t.Fatalf("%s has no %q", name, changes[i])
		}
	}
	return strings.NewReplacer(changes...).Replace(string(raw))
}

// behind starts a proxy, which ends with the test, and has the test ask by it.
func (p *proxied) behind(program string, args ...string) {
	p.t.Helper()
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	proxy := exec.Command(program, args...)
	proxy.Stdout, proxy.Stderr, proxy.Dir = log, log, p.dir
	proxy.Env = append(os.Environ(), "HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
	if err := proxy.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = proxy.Process.Signal(os.Interrupt) // nginx ends its workers, too
		_ = proxy.Wait()
		log.Close()
		if raw, _ := os.ReadFile(log.Name()); p.t.Failed() {
			p.t.Logf("the proxy says:\n%s", raw)
		}
	})
	front := &http.Transport{TLSClientConfig: p.trust, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.front)
	}}
	p.t.Cleanup(front.CloseIdleConnections)
	p.outer = &http.Client{Transport: front, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if p.by, err = client.New(client.Options{Server: "https://" + proxyName, Token: p.token, HTTP: p.outer}); err != nil {
		p.t.Fatal(err)
	}
	testkit.Eventually(p.t, "the proxy answers", func() bool {
		answer, err := p.outer.Get("https://" + proxyName + "/healthz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK && answer.ProtoMajor == 2
	})
}

// request is one to the proxy.
func (p *proxied) request(ctx context.Context, method, path string, body io.Reader, headers ...string) *http.Request {
	p.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "https://"+proxyName+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	return request
}

// asks returns the proxy's answer to a request.
func (p *proxied) asks(ctx context.Context, method, path string, body io.Reader, headers ...string) *http.Response {
	p.t.Helper()
	answer, err := p.outer.Do(p.request(ctx, method, path, body, headers...))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (p *proxied) status(method, path, body string, headers ...string) int {
	return p.asks(p.t.Context(), method, path, strings.NewReader(body), headers...).StatusCode
}

func TestTheServerBehindNginx(t *testing.T) {
	t.Parallel()
	program := programtest.Find(t, "nginx")
	p := newProxied(t)
	const letsEncrypt = "/etc/letsencrypt/live/aod.example.com/"
	write(t, p.config("nginx.conf", "listen 443", "listen "+p.front, letsEncrypt+"fullchain.pem", p.pair.Cert, letsEncrypt+"privkey.pem", p.pair.Key), p.dir, "aod.conf")
	write(t, fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1; events {}
http { access_log off; include %[1]s/aod.conf; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi; }
`, p.dir), p.dir, "nginx.conf")
	p.behind(program, "-e", "stderr", "-p", p.dir, "-c", filepath.Join(p.dir, "nginx.conf"))
	p.judge()
}

func TestTheServerBehindCaddy(t *testing.T) {
	t.Parallel()
	program := programtest.Find(t, "caddy")
	p := newProxied(t)
	_, port, _ := strings.Cut(p.front, ":")
	site := fmt.Sprintf("https://%s:%s {\n\tbind 127.0.0.1\n\ttls %s %s\n", proxyName, port, p.pair.Cert, p.pair.Key)
	own := "{\n\tadmin off\n\tauto_https off\n\tservers {\n\t\tprotocols h1 h2\n\t}\n}\n" // its port's UDP half is taken
	write(t, own+p.config("Caddyfile", proxyName+" {\n", site), p.dir, "Caddyfile")
	p.behind(program, "run", "--config", filepath.Join(p.dir, "Caddyfile"), "--adapter", "caddyfile")
	p.judge()
}

// judge has everything pass the proxy as it passes without one.
func (p *proxied) judge() {
	p.t.Run("a stream comes as it is sent, and AOD hears that its client leaves", p.judgeStreams)
	p.t.Run("files of any size pass, and what is refused is refused", p.judgeUploads)
	p.t.Run("the page is signed into by TLS alone", p.judgePage)
	p.t.Run("names of others are refused", func(t *testing.T) {
		raw, err := io.ReadAll(p.asks(t.Context(), http.MethodGet, "/v1/runs", nil, "Host: evil.example").Body)
		if err != nil || bytes.Contains(raw, []byte(`"runs"`)) {
			t.Errorf("a foreign name: %s, %v", raw, err)
		}
		if got := p.status(http.MethodGet, "/v1/runs", "", "Origin: https://evil.example"); got != http.StatusForbidden {
			t.Errorf("a foreign page: %d", got)
		}
	})
	p.t.Run("gRPC passes", p.judgeCalls)
	p.t.Run("the audit knows the proxy alone, whatever a client says", p.judgeAudit)
}

func (p *proxied) judgeStreams(t *testing.T) {
	id := p.mustSubmit("worker", work{Ticks: 300})
	p.awaitLine(id, "started")
	for _, path := range []string{"/events", "/logs?follow=true"} {
		ctx, leave := context.WithCancel(t.Context())
		answer := p.asks(ctx, http.MethodGet, "/v1/runs/"+id+path, nil)
		if lines := bufio.NewScanner(answer.Body); !lines.Scan() || answer.ProtoMajor != 2 {
			t.Errorf("%s: nothing comes, by %s", path, answer.Proto)
		}
		p.streams(1)
		leave()
		p.streams(0)
	}
	attached := make(chan error, 1)
	ctx, leave := context.WithCancel(t.Context())
	request := p.request(ctx, http.MethodPost, "/agents/run/sync",
		strings.NewReader(`{"request_id":"r","task_type":"worker","inputs":{"mark":1,"ticks":300}}`), "Content-Type: application/json")
	go func() {
		_, err := p.outer.Do(request)
		attached <- err
	}()
	var left string
	testkit.Eventually(t, "the attached run goes on", func() bool {
		for r := range p.client.Runs.List(t.Context(), api.Filter{}) {
			if r.ID != id && r.State == api.Running {
				left = r.ID
			}
		}
		return left != ""
	})
	leave()
	<-attached
	if r := p.await(left); r.Outcome != api.WasCancelled {
		t.Errorf("the run of a client that left ends with %s", r.Outcome)
	}
	if _, err := p.client.Runs.Cancel(t.Context(), id, ""); err != nil {
		t.Error(err)
	}
	p.await(id)
}

// streams waits until so many are open.
func (p *proxied) streams(n int) {
	p.t.Helper()
	testkit.Eventually(p.t, fmt.Sprint(n, " streams are open"), func() bool {
		return strings.Contains(p.metrics(), fmt.Sprintf("\naod_streams_open %d\n", n))
	})
}

func (p *proxied) judgeUploads(t *testing.T) {
	doc := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	file := filepath.Join(t.TempDir(), "doc")
	write(t, string(doc), file)
	record, err := p.by.Runs.Submit(t.Context(), client.Submission{
		Unit: "worker", Input: work{Mark: 2}.input(), Files: []client.InputFile{{Field: "doc", Path: file}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := p.file(p.await(record.ID), "copy"); err != nil || !bytes.Equal(back, doc) {
		t.Errorf("%d bytes came back, %v", len(back), err)
	}
	if got := p.status(http.MethodPost, "/v1/runs", string(doc), "Authorization: Bearer nobody", "Content-Type: application/json"); got != http.StatusUnauthorized {
		t.Errorf("a large request without a token: %d", got)
	}
}

func (p *proxied) judgePage(t *testing.T) {
	form := url.Values{"token": {p.token}}.Encode()
	own, foreign := "Origin: https://"+proxyName, "Origin: https://evil.example"
	const typed = "Content-Type: application/x-www-form-urlencoded"
	in := p.asks(t.Context(), http.MethodPost, "/ui/login", strings.NewReader(form), typed, own)
	cookie := in.Header.Get("Set-Cookie")
	if in.StatusCode != http.StatusSeeOther || !strings.HasPrefix(cookie, "__Secure-aod_") || !strings.Contains(cookie, "; Secure") {
		t.Errorf("%d, %q", in.StatusCode, cookie)
	}
	cookie, _, _ = strings.Cut(cookie, ";")
	if got := p.status(http.MethodGet, "/ui/runs", "", "Cookie: "+cookie, "Authorization: -"); got != http.StatusOK {
		t.Errorf("the page answers %d", got)
	}
	if got := p.status(http.MethodPost, "/ui/login", form, typed, foreign); got != http.StatusForbidden {
		t.Errorf("a foreign page signs in with %d", got)
	}
}

func (p *proxied) judgeCalls(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///"+p.front, grpc.WithTransportCredentials(credentials.NewTLS(p.trust)), grpc.WithAuthority(proxyName))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+p.token)
	card, err := pbv1.NewA2AServiceClient(conn).GetExtendedAgentCard(ctx, &pbv1.GetExtendedAgentCardRequest{Tenant: "worker"})
	if err != nil || card.GetName() != "worker" {
		t.Errorf("%v, %v", card, err)
	}
}

func (p *proxied) judgeAudit(t *testing.T) {
	p.status(http.MethodPost, "/v1/runs", `{"unit":"worker","input":{"mark":3}}`, "Content-Type: application/json", "X-Forwarded-For: 203.0.113.7", "Forwarded: for=203.0.113.7")
	raw, err := io.ReadAll(p.asks(t.Context(), http.MethodGet, "/v1/audit", nil).Body)
	if err != nil || !bytes.Contains(raw, []byte(`"address":"127.0.0.1"`)) || bytes.Contains(raw, []byte("203.0.113.7")) {
		t.Errorf("%s, %v", raw, err)
	}
	p.rest()
}
