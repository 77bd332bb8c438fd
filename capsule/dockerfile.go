package capsule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// baseImage is the image that capsules stand on unless they bring their own.
const baseImage = "aod/base"

const dockerfileName = "Dockerfile"

// dockerfile is what AOD wants to know of a Dockerfile. The builder alone decides
// whether the rest is right.
type dockerfile struct {
	bases  []string // what the FROM lines name, in order
	starts bool     // the last stage sets CMD or ENTRYPOINT
	// copiedTo is where the whole context lies in the image as it was sent; see Capsule.CopiedTo.
	copiedTo string
	fetches  string          // see Capsule.Fetches
	begins   []string        // see Capsule.Bases
	stages   map[string]bool // by a stage's name in lower case: it sets CMD or ENTRYPOINT
	images   []string        // see Capsule.Images
	plain    bool            // see isPlain, as runs
	runs     string
}

var (
	escapeDirective = lazyregexp.New("(?i)^#\\s*escape\\s*=\\s*([\\\\`])\\s*$")
	directive       = lazyregexp.New(`^#\s*[A-Za-z]+\s*=`)
	heredoc         = lazyregexp.New(`<<-?["']?([A-Za-z_][A-Za-z0-9_]*)["']?`)
)

// parseDockerfile reads the instructions that decide how the image starts.
func parseDockerfile(raw []byte) dockerfile {
	var d dockerfile
	stage := ""
	all := instructions(string(raw))
	d.copiedTo, d.fetches = copiedTo(all), fetches(string(raw))
	bases, pulls := begins(string(raw))
	d.begins, d.fetches = bases, cmp.Or(d.fetches, pulls)
	d.stages = map[string]bool{}
	for _, fields := range all {
		switch strings.ToUpper(fields[0]) {
		case "FROM":
			image, name := fromLine(fields[1:])
			d.bases = append(d.bases, image)
			d.starts = d.stages[strings.ToLower(image)]
			stage = strings.ToLower(name)
		case "CMD", "ENTRYPOINT":
			d.starts = true
		}
		if stage != "" {
			d.stages[stage] = d.starts
		}
	}
	d.images = imagesIn(string(raw), all, d.stages)
	d.plain, d.runs = isPlain(all)
	return d
}

// fromLine returns the image and the stage's name of "[--platform=p] image [AS name]".
func fromLine(args []string) (image, stage string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		args = args[1:]
	}
	if len(args) > 0 {
		image = args[0]
	}
	if len(args) == 3 && strings.EqualFold(args[1], "as") {
		stage = args[2]
	}
	return image, stage
}

// instructions splits a Dockerfile into its instructions and those into words.
// Continued lines are joined; comments and the bodies of here-documents are left out.
func instructions(text string) [][]string {
	var all [][]string
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	escape := escapeOf(lines)
	for len(lines) > 0 {
		var joined string
		joined, lines = joinLine(lines, escape)
		fields := strings.Fields(joined)
		if len(fields) == 0 {
			continue
		}
		all = append(all, fields)
		lines = skipHeredocs(fields[0], joined, lines)
	}
	return all
}

