package runflags

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// Models says whom the models are asked of that units of one command name.
type Models struct {
	File   string // --models
	record string
	replay string

	Answered bool // test cases say what models answer
	// Instead is the model that is asked in the place of all that units name, also where cases say what those answer.
	Instead string
	// Resume is the cassette of a test that goes on: what is in it nobody is asked again, and it gets the rest.
	Resume string
}

// Register adds the flags to a command.
func (f *Models) Register(flags *pflag.FlagSet) {
	f.registerFile(flags)
	flags.StringVar(&f.record, "record", "", "write what models are asked, and their answers, to this cassette")
	flags.StringVar(&f.replay, "replay", "", "answer from this cassette and ask no model")
}

// registerFile adds the one flag to a command whose runs nobody records or replays.
func (f *Models) registerFile(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "models", "",
		"a YAML file with providers and models (default: AOD_MODELS, else the provider whose key is in "+
			"OPENAI_API_KEY or ANTHROPIC_API_KEY)")
}

// refuseOnServer returns a fault if a flag is set that only means something here.
func (f *Models) refuseOnServer() error {
	if f.File == "" && f.record == "" && f.replay == "" {
		return nil
	}
	return fault.New(fault.Input, "--models, --record and --replay are for runs on this machine").
		WithHint("a server's operator writes providers and models in the server's file, see docs/models.md")
}

// Path is that of the flag, else that of the environment; "" is none.
func (f *Models) Path() string { return cmp.Or(f.File, os.Getenv("AOD_MODELS")) }

// Known are the models that units may ask for.
type Known struct {
	catalog.Catalog
	Key  func(name string) (secrets.Secret, error)
	Keys []string // names of secrets that providers take

	own bool // keys of the environment open them
}

// knownOf has the models of a catalogue, with its keys in files.
func knownOf(table catalog.Catalog, files secrets.Files) Known {
	known := Known{Catalog: table, Key: files.Read}
	for _, p := range table.Providers {
		if p.Key != "" {
			known.Keys = append(known.Keys, p.Key)
		}
	}
	return known
}

// Catalog returns the models of the file, else those of the providers whose keys are among the files or in the
// environment. A model in the place of all is a NotFound fault where there is none of its name.
func (f *Models) Catalog(files secrets.Files) (Known, error) {
	known, err := f.catalog(files)
	if err != nil || f.Instead == "" {
		return known, err
	}
	model, is := known.Model(f.Instead)
	if !is {
		return known, fault.New(fault.NotFound, "there is no model %s to ask", fault.Quote(f.Instead)).
			WithHint("`aod models --models FILE` lists those of a file")
	}
	known.Models, known.Other = nil, func(string) (catalog.Model, bool) { return model, true }
	return known, nil
}

func (f *Models) catalog(files secrets.Files) (known Known, err error) {
	if path := f.Path(); path != "" {
		table, err := readCatalog(path)
		return knownOf(table, files), err
	}
	for _, p := range ownProviders {
		known.Keys = append(known.Keys, p.variable)
	}
	if f.replay != "" || f.Answered && f.record == "" {
		known.Catalog = anyCatalog()
		return known, nil
	}
	keys := ownKeys{files.Named}
	known.Key, known.own = keys.read, true
	known.Catalog, err = keys.catalog()
	return known, err
}

func readCatalog(path string) (catalog.Catalog, error) {
	raw, err := safefs.ReadNamed(path, maxTable)
	if err != nil {
		return catalog.Catalog{}, fault.Wrap(fault.Input, err, "the models in %q can't be read", path).
			WithHint("name a YAML file with providers and models")
	}
	known, findings := catalog.Read(path, raw)
	if len(findings) > 0 {
		return known, fault.New(fault.Input, "the models in %q are not valid", path).WithFindings(findings)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	return known.Under(dir), err
}

// maxTable bounds a file of models or of upstreams, in bytes.
const maxTable = 1 << 20

// ownProviders are those whose key a person has in the environment.
var ownProviders = []struct {
	name, variable string
	kind           catalog.Kind
	prefix         string   // of its models' names, where both are there
	places         []string // variables with another address that the key is for
	below          string   // that address, where the dialects lie
}{
	{"anthropic", "ANTHROPIC_API_KEY", catalog.Anthropic, "claude", []string{"ANTHROPIC_BASE_URL"}, "/v1"},
	{"openai", "OPENAI_API_KEY", catalog.OpenAI, "", []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}, ""},
}

