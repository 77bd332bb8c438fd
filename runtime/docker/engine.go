package docker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"
	"golang.org/x/sync/errgroup"

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
		withPlainSpans(),
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

// Probe asks the engine about itself. It makes two requests at once, for each of which the engine
// starts programs to ask for their versions.
func (e *Engine) Probe(ctx context.Context) (runtime.EngineInfo, error) {
	var info system.Info
	var version types.Version
	var asking errgroup.Group
	asking.Go(func() (err error) { info, err = e.cli.Info(ctx); return err })
	asking.Go(func() (err error) { version, err = e.cli.ServerVersion(ctx); return err })
	if err := asking.Wait(); err != nil {
		return runtime.EngineInfo{}, e.faultOf(ctx, call{"describe", "itself", ""}, err)
	}
	security, profile := confinement(info.SecurityOptions)
	e.noSeccomp.Store(!slices.Contains(security, "seccomp"))
	rootless := slices.Contains(security, "rootless")
	return runtime.EngineInfo{
		Endpoint:       e.endpoint.String(),
		Local:          !e.Remote(),
		Name:           engineName(version),
		Version:        version.Version,
		APIVersion:     e.cli.ClientVersion(),
		CgroupVersion:  info.CgroupVersion,
		CgroupDriver:   info.CgroupDriver,
		StorageDriver:  info.Driver,
		OS:             version.Os,
		Arch:           version.Arch, // info has the kernel's word for it
		CPUs:           info.NCPU,
		MemoryBytes:    info.MemTotal,
		Runtimes:       slices.Sorted(maps.Keys(info.Runtimes)),
		RootDir:        info.DockerRootDir,
		Security:       security,
		SeccompProfile: profile,
		SwapLimit:      info.SwapLimit,
		Rootless:       rootless,
		MapsUsers:      rootless || slices.Contains(security, "userns"),
		Node:           info.Swarm.NodeID,
	}, nil
}

// Nodes lists the nodes of the Swarm that the engine manages. The error is an Unsupported fault of an engine that is no
// manager, and an Unavailable one while the managers have no leader.
func (e *Engine) Nodes(ctx context.Context) ([]runtime.Node, error) {
	listed, err := e.cli.NodeList(ctx, swarm.NodeListOptions{})
	if err == nil {
		nodes := make([]runtime.Node, 0, len(listed))
		for _, n := range listed {
			nodes = append(nodes, nodeOf(n))
		}
		return nodes, nil
	}
	info, failed := e.cli.Info(ctx)
	switch {
	case failed != nil:
		return nil, e.faultOf(ctx, call{"list", "nodes", ""}, failed)
	case !info.Swarm.ControlAvailable:
		return nil, fault.Wrap(fault.Unsupported, err, "the engine is no manager of a Swarm, which knows its nodes").
			WithHint("run the server on a manager (`docker swarm init` makes one), or leave the setting swarm out")
	}
	return nil, fault.Wrap(fault.Unavailable, err, "the Swarm doesn't tell its nodes").
		WithHint("has it a leader? `docker node ls`")
}

func nodeOf(n swarm.Node) runtime.Node {
	return runtime.Node{
		ID: n.ID, Hostname: n.Description.Hostname, Ready: n.Status.State == swarm.NodeStateReady,
		Availability: string(n.Spec.Availability), Labels: n.Spec.Labels,
	}
}

// engineName reads what an engine is: the first of its components says so. Docker calls its
// own "Engine", Podman "Podman Engine".
func engineName(version types.Version) string {
	if len(version.Components) == 0 {
		return "Docker"
	}
	name := strings.TrimSpace(strings.TrimSuffix(version.Components[0].Name, "Engine"))
	return cmp.Or(name, "Docker")
}