// escapeOf returns the character that continues a line, which a directive at the
// file's top may set.
func escapeOf(lines []string) string {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if m := escapeDirective().FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if !directive().MatchString(line) {
			break
		}
	}
	return `\`
}

// joinLine takes one instruction, with the lines that continue it, off the front.
func joinLine(lines []string, escape string) (joined string, rest []string) {
	var b strings.Builder
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || (line == "" && b.Len() > 0) {
			if b.Len() == 0 {
				return "", lines[i+1:]
			}
			continue
		}
		before, continued := strings.CutSuffix(line, escape)
		b.WriteString(before + " ")
		if !continued {
			return b.String(), lines[i+1:]
		}
	}
	return b.String(), nil
}

// skipHeredocs drops the bodies of the here-documents that an instruction opens.
func skipHeredocs(instruction, line string, lines []string) []string {
	switch strings.ToUpper(instruction) {
	case "RUN", "COPY", "ADD":
	default:
		return lines
	}
	for _, m := range heredoc().FindAllStringSubmatch(line, -1) {
		for i, l := range lines {
			if strings.TrimLeft(strings.TrimRight(l, "\r"), "\t") == m[1] {
				lines = lines[i+1:]
				break
			}
		}
	}
	return lines
}

// UsesBase reports whether a FROM line of the Dockerfile names the image aod/base, in
// whatever tag or digest. A FROM whose image is an ARG is not resolved.
func (c *Capsule) UsesBase() bool {
	return slices.ContainsFunc(c.dockerfile.bases, isBase)
}

func isBase(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	return image == baseImage || strings.HasPrefix(image, baseImage+":")
}

// checkDockerfile reads the Dockerfile and reports what is wrong with it.
func (d *Directory) checkDockerfile() dockerfile {
	raw, ok := d.ReadFile(dockerfileName, "add one; FROM "+baseImage+" and COPY . /capsule are enough")
	if !ok {
		return dockerfile{starts: true} // one missing file is one finding, not two
	}
	file := parseDockerfile(raw)
	switch {
	case len(instructions(string(raw))) == 0:
		d.report(dockerfileName, 0, "it is empty", "FROM "+baseImage+" and COPY . /capsule are enough")
	case len(file.bases) == 0:
		d.report(dockerfileName, 1, "it has no FROM", "begin with FROM "+baseImage)
	}
	return file
}

var (
	callsBridge    = lazyregexp.New(`(?m)^[^#\n]*\baod\.run\s*\(|^\s*from\s+aod\s+import\s+[^#\n]*\brun\b`)
	definesExecute = lazyregexp.New(`(?m)^(async[ \t]+)?def[ \t]+execute[ \t]*\(|^execute[ \t]*=|^from[ \t]+\S+[ ` +
		`\t]+import[ \t]+[^#\n]*\bexecute\b`)
)

// checkProgram checks the bridge and the logic behind it, as far as they are asked for:
// a Dockerfile that says itself what to start may start anything, in any language.
func (d *Directory) checkProgram(c *Capsule, file dockerfile) {
	const bridge, logic = "run.py", "src/main.py"
	var raw []byte
	var ok bool
	if file.starts {
		raw, ok = d.readOptional(bridge)
	} else {
		raw, ok = d.ReadFile(bridge, "add it (two lines: import aod, aod.run()), or set CMD in the Dockerfile")
	}
	if !ok || !callsBridge().Match(raw) {
		return
	}
	if !d.has(logic) {
		if task, ok := d.readOptional(taskFile); ok {
			d.checkWithoutCode(c, task)
			return
		}
	}
	raw, ok = d.ReadFile(logic, "add it with a function: def execute(payload: dict) -> dict; or "+taskFile+
		", for an agent without code")
	if ok && !definesExecute().Match(raw) {
		d.report(logic, 0, "it defines no function execute, which "+bridge+" calls",
			"add: def execute(payload: dict) -> dict")
	}
}

// Bases are the images that a build may begin upon, with the instructions that they bring
// along: whatever any builder could take for a FROM, as far as its name is clear. Names of
// stages are among them.
func (c *Capsule) Bases() []string { return c.dockerfile.begins }

// Images are the images that the build names, which an engine must have or pull: those of FROM, COPY --from and
// RUN --mount, or that of a wrapped agent without a Dockerfile. Names of stages aren't among them, nor what depends on
// something that the Dockerfile doesn't say. There are 32 at most.
func (c *Capsule) Images() []string {
	if c.Wrapped != nil && c.Wrapped.Image != "" {
		return []string{c.Wrapped.Image}
	}
	return c.dockerfile.images
}

// IsStage reports whether a FROM of the Dockerfile gives a stage this name.
func (c *Capsule) IsStage(name string) bool {
	_, is := c.dockerfile.stages[strings.ToLower(name)]
	return is
}

// CopiedTo returns the directory of the image that the whole build context is copied to as
// the last thing that the Dockerfile does with files, and with nothing done to the copies. ok
// is false for a Dockerfile that does anything else with the context.
func (c *Capsule) CopiedTo() (dir string, ok bool) {
	return c.dockerfile.copiedTo, c.dockerfile.copiedTo != ""
}

// Fetches says what the Dockerfile makes the engine fetch by itself, in the engine's own
// network, whatever network the build has: `ADD` of an address, `FROM`, `COPY --from` or `RUN
// --mount` of an image whose registry is an address, or a `# syntax` that another program interprets.
// It is "" if the Dockerfile surely does no such thing.
func (c *Capsule) Fetches() string { return c.dockerfile.fetches }