// ownPlace returns the address of the environment that a key is for, "" for the vendor's own. A key goes
// nowhere else.
func ownPlace(variable string, places []string, below string) (address string, err error) {
	for _, place := range places {
		value := strings.TrimSuffix(strings.TrimSpace(os.Getenv(place)), "/")
		if value == "" {
			continue
		}
		if address != "" && value != address {
			return "", fault.New(fault.Input, "%s name two addresses for %s", strings.Join(places, " and "), variable).
				WithHint("unset one of them")
		}
		if problem := catalog.CheckAddress(value); problem != "" {
			return "", fault.New(fault.Input, "%s: %s", place, problem).
				WithHint("write https:// and a host in %s, unset it, or write a file for --models, see docs/models.md",
					place)
		}
		address = value
	}
	if address != "" && !strings.HasSuffix(address, below) {
		address += below
	}
	return address, nil
}

// anyCatalog has all models, at nobody who could be asked.
func anyCatalog() catalog.Catalog {
	nobody := catalog.Provider{
		Kind: catalog.Compatible, BaseURL: "https://nobody.invalid", Dialects: catalog.Dialects(), AnyField: true,
	}
	return catalog.Catalog{
		Providers: map[string]catalog.Provider{"nobody": nobody},
		Other: func(name string) (catalog.Model, bool) {
			return catalog.Model{Use: []catalog.Use{{Provider: "nobody", Model: name}}, Price: &catalog.Price{}}, true
		},
	}
}

// ownWindow is longer than what any model of these providers can read, in tokens: for those that nobody knows.
const ownWindow = 1_100_000

// ownKeys are the keys of ownProviders: of a --secret, else of the environment.
type ownKeys struct{ files map[string]string }

// catalog has the models at the providers whose keys are there.
func (k ownKeys) catalog() (catalog.Catalog, error) {
	known := catalog.Catalog{Providers: map[string]catalog.Provider{}, Other: func(string) (catalog.Model, bool) {
		return catalog.Model{}, false
	}}
	for _, p := range slices.Backward(ownProviders) { // the first that has a model is asked
		if os.Getenv(p.variable) == "" && k.files[p.variable] == "" {
			continue
		}
		address, err := ownPlace(p.variable, p.places, p.below)
		if err != nil {
			return catalog.Catalog{}, err
		}
		kind := p.kind
		if address != "" && kind == catalog.OpenAI {
			kind = catalog.Compatible // nobody knows which server it is
		}
		provider := catalog.Provider{Kind: kind, Key: p.variable, BaseURL: address, Dialects: p.kind.Dialects()}
		known.Providers[p.name] = provider
		others := known.Other
		known.Other = func(name string) (catalog.Model, bool) {
			if !strings.HasPrefix(name, p.prefix) {
				return others(name)
			}
			model := catalog.Model{Use: []catalog.Use{{Provider: p.name, Model: name}}}
			model.Price, _ = catalog.KnownPrice(provider, name)
			if l, _ := catalog.KnownLimits(provider, name); l.Context == 0 {
				model.Context = ownWindow
			}
			return model, true
		}
	}
	return known, nil
}

// read returns a key.
func (k ownKeys) read(variable string) (secrets.Secret, error) {
	if k.files[variable] != "" {
		return secrets.Files{Named: k.files}.Read(variable)
	}
	value := os.Getenv(variable)
	if value == "" {
		return "", fault.New(fault.NotFound, "there is no %s in the environment", variable)
	}
	return secrets.Secret(value), nil
}

// SayWherePromptsGo prints who is asked for the models that units name, where a key of the environment opens them.
func (k Known) SayWherePromptsGo(env *cli.Env, units []*unit.Unit) {
	if !k.own {
		return
	}
	var names []string
	for _, u := range units {
		names = append(names, u.Policy.Models...)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		model, known := k.Model(name)
		if !known {
			continue
		}
		provider := model.Use[0].Provider
		if address := k.Providers[provider].BaseURL; address != "" {
			provider = address
		}
		env.Note("what is asked of the model %s goes to %s, with the key of your environment", name, provider)
	}
}

// Records reports whether the flags name a cassette.
func (f *Models) Records() bool { return f.record != "" || f.replay != "" }

// Touch makes the file of a cassette that is to be recorded, so that a test case may name it
// already.
func (f *Models) Touch() error {
	if f.record == "" {
		return nil
	}
	file, err := os.OpenFile(f.record, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fault.Wrap(fault.Input, err, "the cassette %q can't be written", f.record)
	}
	return file.Close()
}

// source opens the cassettes of the flags.
func (f *Models) source() (source models.Source, done func() error, err error) {
	done = func() error { return nil }
	if f.replay != "" {
		if source.Replay, err = readCassette(f.replay); err != nil {
			return source, done, err
		}
	}
	if f.Resume != "" {
		return f.resumed()
	}
	if f.record == "" {
		return source, done, nil
	}
	file, err := os.OpenFile(f.record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return source, done, fault.Wrap(fault.Input, err, "the cassette %q can't be written", f.record)
	}
	source.Record = cassette.NewRecorder(file)
	return source, file.Close, nil
}

