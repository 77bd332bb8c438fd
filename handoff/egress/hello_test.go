package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// helloFor is the first message of Go's TLS client for a host.
func helloFor(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_ = tls.Client(client, config).HandshakeContext(t.Context()) // it is cut off
		_ = client.Close()
	}()
	defer func() { _ = server.Close() }() // the client has said enough
	head := make([]byte, recordLen)
	if _, err := io.ReadFull(server, head); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(server, rest); err != nil {
		t.Fatal(err)
	}
	return append(head, rest...)
}

func named(t testing.TB, host string) []byte {
	return helloFor(t, &tls.Config{ServerName: host, InsecureSkipVerify: host == "", MinVersion: tls.VersionTLS12})
}

// split puts a message into records of so many bytes.
func split(record []byte, size int) (all []byte) {
	for body := record[recordLen:]; len(body) > 0; {
		n := min(size, len(body))
		all = append(append(all, handshake, 3, 1, byte(n>>8), byte(n)), body[:n]...)
		body = body[n:]
	}
	return all
}

func TestTheFirstMessageNamesItsHost(t *testing.T) {
	whole := named(t, "API.example.com")
	for name, flight := range map[string][]byte{"whole": whole, "in halves": split(whole, len(whole)/2), "by 50": split(whole, 50)} {
		tail := "behind"
		from := io.MultiReader(iotest.OneByteReader(bytes.NewReader(flight)), bytes.NewReader([]byte(tail)))
		got, host, err := readHello(from)
		if err != nil || host != "api.example.com" || !bytes.Equal(got, flight) {
			t.Errorf("%s: %q, %v, %d of %d bytes", name, host, err, len(got), len(flight))
		}
		if rest, _ := io.ReadAll(from); string(rest) != tail {
			t.Errorf("%s: %q was left", name, rest)
		}
	}
}

func TestWhatIsNoFirstMessage(t *testing.T) {
	whole := named(t, "api.example.com")
	twice := append([]byte{}, whole...)
	for name, c := range map[string]struct {
		flight []byte
		want   error
	}{
		"no name":            {named(t, ""), errNoName},
		"HTTP":               {[]byte("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n"), errNoTLS},
		"SSH":                {[]byte("SSH-2.0-OpenSSH_9.9\r\n"), errNoTLS},
		"an alert":           {[]byte{21, 3, 3, 0, 2, 2, 112}, errNoTLS},
		"another message":    {append([]byte{22, 3, 1, 0, 4}, 2, 0, 0, 0), errNoTLS},
		"an empty record":    {[]byte{22, 3, 1, 0, 0}, errNoTLS},
		"a huge message":     {append([]byte{22, 3, 1, 0, 4}, 1, 1, 0, 0), errNoTLS},
		"an empty message":   {append([]byte{22, 3, 1, 0, 4}, 1, 0, 0, 0), errNoTLS},
		"records by 1 byte":  {split(append(append([]byte{22, 3, 1, 0, 0}, 1, 0, 0x3f, 0xff), make([]byte, 0x3fff)...), 1), errNoTLS},
		"nothing":            {nil, io.EOF},
		"a part":             {whole[:len(whole)-1], io.ErrUnexpectedEOF},
		"a name in no place": {bytes.Replace(twice, []byte("api.example.com"), []byte("api.example.c\x00\x00"), 1), nil},
	} {
		_, host, err := readHello(bytes.NewReader(c.flight))
		if !errors.Is(err, c.want) || err != nil && host != "" {
			t.Errorf("%s: %q, %v", name, host, err)
		}
	}
}

// Two names, or the extension twice: the server might take the other one.
func TestATwofoldNameIsNone(t *testing.T) {
	name := func(hosts ...string) []byte {
		var list []byte
		for _, h := range hosts {
			list = append(append(list, 0, 0, byte(len(h))), h...)
		}
		data := append([]byte{0, byte(len(list))}, list...)
		return append([]byte{0, 0, 0, byte(len(data))}, data...)
	}
	message := func(extensions ...[]byte) []byte {
		all := bytes.Join(extensions, nil)
		body := append(make([]byte, 34), 0, 0, 2, 19, 1, 1, 0, byte(len(all)>>8), byte(len(all)))
		body = append(body, all...)
		m := append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
		return append([]byte{22, 3, 1, byte(len(m) >> 8), byte(len(m))}, m...)
	}
	for what, c := range map[string]struct {
		flight []byte
		ok     bool
	}{
		"one":           {message(name("a.example")), true},
		"two names":     {message(name("a.example", "b.example")), false},
		"two extension": {message(name("a.example"), name("b.example")), false},
		"an empty one":  {message(name("")), false},
		"bytes behind":  {append(message(name("a.example"))[:0:0], message(append(name("a.example"), 1))...), false},
	} {
		_, host, err := readHello(bytes.NewReader(c.flight))
		if c.ok != (err == nil && host == "a.example") {
			t.Errorf("%s: %q, %v", what, host, err)
		}
	}
}

// What is taken must be what a real server would understand.
func FuzzHello(f *testing.F) {
	whole := named(f, "api.example.com")
	f.Add(whole)
	f.Add(split(whole, 100))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	fuzzbound.Run(f, func(t *testing.T, flight []byte) {
		got, host, err := readHello(bytes.NewReader(flight))
		if err != nil {
			if got != nil || host != "" {
				t.Errorf("%q with %v", host, err)
			}
			return
		}
		if host == "" || len(got) > maxFlight || !bytes.HasPrefix(flight, got) {
			t.Errorf("%q, %d bytes", host, len(got))
		}
		if seen, understood := asServer(got); understood && seen != host {
			t.Errorf("we read %q, and a server %q", host, seen)
		}
	})
}

// asServer returns the host that Go's TLS server reads in a flight.
func asServer(flight []byte) (host string, understood bool) {
	config := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		host, understood = h.ServerName, true
		return nil, errors.New("enough")
	}}
	_ = tls.Server(&replay{Reader: bytes.NewReader(flight)}, config).Handshake()
	return string(bytes.ToLower([]byte(host))), understood
}

// replay is a connection on which only the given bytes come.
type replay struct {
	net.Conn
	*bytes.Reader
}

func (r *replay) Read(p []byte) (int, error)  { return r.Reader.Read(p) }
func (r *replay) Write(p []byte) (int, error) { return len(p), nil }
func (r *replay) Close() error                { return nil }
