package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// serving is what the server has written for this machine.
func (s *server) serving() (now cli.Serving) {
	raw, err := os.ReadFile(cli.ServingFile(s.home()))
	if err == nil {
		err = json.Unmarshal(raw, &now)
	}
	if err != nil {
		s.t.Errorf("what is served: %v", err)
	}
	return now
}

// trust is that of a client which knows the server by its pins.
func (s *server) trust() *tls.Config {
	s.t.Helper()
	trust, err := certs.Trust{Pins: func() ([]certs.Pin, error) { return s.serving().Pins, nil }}.Config()
	if err != nil {
		s.t.Fatal(err)
	}
	return trust
}

// overTLS has the test ask the server by TLS.
func (s *server) overTLS() {
	s.t.Helper()
	s.web = s.newWeb()
	var err error
	if s.client, err = client.New(client.Options{Server: s.url(), Token: s.token, TLS: s.trust()}); err != nil {
		s.t.Fatal(err)
	}
}

// newWeb returns a client with connections of its own.
func (s *server) newWeb() *http.Client {
	transport := &http.Transport{TLSClientConfig: s.trust(), ForceAttemptHTTP2: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// pinSeen is that of the certificate which a new connection gets.
func (s *server) pinSeen() certs.Pin {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	return certs.PinOf(conn.ConnectionState().PeerCertificates[0])
}

// Commands of this machine need no setting, those of others a pin or the certificate.
func TestAServerHasACertificateOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newInside(t, "--tls", "self")
	s.overTLS()
	s.start()
	pin := string(s.serving().Pins[0])
	contains(t, s.log(), "aod serves on https://"+s.address, "--pin "+pin)
	elsewhere, cert := t.TempDir(), filepath.Join(s.home(), "tls", "cert.pem")
	token := []string{"--token-file", filepath.Join(s.home(), "token"), "--data", elsewhere}
	wrong := certs.Pin("sha256:" + strings.Repeat("0", 64))
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"on this machine":               {[]string{"--data", s.data}, 0, ""},
		"on this machine, by its name":  {[]string{"--data", s.data, "--server", s.url()}, 0, ""},
		"by the pin":                    {append(token, "--server", s.url(), "--pin", pin), 0, ""},
		"by the certificate":            {append(token, "--server", s.url(), "--ca", cert), 0, ""},
		"by nothing":                    {append(token, "--server", s.url()), 2, "--pin"},
		"by a wrong pin":                {append(token, "--server", s.url(), "--pin", string(wrong)), 2, "isn't the one that the pin names"},
		"by a wrong pin, here":          {[]string{"--data", s.data, "--server", s.url(), "--pin", string(wrong)}, 2, "isn't the one that the pin names"},
		"by what is no pin":             {append(token, "--server", s.url(), "--pin", "x"), 2, "isn't a pin"},
		"by a CA that isn't there":      {append(token, "--server", s.url(), "--ca", filepath.Join(elsewhere, "x")), 2, "AOD_CA"},
		"without TLS":                   {append(token, "--server", "http://"+s.address), 125, "begins with https://"},
		"without TLS, but by a pin":     {append(token, "--server", "http://"+s.address, "--pin", pin), 2, "without TLS"},
		"another command, also locally": {[]string{"--data", s.data, "--quiet"}, 0, ""},
	} {
		code, _, stderr := command(t, t.Context(), append([]string{"units"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: code %d, %s", name, code, stderr)
		}
	}
	code, _, stderr := command(t, t.Context(), "token", "rm", "nobody", "--stop", "--data", s.data)
	if code != 0 || !strings.Contains(stderr, "nothing goes on") {
		t.Errorf("token rm: code %d, %s", code, stderr)
	}
	s.signal(syscall.SIGTERM)
	s.exitCode()
	if _, err := os.Stat(cli.ServingFile(s.home())); !os.IsNotExist(err) {
		t.Errorf("it is still told what is served: %v", err)
	}
	s.start()
	if again := string(s.pinSeen()); again != pin {
		t.Errorf("the pin is %s, was %s", again, pin)
	}
}

func TestThePageOverTLSHasASecureCookie(t *testing.T) {
	t.Parallel()
	s := newInside(t, "--tls", "self")
	s.overTLS()
	s.start()
	code, stdout, stderr := command(t, t.Context(), "ui", "--print", "--data", s.data)
	address := strings.TrimSpace(stdout)
	if code != 0 || !strings.HasPrefix(address, s.url()+"/ui/login?code=") {
		t.Fatalf("code %d, %q, %q", code, stdout, stderr)
	}
	browser := s.newWeb()
	var cookie string
	browser.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		cookie = next.Response.Header.Get("Set-Cookie")
		return nil
	}
	var err error
	if browser.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{address, s.url() + "/ui/runs"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != "/ui/runs" || answer.ProtoMajor != 2 {
			t.Errorf("it leads to %s: %s %s", answer.Request.URL.Path, answer.Proto, answer.Status)
		}
	}
	contains(t, cookie, "__Secure-aod_", "; Secure", "HttpOnly")
}

// Both protocols have the certificate, and cards name addresses that speak TLS.
func TestA2AIsServedOverTLS(t *testing.T) {
	t.Parallel()
	s := newInside(t, "--tls", "self")
	calls := programtest.FreeAddress(t)
	settings := filepath.Join(s.data, "aod.yaml")
	write(t, "a2a: {grpc: '"+calls+"'}\n", settings)
	s.flags = append(s.flags, "--config", settings)
	s.addWorker("worker", "")
	s.overTLS()
	s.start()
	conn, err := grpc.NewClient(calls, grpc.WithTransportCredentials(credentials.NewTLS(s.trust())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.token)
	card, err := pbv1.NewA2AServiceClient(conn).GetExtendedAgentCard(ctx, &pbv1.GetExtendedAgentCardRequest{Tenant: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range card.GetSupportedInterfaces() {
		if at.GetProtocolBinding() != "GRPC" && !strings.HasPrefix(at.GetUrl(), "https://") {
			t.Errorf("%s at %s", at.GetProtocolBinding(), at.GetUrl())
		}
	}
	if len(card.GetSupportedInterfaces()) == 0 {
		t.Error("the card has no address")
	}
}

// newPair makes the certificate of a directory that is new, for this machine and further names.
func newPair(t *testing.T, names ...string) (certs.Pair, certs.Pin) {
	t.Helper()
	pair, err := certs.Self(filepath.Join(t.TempDir(), "tls"), append([]string{"localhost", "127.0.0.1"}, names...))
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := certs.Open(pair, func(certs.State) {})
	if err != nil {
		t.Fatal(err)
	}
	return pair, keeper.State().Pins[0]
}

// put copies a file over another one, as it is.
func put(t *testing.T, from, into string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(raw), into)
}

func TestACertificateIsReplacedUnderStreamsThatGoOn(t *testing.T) {
	t.Parallel()
	pair, first := newPair(t)
	other, second := newPair(t)
	s := newInside(t)
	settings := filepath.Join(s.data, "aod.yaml")
	write(t, fmt.Sprintf("tls: {cert: %q, key: %q}\n", pair.Cert, pair.Key), settings)
	s.flags = append(s.flags, "--config", settings)
	s.addWorker("worker", "")
	s.overTLS()
	s.start()
	if seen := s.pinSeen(); seen != first {
		t.Fatalf("it has %s", seen)
	}
	id := s.mustSubmit("worker", work{Ticks: 1, Hold: 1})
	s.awaitLine(id, "tick 1")
	whole := s.followed(id, 50)

	put(t, other.Cert, pair.Cert)
	put(t, other.Key, pair.Key)
	testkit.Eventually(t, "new connections have the new one", func() bool { return s.pinSeen() == second })
	if code, _, stderr := command(t, t.Context(), "units", "--data", s.data); code != 0 {
		t.Errorf("a command of this machine: code %d, %s", code, stderr)
	}

	if err := os.Truncate(pair.Cert, 100); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is told that the next one is broken", func() bool { return s.serving().Problem != "" })
	if seen := s.pinSeen(); seen != second {
		t.Errorf("then it has %s", seen)
	}
	_, stdout, _ := command(t, t.Context(), "doctor", "--data", s.data)
	contains(t, stdout, "the new one can't be used")

	s.letGo(id)
	if n := whole(); n != 50 {
		t.Errorf("%d streams came to their end", n)
	}
	if n := strings.Count(s.log(), "the old one stays"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
	s.await(id)
	put(t, other.Cert, pair.Cert) // the server is started once more
}

// followed opens streams of a run's log, each over a connection of its own, and returns when all have begun. whole
// waits for their ends, and returns how many have all of it.
func (s *server) followed(id string, n int) (whole func() int) {
	s.t.Helper()
	var begun, ended sync.WaitGroup
	var mu sync.Mutex
	good := 0
	begun.Add(n)
	for range n {
		web := s.newWeb()
		ended.Go(func() {
			request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url()+"/v1/runs/"+id+"/logs?follow=true", http.NoBody)
			if err != nil {
				s.t.Error(err)
			}
			request.Header.Set("Authorization", "Bearer "+s.token)
			answer, err := web.Do(request)
			if err != nil {
				s.t.Error(err)
				begun.Done()
				return
			}
			defer answer.Body.Close()
			lines := bufio.NewReader(answer.Body)
			_, err = lines.ReadString('\n')
			begun.Done()
			if err == nil {
				_, err = io.Copy(io.Discard, lines)
			}
			if err != nil {
				s.t.Errorf("a stream is cut: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			good++
		})
	}
	begun.Wait()
	return func() int { ended.Wait(); return good }
}
