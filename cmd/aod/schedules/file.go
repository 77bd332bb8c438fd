package schedules

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
	"github.com/agent-on-demand/aod/schemas"
)

// maxScheduleFile bounds a file of schedules in bytes.
const maxScheduleFile = 1 << 20

// schedulesFile is a file that says what schedules there are.
type schedulesFile struct {
	doc *strictyaml.Document
	dir string // which its paths are relative to

	schedules []wantedSchedule // by name
	findings  []fault.Finding
}

// wantedSchedule is a schedule of a file.
type wantedSchedule struct {
	name  string
	spec  api.ScheduleSpec
	files []client.InputFile
}

// openSchedules reads a file of schedules; "-" is stdin, whose paths are relative to the working
// directory. The error is an Input fault with every finding.
func openSchedules(path string, stdin io.Reader) (*schedulesFile, error) {
	name, in := path, stdin
	if path == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, fault.Wrap(fault.Input, err, "the file %q can't be opened", path)
		}
		defer func() { _ = file.Close() }() // read only
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxScheduleFile+1))
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "%s can't be read", name)
	}
	if len(raw) > maxScheduleFile {
		return nil, fault.New(fault.Input, "%s has more than %d bytes", name, maxScheduleFile).
			WithHint("write several files, without --prune")
	}
	return parseSchedules(name, filepath.Dir(path), raw)
}

func parseSchedules(name, dir string, raw []byte) (*schedulesFile, error) {
	f := &schedulesFile{dir: dir}
	f.doc, f.findings = strictyaml.Parse(name, raw)
	if len(f.findings) == 0 {
		f.read()
	}
	return f, f.err()
}

// err is the fault of what was found, nil for nothing.
func (f *schedulesFile) err() error {
	if len(f.findings) == 0 {
		return nil
	}
	slices.SortStableFunc(f.findings, func(a, b fault.Finding) int { return a.Line - b.Line })
	return fault.New(fault.Input, "the schedules can't be used").WithFindings(f.findings)
}

func (f *schedulesFile) report(pointer, hint, format string, args ...any) {
	f.findings = append(f.findings, fault.Finding{
		File: f.doc.File, Line: max(f.doc.LineAt(pointer), 1), Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (f *schedulesFile) read() {
	if f.doc.Value == nil {
		return // an empty file has no schedules
	}
	all, ok := f.doc.Value.(map[string]any)
	if !ok {
		f.report("", "write NAME: {unit: …, cron: …}", "it holds no names with schedules")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.check(name, all[name])
	}
	f.validate(all)
	if len(f.findings) > 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.schedules = append(f.schedules, f.schedule(name, all[name].(map[string]any))) // its schema says so
	}
}

// check finds what the schema would say less well, and removes keys that nobody knows.
func (f *schedulesFile) check(name string, value any) {
	pointer := "/" + strictjson.Escape(name)
	if err := api.CheckScheduleName(name); err != nil {
		f.report(pointer, fault.Public(err).Hint, "%s", fault.Public(err).Msg)
	}
	schedule, ok := value.(map[string]any)
	if !ok {
		return
	}
	known := scheduleKeys()
	for _, key := range slices.Sorted(maps.Keys(schedule)) {
		if slices.Contains(known, key) {
			continue
		}
		hint := fault.Suggest(key, known, "there are "+strings.Join(known, ", "))
		f.report(pointer+"/"+strictjson.Escape(key), hint, "%s: the key %s is not known", name, fault.Quote(key))
		delete(schedule, key)
	}
	var times []string
	for _, key := range []string{"cron", "every", "at"} {
		if _, given := schedule[key]; given {
			times = append(times, key)
		}
	}
	switch len(times) {
	case 0:
		f.report(pointer, "say when by cron, every or at", "%s: nothing says when it is due", name)
	case 2, 3:
		f.report(pointer+"/"+times[1], "keep one of them", "%s: %s both say when it is due", name,
			strings.Join(times[:2], " and "))
	}
}

func (f *schedulesFile) validate(all map[string]any) {
	payload, err := contract.NewPayload(all)
	if err != nil {
		f.report("", "", "it can't be read as JSON: %s", fault.Public(err).Msg)
		return
	}
	for _, found := range scheduleShape().Validate(payload) {
		f.report(found.Pointer, found.Hint, "%s: %s", strings.Join(strictjson.Path(found.Pointer), "."), found.Message)
	}
}

// theSchema is the schema of a file of schedules, without what check says better.
var theSchema = sync.OnceValue(func() (schema struct {
	Type string         `json:"type"`
	Most int            `json:"maxProperties"`
	Each map[string]any `json:"additionalProperties"`
},
) {
	if err := json.Unmarshal(schemas.Schedules(), &schema); err != nil {
		panic("aod: " + err.Error()) // it is embedded
	}
	delete(schema.Each, "oneOf")
	return schema
})

var scheduleShape = sync.OnceValue(func() *contract.Schema {
	raw, err := json.Marshal(theSchema())
	schema, findings := contract.Compile(raw)
	if err != nil || schema == nil {
		panic(fmt.Sprintf("aod: the schema of schedules: %v %v", err, findings)) // it is embedded
	}
	return schema
})

func scheduleKeys() []string {
	properties, _ := theSchema().Each["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// schedule makes a schedule of values that satisfy the schema.
func (f *schedulesFile) schedule(name string, values map[string]any) wantedSchedule {
	pointer := "/" + strictjson.Escape(name)
	wanted := wantedSchedule{name: name, files: f.inputFiles(name, values["files"])}
	delete(values, "files")
	raw, err := json.Marshal(values)
	if err = errors.Join(err, json.Unmarshal(raw, &wanted.spec)); err != nil {
		f.report(pointer, "", "%s: it can't be read", name)
	}
	return wanted
}

// inputFiles are the files of a schedule, in the order of their fields.
func (f *schedulesFile) inputFiles(name string, value any) (files []client.InputFile) {
	fields, _ := value.(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		paths, several := fields[field].([]any)
		if !several {
			paths = []any{fields[field]}
		}
		for _, path := range paths {
			file := client.InputFile{Field: field, Path: path.(string)} // the schema says so
			if !filepath.IsAbs(file.Path) {
				file.Path = filepath.Join(f.dir, file.Path)
			}
			if info, err := os.Stat(file.Path); err != nil || !info.Mode().IsRegular() {
				pointer := "/" + strictjson.Escape(name) + "/files/" + strictjson.Escape(field)
				f.report(pointer, "paths are relative to the directory of the file that names them",
					"%s: there is no file %s", name, fault.Quote(file.Path))
			}
			files = append(files, file)
		}
	}
	return files
}