// resumed opens the cassette of a test that goes on.
func (f *Models) resumed() (source models.Source, done func() error, err error) {
	done = func() error { return nil }
	file, err := safefs.OpenLines(f.Resume)
	if err != nil {
		return source, done, fault.Wrap(fault.Input, err, "the cassette %q can't be written", f.Resume)
	}
	if source.Resume, err = cassette.Read(f.Resume, file); err != nil {
		return source, done, errors.Join(err, file.Close())
	}
	source.Record = cassette.NewRecorder(file)
	return source, file.Close, nil
}

// Answers is where the answers of models come from in a run of a test case.
type Answers string

// The answers are of models that are asked; were recorded in a run that was made for this one; or are the same in each
// run of the case.
const (
	Live     Answers = "live"
	Recorded Answers = "recorded"
	Same     Answers = "same"
)

// OfCase returns a context with what a test case says that models answer, unless the flags say what they do: that is
// the source of ctx, which is Sources.WithUnit's. A case is recorded anew though it has answers. Of a case that is
// repeated n is the number of the run, from 1, which has its own part of a cassette; 0: it isn't repeated.
func (f *Models) OfCase(ctx context.Context, test capsule.Case, n int) (context.Context, Answers, error) {
	source, part := models.SourceOf(ctx), fmt.Sprintf("%s#%d", test.Name, max(n, 1))
	if !f.Records() && f.Instead == "" {
		own, err := f.answersOf(test)
		if err != nil {
			return ctx, Live, err
		}
		if own.Script != nil || own.Replay != nil {
			source = own
		}
	}
	from := Live
	if source.Script != nil {
		from = Same
	}
	if source.Replay != nil {
		from = Same
		if n > 0 || f.replay == "" { // a cassette of the flags has all runs of a command, one after the other
			var own bool
			if source.Replay, own = source.Replay.For(part); own {
				from = Recorded
			}
		}
	}
	if source.Record != nil && (n > 0 || source.Resume != nil) {
		source.Record = source.Record.For(part)
	}
	if source.Resume != nil {
		source.Resume, _ = source.Resume.For(part)
	}
	return models.WithSource(ctx, source), from, nil
}

// OfGrader returns the context of OfCase for the unit that grades the case: of a cassette it has the same part, but a
// case says by itself what models answer it.
func (f *Models) OfGrader(ctx context.Context, test capsule.Case) (context.Context, error) {
	source := models.SourceOf(ctx)
	source.Script = nil
	var err error
	switch given := test.Expect.Grade.Models; {
	case f.Records():
	case given != nil:
		source.Script, err = scriptOf(test.File, "/expect/grade/models", given)
	case source.Replay == nil && f.Path() == "" && f.Answered:
		source.Script = script.None(fmt.Sprintf("%s has no answers of models for the unit that grades: give "+
			"\"grade\" its own \"models\"", test.File))
	}
	return models.WithSource(ctx, source), err
}

// WithoutCassette is the same without what the flags say to record or replay, and to ask in the place of all.
func (f *Models) WithoutCassette() Models {
	return Models{File: f.File, Answered: f.Answered || f.Records()}
}

// scriptOf reads the answers that stand at a place of a test case.
func scriptOf(file, pointer string, answers json.RawMessage) (*script.Script, error) {
	made, findings := script.Read(file, answers)
	if len(findings) == 0 {
		return made, nil
	}
	for i := range findings {
		findings[i].Line, findings[i].Pointer = 0, pointer+findings[i].Pointer
	}
	return nil, fault.New(fault.Capsule, "the answers of models in %s are not valid", file).WithFindings(findings)
}

func (f *Models) answersOf(test capsule.Case) (source models.Source, err error) {
	switch {
	case test.Cassette != "":
		source.Replay, err = readCassette(test.Cassette)
	case test.Models != nil:
		source.Script, err = scriptOf(test.File, "/models", test.Models)
	case f.Path() == "" && f.Answered:
		source.Script = script.None(fmt.Sprintf("%s has no answers of models, as other cases have: give it "+
			"\"models\", a list of answers or the file that `aod test --case %s --record FILE` writes",
			test.File, test.Name))
	}
	return source, err
}

func readCassette(path string) (player *cassette.Player, err error) {
	file, _, err := safefs.OpenNamed(path)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the cassette %q can't be read", path).
			WithHint("record it with --record %s", path)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return cassette.Read(path, file)
}
