package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/issuer"
)

// signInTime is how long somebody has to sign in.
const signInTime = 10 * time.Minute

// ByBrowser has somebody sign in by a browser of this machine, which comes back to a port of it; 0 takes a free one.
// show is told the address where the browser begins.
func ByBrowser(ctx context.Context, at api.Login, port int, show func(address string)) (issuer.Tokens, error) {
	door, err := issuer.FindDoor(ctx, at)
	if err != nil {
		return issuer.Tokens{}, err
	}
	defer door.Close()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return issuer.Tokens{}, fault.Wrap(fault.Unavailable, err, "the browser can't come back to port %d", port).
			WithHint("--port names another one; --device needs none")
	}
	_, back, _ := net.SplitHostPort(listener.Addr().String())
	visit := issuer.VisitBy(issuer.NewSecret(), "http://localhost:"+back+"/callback")
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	show(door.Address(visit))
	code, err := awaitCode(ctx, listener, visit.State())
	if err != nil {
		return issuer.Tokens{}, err
	}
	return door.Redeem(ctx, code, visit)
}

// ByDevice has somebody sign in by a browser elsewhere. show is told where to give which code.
func ByDevice(ctx context.Context, at api.Login, show func(address, code string)) (issuer.Tokens, error) {
	door, err := issuer.FindDoor(ctx, at)
	if err != nil {
		return issuer.Tokens{}, err
	}
	defer door.Close()
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	return door.Device(ctx, show)
}

// came is what a browser came back with.
type came struct {
	code string
	err  error
}

// awaitCode serves at a listener until a browser comes back with a state.
func awaitCode(ctx context.Context, listener net.Listener, state string) (string, error) {
	back := make(chan came, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This isn't the sign-in that is awaited.", http.StatusBadRequest)
			return
		}
		one := came{code: query.Get("code")}
		if one.code == "" {
			one.err = fault.New(fault.Unauthorized, "the issuer has let nobody in: %s",
				fault.Quote(query.Get("error"))).
				WithHint("sign in again; invalid_scope is a matter of the operator's setting oidc.login_scopes")
		}
		say := "You are signed in. Close this page, and go on in the terminal.\n"
		if one.err != nil {
			say = "Nobody is signed in; the terminal says why.\n"
		}
		_, _ = io.WriteString(w, say)
		select {
		case back <- one:
		default: // it came twice
		}
	})
	server := &http.Server{
		Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(end) // the browser has its answer, or has had its time
		_ = server.Close()
		<-served //nolint:errcheck // it was closed
	}()
	select {
	case one := <-back:
		return one.code, one.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", fault.New(fault.Deadline, "nobody has signed in within %s", signInTime).WithHint("try again")
		}
		return "", ctx.Err()
	}
}
