package docker

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// keptConnections is how many idle connections are kept for the next calls. Parallel
// runs each use a few at a time; the client's default of two a host makes them dial.
const keptConnections = 32

// RemoteEnv is the variable that, with any value, says that the engine doesn't see this
// process's files though it is reached by a socket of this machine, such as a forwarded one. It is
// so by itself where the engine has a Linux of its own: on macOS and Windows.
const RemoteEnv = "AOD_ENGINE_REMOTE"

// Options say which engine is meant.
type Options struct {
	// Host is the engine's address, e.g. "unix:///var/run/docker.sock" or
	// "tcp://10.0.0.5:2376". When empty, it is $DOCKER_HOST, else the current Docker
	// context, else the first socket that exists where Docker puts it.
	Host string
	// Unconfined starts containers also where the engine has no seccomp: without a profile then.
	Unconfined bool
}

// Engine is a Docker engine. It is safe for concurrent use.
type Engine struct {
	cli       *client.Client
	transport *http.Transport
	base      *url.URL // of the API, for the one call that the client can't make
	endpoint  endpoint
	remote    bool // in spite of the endpoint

	unconfined bool // see Options.Unconfined

	maxNanoCPUs atomic.Int64 // what the engine said it has; 0 is not known
	classicOnly atomic.Bool  // the engine said that it has no BuildKit
	noProfile   atomic.Bool  // the engine takes no seccomp profile from its clients
	noSeccomp   atomic.Bool  // the engine has none, as it said last: it starts nothing that has a profile
	noQuota     atomic.Bool  // the engine has no quotas for the layers of containers

	self  func() self               // of this process; another one in tests
	paths atomic.Pointer[hostPaths] // nil until they are known
}

var _ runtime.Engine = (*Engine)(nil)

// New returns the engine that the options, the environment (DOCKER_HOST,
// DOCKER_TLS_VERIFY, DOCKER_CERT_PATH, DOCKER_API_VERSION, DOCKER_CONTEXT,
// DOCKER_CONFIG, RemoteEnv) and the current Docker context name. It sends nothing: an engine
// that isn't there shows with the first call. The API version is negotiated then,
// once. A host that can't be understood is an Unsupported fault.
func New(opts Options) (*Engine, error) {
	env := systemEnvironment()
	at, err := findEndpoint(opts.Host, env)
	if err != nil {
		return nil, err
	}
	tr, err := newTransport(at, env)
	if err != nil {
		return nil, err
	}
	cli, host, err := newClient(at, tr)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the Docker host %s can't be used", at).WithHint("%s", at.hint())
	}
	// WithHost switches compression on for TCP. The engine's gzip makes copying
	// files out of a container eight times slower.
	tr.DisableCompression = true
	return &Engine{
		cli: cli, transport: tr, base: baseURL(host, tr), endpoint: at, remote: env.remote(),
		unconfined: opts.Unconfined, self: readSelf,
	}, nil
}

// newClient returns the client, and the host as that knows it.
func newClient(at endpoint, tr *http.Transport) (cli *client.Client, host string, err error) {
	host, dial, err := at.dialled()
	if err != nil {
		return nil, "", err
	}
	cli, err = client.NewClientWithOpts(
		client.WithHTTPClient(&http.Client{Transport: tr, CheckRedirect: client.CheckRedirect}),
		client.WithHost(host),
		dial,
		client.WithVersionFromEnv(),
		client.WithAPIVersionNegotiation(),
	)
	return cli, host, err
}

// Close closes the idle connections. Calls under way are not disturbed.
func (e *Engine) Close() error { return e.cli.Close() }

func newTransport(at endpoint, env environment) (*http.Transport, error) {
	tlsConfig, err := tlsFromEnvironment(at, env)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		TLSClientConfig:     tlsConfig,
		MaxIdleConns:        keptConnections,
		MaxIdleConnsPerHost: keptConnections,
		IdleConnTimeout:     30 * time.Second,
	}, nil
}

// tlsFromEnvironment reads the client's certificates where DOCKER_CERT_PATH or
// DOCKER_TLS_VERIFY ask for TLS. A local socket and ssh have none.
func tlsFromEnvironment(at endpoint, env environment) (*tls.Config, error) {
	dir, verify := env.getenv("DOCKER_CERT_PATH"), env.getenv("DOCKER_TLS_VERIFY") != ""
	if at.local() || at.ssh() || (dir == "" && !verify) {
		return nil, nil
	}
	if dir == "" {
		dir = env.configDir()
	}
	config, err := tlsconfig.Client(tlsconfig.Options{
		CAFile:             filepath.Join(dir, "ca.pem"),
		CertFile:           filepath.Join(dir, "cert.pem"),
		KeyFile:            filepath.Join(dir, "key.pem"),
		InsecureSkipVerify: !verify,
	})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the certificates for the Docker engine can't be read").
			WithHint("DOCKER_CERT_PATH must name a directory with ca.pem, cert.pem and key.pem")
	}
	return config, nil
}

func baseURL(host string, tr *http.Transport) *url.URL {
	u, err := client.ParseHostURL(host)
	if err != nil { // the client parsed it before
		return &url.URL{}
	}
	u.Scheme = "http"
	if tr.TLSClientConfig != nil {
		u.Scheme = "https"
	}
	return u
}