// confinement reads options such as "name=seccomp,profile=default": the names, sorted, and the
// profile of seccomp. An option is a name alone where the engine is old.
func confinement(options []string) (names []string, profile string) {
	for _, option := range options {
		fields := map[string]string{"name": option}
		for pair := range strings.SplitSeq(option, ",") {
			if key, value, ok := strings.Cut(pair, "="); ok {
				fields[key] = value
			}
		}
		names = append(names, fields["name"])
		if fields["name"] == "seccomp" {
			profile = fields["profile"]
		}
	}
	slices.Sort(names)
	return names, profile
}

// faultOf turns an error of the Docker client into a *fault.Error. An error that
// came with the end of ctx stays the context's.
func (e *Engine) faultOf(ctx context.Context, c call, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), runtime.ErrUnreachable): // see runtime.Silent
		return fmt.Errorf("%s %s: %w", c.verb, c, context.Cause(ctx))
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w", c.verb, c, ctx.Err())
	case errors.As(err, &known):
		return err
	case cerrdefs.IsNotFound(err):
		return fault.Wrap(fault.NotFound, err, "the engine has no %s", c)
	case isConnection(err):
		return e.unavailable(err)
	}
	text := strings.ToLower(err.Error())
	for _, r := range refusals {
		if strings.Contains(text, r.text) {
			return fault.Wrap(r.kind, err, "%s", r.msg).WithHint("%s", r.hint)
		}
	}
	if refused := refusedLimit(text, err); refused != nil {
		return refused
	}
	return fault.Wrap(fault.Internal, err, "the engine could not %s %s", c.verb, c)
}

// unavailable says why the engine doesn't answer and what to do about it.
func (e *Engine) unavailable(err error) error {
	at := e.endpoint
	err = fmt.Errorf("%w: %w", runtime.ErrUnreachable, err)
	if at.local() && (errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied")) {
		return fault.Wrap(fault.Unavailable, err, "no permission to use the Docker engine at %s", at).
			WithHint("add yourself to the docker group (`sudo usermod -aG docker $USER`, then log in again), or use " +
				"rootless Docker")
	}
	if path := at.socket(); at.local() && path != "" {
		if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "there is no Docker engine at %s: the socket does not exist", at).
				WithHint("%s", at.hint())
		}
	}
	return fault.Wrap(fault.Unavailable, err, "the Docker engine at %s does not answer", at).WithHint("%s", at.hint())
}

// hostMounts returns the mounts with their sources as the engine's host knows them.
func (e *Engine) hostMounts(ctx context.Context, mounts []runtime.Mount) ([]runtime.Mount, error) {
	if len(mounts) == 0 {
		return nil, nil
	}
	paths, err := e.hostPaths(ctx)
	if err != nil || paths.same {
		return mounts, err
	}
	mounts = slices.Clone(mounts)
	for i := range mounts {
		if mounts[i].Source, err = paths.translate(mounts[i].Source); err != nil {
			return nil, err
		}
	}
	return mounts, nil
}

// hostPaths finds out once; several that ask at the same time find the same.
func (e *Engine) hostPaths(ctx context.Context) (*hostPaths, error) {
	if known := e.paths.Load(); known != nil {
		return known, nil
	}
	paths, err := e.findHostPaths(ctx, e.self())
	if err != nil {
		return nil, err
	}
	e.paths.Store(paths)
	return paths, nil
}

// findHostPaths asks the engine for the container that we run in. Of one that it doesn't
// know, another engine's, it can't tell anything, and we go on as if there were none.
func (e *Engine) findHostPaths(ctx context.Context, me self) (*hostPaths, error) {
	for _, id := range me.ids {
		found, err := e.cli.ContainerInspect(ctx, id)
		switch {
		case cerrdefs.IsNotFound(err):
			continue
		case err != nil:
			return nil, e.faultOf(ctx, onContainer("inspect", id), err)
		}
		if me.is(id, found) {
			return pathsOf(found, me.points), nil
		}
	}
	return &hostPaths{same: true}, nil
}
