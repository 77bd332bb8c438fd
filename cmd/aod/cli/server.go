package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/login"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// maxSmallFile bounds an address or a token in bytes.
const maxSmallFile = 4 << 10

// Connect returns a client of the named server, or else of the server that runs on this
// data directory. It looks for the token at each request: a server that is starting hasn't
// written it yet.
func (env *Env) Connect() (*client.Client, error) {
	server, err := env.named()
	if err != nil {
		return nil, err
	}
	return env.clientOf(server)
}

// named is the address of the named server, or else of the one that runs on this data directory.
func (env *Env) named() (string, error) {
	if env.Server != "" {
		return env.Server, nil
	}
	return env.LocalServer()
}

// ConnectHere returns a client of the server that runs on this data directory, whatever server is named.
func (env *Env) ConnectHere() (*client.Client, error) {
	server, err := env.LocalServer()
	if err != nil {
		return nil, err
	}
	return env.clientOf(server)
}

// ConnectWith is Connect with a token, whatever other one there is; "" is none.
func (env *Env) ConnectWith(token string) (*client.Client, error) {
	server, err := env.named()
	if err != nil {
		return nil, err
	}
	trust, err := env.trustIn(server)
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{Server: server, Token: token, TLS: trust})
}

func (env *Env) clientOf(server string) (*client.Client, error) {
	trust, err := env.trustIn(server)
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{
		Server: server, Team: os.Getenv("AOD_TEAM"), TLS: trust,
		TokenFrom: func() (string, error) { return env.Token(server) },
	})
}

// trustIn is how a server is known: the one that is named by what the user gives for it, that of the data directory by
// what it has written there.
func (env *Env) trustIn(server string) (*tls.Config, error) {
	named := server == env.Server
	if named && (env.Pin != "" || env.CA != "") && !strings.HasPrefix(server, "https:") {
		return nil, fault.New(fault.Input, "%s is an address without TLS, and a pin or a CA is given for it", server).
			WithHint("write https://, or leave out --pin and --ca and unset AOD_PIN and AOD_CA")
	}
	if named && env.Pin != "" {
		pin, err := certs.ParsePin(env.Pin)
		if err != nil {
			return nil, err
		}
		return certs.Trust{Pins: func() ([]certs.Pin, error) { return []certs.Pin{pin}, nil }}.Config()
	}
	if local, err := env.LocalServer(); err == nil && SameServer(local, server) {
		return certs.Trust{Pins: env.localPins}.Config()
	}
	return certs.Trust{CA: env.CA}.Config()
}

// localPins are those that the server of the data directory has now.
func (env *Env) localPins() ([]certs.Pin, error) {
	now, err := env.Serving()
	return now.Pins, err
}

// OnServer is a command that asks a server.
func OnServer(env *Env,
	do func(ctx context.Context, server *client.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		server, err := env.Connect()
		if err != nil {
			return err
		}
		return do(cmd.Context(), server, args)
	}
}

// ConnectFor is Connect for a run that isn't kept on this machine.
func (env *Env) ConnectFor(id string) (*client.Client, error) {
	server, err := env.Connect()
	if env.Server == "" && fault.Is(err, fault.Unavailable) {
		return nil, fault.Wrap(fault.NotFound, err, "there is no run %q here", id).
			WithHint("`aod runs` lists the last runs of this machine; a server is named with --server URL or " +
				"AOD_SERVER")
	}
	return server, err
}

// LocalServer returns the address that `aod serve` wrote to the data directory, as long as a server
// has that: of a dead one the address may be another user's by now, who would be sent the token.
func (env *Env) LocalServer() (string, error) {
	address, err := ReadSmall(filepath.Join(env.Home(), "address"))
	if err == nil {
		var alive bool
		if alive, err = safefs.IsLocked(filepath.Join(env.Home(), layout.Lock)); err == nil && !alive {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Unavailable, "no server runs on the data directory %q", env.Data).
			WithHint("start one with `aod serve`, or name one with --server URL or AOD_SERVER")
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the address of the server can't be read").
			WithHint("name it with --server URL or AOD_SERVER")
	}
	return address, nil
}

// Token returns the token for the server: the one that the user names, else that of their sign-in there, else that of
// the data directory, which is for its own server alone. "" is none.
func (env *Env) Token(server string) (string, error) {
	if token := os.Getenv("AOD_TOKEN"); token != "" {
		return token, nil
	}
	if env.TokenFile != "" {
		token, err := ReadSmall(env.TokenFile)
		if err != nil || token == "" {
			return "", fault.Wrap(fault.Input, err, "the file %q holds no token", env.TokenFile).
				WithHint("name the file with --token-file or AOD_TOKEN_FILE")
		}
		return token, nil
	}
	if token, err := signedIn(server); token != "" || err != nil {
		return token, err
	}
	local, err := env.LocalServer()
	if err != nil || !SameServer(local, server) {
		return "", nil //nolint:nilerr // a server elsewhere may need no token
	}
	token, err := ReadSmall(filepath.Join(env.Home(), "token"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.Unavailable, err, "the server's token can't be read").
			WithHint("is it another user's server? ask for a token and name its file with --token-file")
	}
	return token, nil
}

// refreshTime is how long an issuer has to refresh a sign-in.
const refreshTime = 30 * time.Second

// signedIn returns the token with which the user has signed in at a server; "": they haven't.
func signedIn(server string) (string, error) {
	keep, err := login.Default()
	if err != nil {
		return "", nil // there is no place for one
	}
	ctx, cancel := context.WithTimeout(context.Background(), refreshTime)
	defer cancel()
	return keep.Token(ctx, server)
}

// SameServer reports whether two addresses certainly belong to the same server.
func SameServer(one, other string) bool {
	a, errA := url.Parse(one)
	b, errB := url.Parse(other)
	if errA != nil || errB != nil || a.Scheme != b.Scheme || a.Port() != b.Port() {
		return false
	}
	return a.Hostname() == b.Hostname() || isLoopback(a.Hostname()) && isLoopback(b.Hostname())
}

// isLoopback reports whether a name means this machine. The addresses of 127.0.0.0/8
// differ: a server listens at one of them.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.Equal(net.IPv4(127, 0, 0, 1)) || ip.Equal(net.IPv6loopback))
}

// ReadSmall reads a file of one short line: an address or a token.
func ReadSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSmallFile))
	return strings.TrimSpace(string(raw)), err
}

// SubmitGrace bounds a submission in progress after an interrupt.
const SubmitGrace = 2 * time.Second

// Lingering returns a context that ends d after ctx does: a request that was sent already
// should get its answer, so that the run can be cancelled.
func Lingering(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}
