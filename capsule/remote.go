package capsule

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net/textproto"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// Remote is where the agent is that does the work of a unit of KindRemote, and what it is
// asked for (agent HTTP contract).
type Remote struct {
	URL       string // what the endpoints lie below
	PlainHTTP bool   // http:// also to another machine
	Stream    bool   // ask for events, not for one answer
	CAFile    string // of the directory; "" is none
	CA        []byte // its certificates, in PEM, which are trusted beside the system's
	Auth      *Auth  // nil: nobody is told who asks

	TaskType                 string
	Mode, RiskTier, DomainID string // "" is not said
}

// Auth is how the agent learns who asks: the header has the secret's value, after the scheme
// and a space where there is a scheme.
type Auth struct {
	Header, Scheme string
	Secret         string // its name
}

// remoteYAML is `remote` of agent.yaml as it stands there.
type remoteYAML struct {
	URL       string    `json:"url"`
	TaskType  string    `json:"task_type"`
	Mode      string    `json:"mode"`
	RiskTier  string    `json:"risk_tier"`
	DomainID  string    `json:"domain_id"`
	Stream    bool      `json:"stream"`
	PlainHTTP bool      `json:"plain_http"`
	CAFile    string    `json:"ca_file"`
	Auth      *authYAML `json:"auth"`
}

type authYAML struct {
	Header string  `json:"header"`
	Scheme *string `json:"scheme"`
	Secret string  `json:"secret"`
}

const (
	authorization = "Authorization"
	plainScheme   = "http://"
)

// remote takes over what has the right form; name is the unit's.
func (f *remoteYAML) remote(name string) *Remote {
	if f == nil {
		return nil
	}
	r := &Remote{
		URL: f.URL, PlainHTTP: f.PlainHTTP, Stream: f.Stream, CAFile: f.CAFile, Auth: f.Auth.auth(),
		TaskType: f.TaskType, Mode: f.Mode, RiskTier: f.RiskTier, DomainID: f.DomainID,
	}
	if r.TaskType == "" {
		r.TaskType = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	}
	return r
}

func (f *authYAML) auth() *Auth {
	if f == nil {
		return nil
	}
	a := &Auth{Header: textproto.CanonicalMIMEHeaderKey(f.Header), Secret: f.Secret}
	if a.Header == "" {
		a.Header = authorization
	}
	switch {
	case f.Scheme != nil:
		a.Scheme = *f.Scheme
	case a.Header == authorization:
		a.Scheme = "Bearer"
	}
	return a
}

// readRemote reads what belongs to a unit of KindRemote beside its agent.yaml.
func readRemote(d *Directory, c *Capsule) {
	l := d.loader
	l.refuse("an agent elsewhere has none", "remove it: nothing is built here, and nothing is called from here",
		"Dockerfile", "Dockerfile.dockerignore", ".dockerignore", toolsFile, "run.py")
	if c.Contract = l.readContract(); c.Contract != nil {
		for _, place := range append(c.Contract.Input.FilePlaces(), c.Contract.Output.FilePlaces()...) {
			l.findings = append(l.findings, fault.Finding{
				File: contract.FileName, Pointer: place, Message: "it is a file, and the agent HTTP contract carries none",
				Hint: "give the content itself, or an address where the agent can get it",
			})
		}
	}
	if c.Remote != nil && c.Remote.CAFile != "" {
		c.Remote.CA = l.readCertificates(c.Remote.CAFile)
	}
}

// readCertificates reads a file of at least one certificate in PEM.
func (l *loader) readCertificates(name string) []byte {
	if !fs.ValidPath(name) {
		return nil // and said
	}
	raw, err := l.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		l.report(name, 0, "it is missing, and remote.ca_file names it", "put the certificates there, in PEM")
		return nil
	}
	if !l.readable(name, err) {
		return nil
	}
	if !x509.NewCertPool().AppendCertsFromPEM(raw) {
		l.report(name, 0, "it holds no certificate in PEM", "a certificate begins with -----BEGIN CERTIFICATE-----")
		return nil
	}
	return raw
}
