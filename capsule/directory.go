package capsule

import (
	"crypto/x509"
	_ "embed"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// Directory is a unit's directory that is being read. It gathers what is wrong there.
type Directory struct {
	source   source
	yaml     *strictyaml.Document // agent.yaml; nil: it can't be read
	findings []fault.Finding
}

// Report adds a problem: the unit can't be run until it is mended, unless it is a warning.
func (d *Directory) Report(finding fault.Finding) { d.findings = append(d.findings, finding) }

// Contract reads schema.json. It returns nil where that isn't in order, which is reported.
func (d *Directory) Contract() *contract.Contract {
	raw, ok := d.ReadFile("schema.json",
		`add one: {"input": {"type": "object"}, "output": {"type": "object"}} takes and gives anything`)
	if !ok {
		return nil
	}
	c, findings := contract.Parse(raw)
	d.findings = append(d.findings, findings...)
	return c
}

func (d *Directory) report(file string, line int, message, hint string) {
	d.findings = append(d.findings, fault.Finding{File: file, Line: line, Message: message, Hint: hint})
}

func (d *Directory) warn(file, pointer, message, hint string) {
	finding := fault.Finding{File: file, Pointer: pointer, Message: message, Hint: hint, Warning: true}
	if file == agentFile && d.yaml != nil {
		finding.Line = d.yaml.LineAt(pointer)
	}
	d.findings = append(d.findings, finding)
}

// ReadFile reads a file that has to be there, of at most 256 KiB. What is wrong is reported,
// with the hint where the file is missing.
func (d *Directory) ReadFile(name, missing string) (raw []byte, ok bool) {
	raw, err := d.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		d.report(name, 0, "it is missing", missing)
		return nil, false
	}
	return raw, d.readable(name, err)
}

// has reports whether there is anything under a name.
func (d *Directory) has(name string) bool {
	return !errors.Is(d.source.check(name), fs.ErrNotExist)
}

// readOptional reads a file that may be missing; what else is wrong becomes a finding.
func (d *Directory) readOptional(name string) (raw []byte, ok bool) {
	raw, err := d.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	return raw, d.readable(name, err)
}

func (d *Directory) readable(name string, err error) bool {
	var p *problem
	if errors.As(err, &p) {
		d.report(name, 0, p.message, p.hint)
	}
	return err == nil
}

// Refuse reports files that have no meaning in such a directory.
func (d *Directory) Refuse(message, hint string, names ...string) {
	for _, name := range names {
		if _, err := d.source.read(name, maxFileBytes); !errors.Is(err, fs.ErrNotExist) {
			d.report(name, 0, message, hint)
		}
	}
}

// checkOrigin finds out what the agent's image is: that of a Dockerfile, or one that there is.
func (d *Directory) checkOrigin(c *Capsule) {
	image, builds := c.Wrapped.Image, d.has(dockerfileName)
	switch {
	case image != "" && builds:
		d.report(dockerfileName, 0, "agent.yaml names an image, and here is a Dockerfile for another",
			"remove one of the two")
	case image != "":
		c.dockerfile = parseDockerfile([]byte("FROM " + image))
	case builds:
		c.dockerfile = d.checkDockerfile()
	default:
		d.report(dockerfileName, 0, "it is missing, and agent.yaml names no image",
			"add a Dockerfile that installs the agent, or image: REFERENCE to agent.yaml")
	}
}

// readCertificates reads a file of at least one certificate in PEM.
func (d *Directory) readCertificates(name string) []byte {
	if !fs.ValidPath(name) {
		return nil // and said
	}
	raw, err := d.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		d.report(name, 0, "it is missing, and remote.ca_file names it", "put the certificates there, in PEM")
		return nil
	}
	if !d.readable(name, err) {
		return nil
	}
	if !x509.NewCertPool().AppendCertsFromPEM(raw) {
		d.report(name, 0, "it holds no certificate in PEM", "a certificate begins with -----BEGIN CERTIFICATE-----")
		return nil
	}
	return raw
}

// checkServers checks mcp.json, which may be missing: the library in the sandbox reads it.
func (d *Directory) checkServers(tools []Tool) {
	raw, ok := d.readOptional(mcpFile)
	if !ok {
		if d.source.checkParents(mcpServersDir+"/") == nil && !d.has(mcpFile) {
			d.Report(fault.Finding{
				File: mcpServersDir, Warning: true,
				Message: "there is no mcp.json, so that nothing starts these servers",
				Hint: `add mcp.json: {"mcpServers": {"NAME": {"command": "python3", "args": ["` + mcpServersDir +
					`/NAME.py"]}}}`,
			})
		}
		return
	}
	d.findings = append(d.findings, checkMCP(raw, tools, d.has)...)
}

// Tools reads tools.yaml, which may be missing: what the unit may call.
func (d *Directory) Tools() []Tool {
	raw, ok := d.readOptional(toolsFile)
	if !ok {
		return nil
	}
	doc, findings := strictyaml.Parse(toolsFile, raw)
	if doc == nil {
		d.findings = append(d.findings, findings...)
		return nil
	}
	tools, more := toolsOf(doc)
	d.findings = append(d.findings, byLine(append(findings, more...))...)
	return tools
}

// readAgent reads agent.yaml into the capsule, and returns the kind that it names.
func (d *Directory) readAgent(c *Capsule) Kind {
	c.Kind = KindCapsule
	raw, ok := d.ReadFile(agentFile, "aod init shows one; a single line is enough: name: "+nameOr(filepath.Base(c.Dir)))
	if !ok {
		return kinds[c.Kind]
	}
	doc, findings := strictyaml.Parse(agentFile, raw)
	if doc == nil {
		d.findings = append(d.findings, findings...)
		return kinds[c.Kind]
	}
	object, ok := doc.Value.(map[string]any)
	if !ok && doc.Value != nil {
		findings = append(findings,
			fault.Finding{
				File: agentFile, Line: doc.LineAt(""), Message: "it must hold keys with values",
				Hint: "write it as key: value",
			})
	}
	if object == nil {
		object = map[string]any{}
	}
	d.yaml = doc
	kind, problems := fillAgent(c, object)
	findings = append(findings, placed(problems, doc, "")...)
	d.findings = append(d.findings, byLine(findings)...)
	return kind
}
