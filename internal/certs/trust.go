package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
)

// Trust says by what a client knows its server. The zero Trust goes by the system's roots.
type Trust struct {
	// CA is a file of certificates in PEM that are the roots in the place of the system's; "": none.
	CA string
	// Pins returns the pins of which the server's key has to have one. Then roots, names and dates are no matter. It is
	// asked at each connection; nil: the certificate is held against the roots.
	Pins func() ([]Pin, error)
}

// Config returns the settings of connections to the server. The error is an Input fault about CA.
func (t Trust) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.Pins != nil {
		config.InsecureSkipVerify = true // VerifyConnection goes by the pin
		config.VerifyConnection = t.pinned
		return config, nil
	}
	if t.CA == "" {
		return config, nil
	}
	const advice = "--ca and AOD_CA name a file of certificates in PEM"
	raw, err := readPEM("certificate", t.CA, false)
	if err != nil {
		return nil, fault.Public(err).WithHint(advice)
	}
	if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(raw) {
		return nil, fault.New(fault.Input, "there is no certificate in %q", t.CA).WithHint(advice)
	}
	return config, nil
}

// pinned refuses a server whose key has none of the pins.
func (t Trust) pinned(state tls.ConnectionState) error {
	pins, err := t.Pins()
	if err != nil {
		return err
	}
	if len(state.PeerCertificates) > 0 && slices.Contains(pins, PinOf(state.PeerCertificates[0])) {
		return nil
	}
	return fault.New(fault.Forbidden, "the server's key isn't the one that the pin names: nothing was sent to it").
		WithHint("if the server has got another key, take the pin that aod serve prints at its start, on its own " +
			"machine; else somebody may stand between")
}
