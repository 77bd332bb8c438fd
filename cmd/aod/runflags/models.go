package runflags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
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

	Answered bool              // test cases say what models answer
	Secrets  map[string]string // files with keys of providers, by the names of the keys
}

// Register adds the flags to a command.
func (f *Models) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "models", "",
		"a YAML file with providers and models (default: AOD_MODELS, else the provider whose key is in "+
			"OPENAI_API_KEY or ANTHROPIC_API_KEY)")
	flags.StringVar(&f.record, "record", "", "write what models are asked, and their answers, to this cassette")
	flags.StringVar(&f.replay, "replay", "", "answer from this cassette and ask no model")
}

// RefuseOnServer returns a fault if a flag is set that only means something here.
func (f *Models) RefuseOnServer() error {
	if f.File == "" && f.record == "" && f.replay == "" {
		return nil
	}
	return fault.New(fault.Input, "--models, --record and --replay are for runs on this machine").
		WithHint("a server's operator writes providers and models in the server's file, see docs/models.md")
}

// treeTokens bounds the runs of one command, as the server's model_tokens does.
const treeTokens = 2_000_000

// Open returns what the runs of a unit may ask of models, and a function that closes it.
func (f *Models) Open(env *cli.Env, u *unit.Unit, find cli.Finder) (models.Models, error) {
	known, key, err := f.Catalog(env, namedModels(u, find, map[string]bool{}))
	if err != nil {
		return models.Models{}, err
	}
	gw, err := gateway.New(known, gateway.Options{Key: key})
	return models.Models{Gateway: gw, Budget: ledger.Amount{Tokens: treeTokens}, Transcript: true}, err
}

// namedModels are the models that a unit names, and those that it may call.
func namedModels(u *unit.Unit, find cli.Finder, seen map[string]bool) []string {
	names := slices.Clone(u.Policy.Models)
	seen[u.Name] = true
	for _, name := range u.Policy.Grants {
		if seen[name] {
			continue
		}
		if callee, err := find(context.Background(), name); err == nil { // the call says what is wrong
			names = append(names, namedModels(callee, find, seen)...)
		}
	}
	return names
}

// keyReader returns a secret by its name.
type keyReader func(name string) (secrets.Secret, error)

// path is that of the flag, else that of the environment; "" is none.
func (f *Models) path() string { return cmp.Or(f.File, os.Getenv("AOD_MODELS")) }

// Catalog returns the models of the file, else those of the providers whose keys are in the
// environment.
func (f *Models) Catalog(env *cli.Env, names []string) (catalog.Catalog, keyReader, error) {
	path := f.path()
	switch {
	case path != "":
	case f.replay != "" || f.Answered && f.record == "":
		return anyCatalog(names), nil, nil
	default:
		known, err := f.ownCatalog(names)
		if err == nil {
			sayWherePromptsGo(env, known)
		}
		return known, f.ownKey, err
	}
	known, err := readCatalog(path)
	return known, secrets.Files{Dir: filepath.Join(env.Data, "secrets"), Named: f.Secrets}.Read, err
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

// anyCatalog has the models that units name, at nobody who could be asked.
func anyCatalog(names []string) catalog.Catalog {
	known := catalog.Catalog{Providers: map[string]catalog.Provider{
		"nobody": {
			Kind: catalog.Compatible, BaseURL: "https://nobody.invalid", Dialects: catalog.Dialects(),
			AnyField: true,
		},
	}, Models: map[string]catalog.Model{}}
	for _, name := range names {
		known.Models[name] = catalog.Model{
			Use:   []catalog.Use{{Provider: "nobody", Model: name}},
			Price: &catalog.Price{},
		}
	}
	return known
}

// ownWindow is longer than what any model of these providers can read, in tokens.
const ownWindow = 1_100_000

// ownCatalog has the models that units name, at the providers whose keys are in the
// environment.
func (f *Models) ownCatalog(names []string) (catalog.Catalog, error) {
	known := catalog.Catalog{Providers: map[string]catalog.Provider{}, Models: map[string]catalog.Model{}}
	for _, p := range ownProviders {
		if os.Getenv(p.variable) == "" && f.Secrets[p.variable] == "" {
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
		known.Providers[p.name] = catalog.Provider{
			Kind: kind, Key: p.variable, BaseURL: address, Dialects: p.kind.Dialects(),
		}
		for _, name := range names {
			if _, taken := known.Models[name]; !taken && strings.HasPrefix(name, p.prefix) {
				price, _ := catalog.KnownPrice(known.Providers[p.name], name)
				known.Models[name] = catalog.Model{
					Use:     []catalog.Use{{Provider: p.name, Model: name}},
					Context: ownWindow, Price: price,
				}
			}
		}
	}
	return known, nil
}

// ownKey returns a key of a --secret, else of the environment.
func (f *Models) ownKey(variable string) (secrets.Secret, error) {
	if f.Secrets[variable] != "" {
		return secrets.Files{Named: f.Secrets}.Read(variable)
	}
	value := os.Getenv(variable)
	if value == "" {
		return "", fault.New(fault.NotFound, "there is no %s in the environment", variable)
	}
	return secrets.Secret(value), nil
}

func sayWherePromptsGo(env *cli.Env, known catalog.Catalog) {
	for _, name := range slices.Sorted(maps.Keys(known.Models)) {
		provider := known.Models[name].Use[0].Provider
		if address := known.Providers[provider].BaseURL; address != "" {
			provider = address
		}
		env.Note("what is asked of the model %s goes to %s, with the key of your environment", name, provider)
	}
}

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

// Source opens the cassettes of the flags.
func (f *Models) Source() (source models.Source, done func() error, err error) {
	done = func() error { return nil }
	if f.replay != "" {
		if source.Replay, err = readCassette(f.replay); err != nil {
			return source, done, err
		}
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

// OfCase returns what a test case says that models answer, else what the flags say. A case is
// recorded anew though it has answers.
func (f *Models) OfCase(test capsule.Case, usual models.Source) (source models.Source, err error) {
	switch {
	case usual != (models.Source{}):
		return usual, nil
	case test.Cassette != "":
		source.Replay, err = readCassette(test.Cassette)
	case test.Models != nil:
		var findings []fault.Finding
		if source.Script, findings = script.Read(test.File, test.Models); len(findings) > 0 {
			for i := range findings {
				findings[i].Line, findings[i].Pointer = 0, "/models"+findings[i].Pointer
			}
			err = fault.New(fault.Capsule, "the answers of models in %s are not valid", test.File).
				WithFindings(findings)
		}
	case f.path() == "" && f.record == "" && f.Answered:
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
