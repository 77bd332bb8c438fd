package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns a new pair, and its pin.
func made(t *testing.T, names ...string) (Pair, Pin) {
	t.Helper()
	pair, err := Self(filepath.Join(t.TempDir(), "tls"), append(names, "localhost"))
	must(t, err)
	return pair, pinOf(t, pair)
}

func pinOf(t *testing.T, pair Pair) Pin {
	t.Helper()
	cert, _, err := pair.read()
	must(t, err)
	return PinOf(cert.Leaf)
}

// put makes the content of one file that of another.
func put(t *testing.T, from, into string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(into, raw, 0o600))
}

// shakes returns the error of a client that trusts so and speaks to a Keeper, and the pin that it sees.
func shakes(t *testing.T, k *Keeper, trust Trust) (seen Pin, err error) {
	t.Helper()
	config, err := trust.Config()
	must(t, err)
	config.ServerName = "localhost"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		there, err := listener.Accept()
		if err != nil {
			return
		}
		defer there.Close()
		_ = tls.Server(there, k.Config("h2", "http/1.1")).HandshakeContext(context.Background())
	}()
	defer func() { <-served }()
	here, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	defer here.Close()
	client := tls.Client(here, config)
	if err := client.HandshakeContext(t.Context()); err != nil {
		return "", err
	}
	return PinOf(client.ConnectionState().PeerCertificates[0]), nil
}

func pinned(pins ...Pin) Trust { return Trust{Pins: func() ([]Pin, error) { return pins, nil }} }

func TestAServersOwnCertificateIsMadeOnce(t *testing.T) {
	pair, pin := made(t, "127.0.0.1", "::1", "box")
	info, err := os.Stat(pair.Key)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %o", info.Mode().Perm())
	}
	before, err := os.ReadFile(pair.Cert)
	must(t, err)
	dir := filepath.Dir(pair.Key)
	for name, c := range map[string]struct {
		names []string
		spoil func()
		same  bool // the certificate is the one before
	}{
		"another start":             {[]string{"localhost", "::1", "box"}, func() {}, true},
		"another name":              {[]string{"localhost", "elsewhere.example"}, func() {}, false},
		"no certificate":            {[]string{"localhost"}, func() { must(t, os.Remove(pair.Cert)) }, false},
		"half a certificate":        {[]string{"localhost"}, func() { must(t, os.Truncate(pair.Cert, 100)) }, false},
		"one that isn't this key's": {[]string{"localhost"}, func() { other, _ := made(t); put(t, other.Cert, pair.Cert) }, false},
	} {
		must(t, os.WriteFile(pair.Cert, before, 0o600))
		c.spoil()
		_, err := Self(dir, c.names)
		must(t, err)
		after, err := os.ReadFile(pair.Cert)
		must(t, err)
		if pinOf(t, pair) != pin || (string(after) == string(before)) != c.same {
			t.Errorf("%s: the pin is %s, was %s", name, pinOf(t, pair), pin)
		}
	}
	cert, _, err := pair.read()
	must(t, err)
	if len(cert.Leaf.IPAddresses)+len(cert.Leaf.DNSNames) == 0 || cert.Leaf.PublicKeyAlgorithm != x509.ECDSA || cert.Leaf.IsCA {
		t.Errorf("%+v", cert.Leaf)
	}
}

