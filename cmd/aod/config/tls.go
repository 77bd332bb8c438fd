package config

import "gopkg.in/yaml.v3"

// Values of Config.TLS.
const (
	TLSOff   = "off"
	TLSSelf  = "self"  // the server makes its certificate
	TLSFiles = "files" // it is in the files of Config.Certificate
)

// CertificateConfig holds the files of the server's certificate.
type CertificateConfig struct {
	Cert string // in PEM, with those that sign it after it
	Key  string
}

const tlsKey = "tls"

// settings is the table of the block tls. It can be set in the file only.
func (c *CertificateConfig) settings() []setting {
	return []setting{
		{
			"cert", pathOf(&c.Cert), "",
			"a file with the certificate in PEM, and after it those that sign it; read again when it changes",
		},
		{"key", pathOf(&c.Key), "", "the file with its key in PEM, which only its owner may read; read again likewise"},
	}
}

// tls returns a reader for a word, or for the block of the files.
func (f *file) tls(word reader) reader {
	block := f.block(tlsKey, f.config.Certificate.settings())
	return func(line int, n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			word(line, n)
			return
		}
		block(line, n)
		f.config.TLS, f.config.sources[tlsKey] = TLSFiles, f.at(line)
	}
}

// checkTLS wants both files where there is one.
func (l *loader) checkTLS() {
	c := l.config.Certificate
	if l.config.TLS == TLSFiles && (c.Cert == "" || c.Key == "") {
		l.report(l.config.sources[tlsKey], "tls: a certificate has two files",
			"write cert: FILE and key: FILE, or tls: self")
	}
}

// IsPublic reports whether other machines can reach an address to listen on.
func IsPublic(address string) bool { return !isLoopback(address) }

// IsHost reports whether a text is a host's name or IP address.
func IsHost(text string) bool {
	_, err := checkHost(text)
	return err == nil
}