func TestAKeyThatOthersReadOrThatIsBrokenIsRefused(t *testing.T) {
	pair, _ := made(t)
	for mode, kind := range map[os.FileMode]fault.Kind{0o640: fault.Forbidden, 0o604: fault.Forbidden} {
		must(t, os.Chmod(pair.Key, mode))
		_, err := Open(pair, func(State) {})
		_, again := Self(filepath.Dir(pair.Key), []string{"localhost"})
		if !fault.Is(err, kind) || !fault.Is(again, kind) || !strings.Contains(fault.Public(err).Hint, "chmod 600") {
			t.Errorf("%o: %v, %v", mode, err, again)
		}
	}
	must(t, os.Chmod(pair.Key, 0o400))
	if _, err := Open(pair, func(State) {}); err != nil {
		t.Error(err)
	}
	must(t, os.Chmod(pair.Key, 0o600))
	for text, hint := range map[string]string{"": "remove the file", "no PEM": "remove the file"} {
		must(t, os.WriteFile(pair.Key, []byte(text), 0o600))
		if _, err := Self(filepath.Dir(pair.Key), nil); !fault.Is(err, fault.Input) || !strings.Contains(fault.Public(err).Hint, hint) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhatIsntAPairIsToldOf(t *testing.T) {
	other, _ := made(t)
	for name, spoil := range map[string]func(Pair){
		"no key":         func(p Pair) { must(t, os.Remove(p.Key)) },
		"a directory":    func(p Pair) { must(t, os.Remove(p.Cert)); must(t, os.Mkdir(p.Cert, 0o700)) },
		"a giant":        func(p Pair) { must(t, os.WriteFile(p.Cert, make([]byte, maxPEM+1), 0o600)) },
		"another's key":  func(p Pair) { put(t, other.Key, p.Key) },
		"half a key":     func(p Pair) { must(t, os.Truncate(p.Key, 50)) },
		"no certificate": func(p Pair) { must(t, os.WriteFile(p.Cert, nil, 0o600)) },
	} {
		pair, _ := made(t)
		spoil(pair)
		_, err := Open(pair, func(State) {})
		if !fault.Is(err, fault.Input) || strings.Contains(fault.Public(err).Msg, "PRIVATE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAChangeIsTakenWhenItIsWhole(t *testing.T) {
	pair, first := made(t)
	other, second := made(t)
	var told []State
	k, err := Open(pair, func(s State) { told = append(told, s) })
	must(t, err)
	step := func(what string, want Pin, problem bool, tells int) {
		t.Helper()
		seen, err := shakes(t, k, pinned(k.State().Pins...))
		if err != nil || seen != want || (k.State().Problem != nil) != problem || len(told) != tells {
			t.Fatalf("%s: %s is served, told %d times: %v, %v", what, seen, len(told), err, k.State().Problem)
		}
	}
	step("at the start", first, false, 1)
	k.look()
	step("nothing has changed", first, false, 1)
	put(t, other.Cert, pair.Cert)
	k.look()
	step("half of a change", first, false, 1)
	put(t, other.Key, pair.Key)
	k.look()
	step("all of it", second, false, 2)
	if !slices.Equal(told[1].Pins, []Pin{second, first}) {
		t.Errorf("while it changes these are known: %s", told[1].Pins)
	}
	k.look()
	step("the change is over", second, false, 3)
	if !slices.Equal(told[2].Pins, []Pin{second}) {
		t.Errorf("after it these are known: %s", told[2].Pins)
	}
	must(t, os.Truncate(pair.Cert, 10))
	for range 3 {
		k.look()
	}
	step("a broken one that stays", second, true, 4)
	must(t, os.Chmod(pair.Key, 0o644))
	put(t, other.Cert, pair.Cert)
	k.look()
	k.look()
	step("another problem is the same to those who were told", second, true, 4)
	must(t, os.Chmod(pair.Key, 0o600))
	k.look()
	step("the old one again", second, false, 5)
}

func TestAClientTrustsWhatItIsTold(t *testing.T) {
	pair, pin := made(t)
	other, wrong := made(t)
	k, err := Open(pair, func(State) {})
	must(t, err)
	for name, c := range map[string]struct {
		trust Trust
		ok    bool
	}{
		"the pin":            {pinned(pin), true},
		"one of two pins":    {pinned(wrong, pin), true},
		"a wrong pin":        {pinned(wrong), false},
		"no pin":             {pinned(), false},
		"the certificate":    {Trust{CA: pair.Cert}, true},
		"another one":        {Trust{CA: other.Cert}, false},
		"the system's roots": {Trust{}, false},
		"pins that can't be": {Trust{Pins: func() ([]Pin, error) { return nil, errors.New("x") }}, false},
	} {
		if _, err := shakes(t, k, c.trust); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := shakes(t, k, pinned(wrong)); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a wrong pin: %v", err)
	}
	for _, file := range []string{pair.Key, "missing", t.TempDir()} {
		if _, err := (Trust{CA: file}).Config(); !fault.Is(err, fault.Input) || !strings.Contains(fault.Public(err).Hint, "AOD_CA") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestPinsAreRead(t *testing.T) {
	_, pin := made(t)
	for text, ok := range map[string]bool{
		string(pin): true, " " + strings.ToUpper(string(pin)) + "\n": true, "": false, "sha256:": false, string(pin)[7:]: false,
		string(pin) + "00": false, "sha256:" + strings.Repeat("x", 64): false,
	} {
		if got, err := ParsePin(text); (err == nil) != ok || ok && got != pin || !ok && !fault.Is(err, fault.Input) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
