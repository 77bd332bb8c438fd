package runflags

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// Sources say where the runs of one command have what isn't in their units: models, upstreams, and the keys of both.
// Every command that runs units by itself takes them alike.
type Sources struct {
	Models    Models
	Upstreams string // a file of them
	Secrets   Secrets
	AtOnce    int // runs; 0: see cli.LocalOptions
}

// Register adds the flags to a command.
func (s *Sources) Register(flags *pflag.FlagSet) {
	s.Models.Register(flags)
	s.registerRest(flags)
}

// RegisterFiles adds them to a command whose runs nobody records or replays.
func (s *Sources) RegisterFiles(flags *pflag.FlagSet) {
	s.Models.registerFile(flags)
	s.registerRest(flags)
}

func (s *Sources) registerRest(flags *pflag.FlagSet) {
	flags.StringVar(&s.Upstreams, "upstreams", "",
		"a YAML file with upstreams that units may ask (default: AOD_UPSTREAMS)")
	s.Secrets.Register(flags)
}

// RefuseOnServer returns a fault if a flag is set that only means something here.
func (s *Sources) RefuseOnServer() error {
	var upstreams error
	if s.Upstreams != "" {
		upstreams = fault.New(fault.Input, "--upstreams is for runs on this machine").
			WithHint("a server's operator writes upstreams in the server's file, see docs/network.md")
	}
	return errors.Join(s.Models.refuseOnServer(), upstreams, s.Secrets.refuseOnServer())
}

// treeTokens bounds the runs of one command, as the server's model_tokens does.
const treeTokens = 2_000_000

// WithUnit calls do with a runner of a unit on this machine, and of all that it may call. The models of its context
// are recorded or replayed as the flags say.
func (s *Sources) WithUnit(
	ctx context.Context, env *cli.Env, req orchestrator.Request, do func(context.Context, *cli.Local) error,
) (err error) {
	opts, err := s.open(env, req.Unit, req.Find)
	if err != nil {
		return err
	}
	defer opts.Models.Gateway.Close()
	source, done, err := s.Models.source()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx = models.WithSource(ctx, source)
	return cli.WithUnit(ctx, env, req.Unit, opts, func(l *cli.Local) error { return do(ctx, l) })
}

// open returns what the runs get. The gateway is the caller's to close.
func (s *Sources) open(env *cli.Env, u *unit.Unit, find cli.Finder) (cli.LocalOptions, error) {
	opts := cli.LocalOptions{Upstreams: s.Upstreams, Find: find, AtOnce: s.AtOnce}
	units, whole := cli.Reachable(u, find)
	found, err := s.Find(Beside{Secrets: filepath.Join(env.Data, "secrets"), Units: units, Whole: whole})
	if err != nil {
		return opts, err
	}
	found.SayWherePromptsGo(env, units)
	gw, err := gateway.New(found.Catalog, gateway.Options{Key: found.Key})
	opts.Secrets = found.Secrets.Named
	opts.Models = models.Models{Gateway: gw, Budget: ledger.Amount{Tokens: treeTokens}, Transcript: true}
	return opts, err
}

// Beside is what there is beside the flags.
type Beside struct {
	Secrets   string          // the directory of those that are kept
	Catalog   catalog.Catalog // of a server's file, in the place of the environment's keys; without a model it is none
	Upstreams upstream.Table  // likewise, where no file is named

	Units []*unit.Unit // that run
	Whole bool         // that these are all
}

// Found are sources that were read.
type Found struct {
	Known
	Upstreams upstream.Table
	Asked     []string // of the upstreams, whose keys have to be there
	Secrets   secrets.Files
}

// FoundIn are the sources of a server's file.
func FoundIn(known catalog.Catalog, table upstream.Table, files secrets.Files) Found {
	return Found{knownOf(known, files), table, slices.Sorted(maps.Keys(table)), files}
}

// Find reads the sources, and refuses a secret that nothing takes. A secret itself is read when it is needed.
func (s *Sources) Find(b Beside) (found Found, err error) {
	if found.Upstreams, err = ReadUpstreams(s.Upstreams); err != nil {
		return found, err
	}
	if found.Upstreams == nil {
		found.Upstreams = b.Upstreams
	}
	found.Secrets.Dir = b.Secrets
	if found.Secrets.Named, err = s.Secrets.Files(); err != nil {
		return found, err
	}
	if s.Models.Path() == "" && len(b.Catalog.Models) > 0 {
		found.Known = knownOf(b.Catalog, found.Secrets)
	} else if found.Known, err = s.Models.Catalog(found.Secrets); err != nil {
		return found, err
	}
	for _, u := range b.Units {
		found.Asked = append(found.Asked, u.Policy.Upstreams...)
	}
	if b.Whole {
		err = s.Secrets.check(takers{b.Units, found.Keys, found.Upstreams})
	}
	return found, err
}

// Args are the arguments of a command that has the same sources, wherever it starts.
func (s *Sources) Args() (args []string, err error) {
	for _, file := range [][2]string{{"--models", s.Models.Path()}, {"--upstreams", upstreamsPath(s.Upstreams)}} {
		if file[1] == "" {
			continue
		}
		path, err := filepath.Abs(file[1])
		if err != nil {
			return nil, fault.Wrap(fault.Input, err, "%s: its path can't be used", file[0])
		}
		args = append(args, file[0], path)
	}
	files, err := s.Secrets.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		args = append(args, "--secret", name+"="+files[name])
	}
	return args, err
}

// Secrets are the files of --secret, which stand for secrets of their names.
type Secrets struct {
	pairs []string
	past  map[string]string // those of an earlier run, which may need others by now
}

// PastSecrets are the files of an earlier run.
func PastSecrets(files map[string]string) Secrets { return Secrets{past: files} }

// Register adds the flag to a command.
func (s *Secrets) Register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.pairs, "secret", nil,
		"a secret that a unit, a provider or an upstream names, NAME=FILE; may be repeated (default: the files in "+
			"DATA/secrets, but for a unit's program)")
}

// refuseOnServer returns a fault if the flag is set, which only means something here.
func (s *Secrets) refuseOnServer() error {
	if len(s.pairs) == 0 {
		return nil
	}
	return fault.New(fault.Input, "--secret is for runs on this machine").
		WithHint("a server has secrets of its own, see its setting `secrets`")
}

// Files returns the paths of the files, absolute, by the names of the secrets. Each is read when it is needed.
func (s *Secrets) Files() (map[string]string, error) {
	files := map[string]string{}
	maps.Copy(files, s.past)
	for _, pair := range s.pairs {
		name, path, ok := strings.Cut(pair, "=")
		if !ok || name == "" || path == "" {
			return nil, fault.New(fault.Input, "--secret takes NAME=FILE").
				WithHint("the value itself never stands on a command line")
		}
		if files[name] != "" {
			return nil, fault.New(fault.Input, "--secret names %q twice", name)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fault.Wrap(fault.Input, err, "--secret %s: its path can't be used", name)
		}
		files[name] = path
	}
	return files, nil
}

// Of returns the files for a unit that calls nobody and asks for nothing outside.
func (s *Secrets) Of(u *unit.Unit) (map[string]string, error) {
	files, err := s.Files()
	if err == nil {
		err = s.check(takers{units: []*unit.Unit{u}})
	}
	return files, err
}

// takers are what may take a secret.
type takers struct {
	units     []*unit.Unit
	keys      []string // of providers
	upstreams upstream.Table
}

// check refuses a secret that nothing takes: its name is misspelt, or the one that is meant is missing.
func (s *Secrets) check(by takers) error {
	units, upstreams := map[string]bool{}, map[string]bool{}
	for _, u := range by.units {
		for _, name := range u.SecretNames() {
			units[name] = true
		}
	}
	for _, u := range by.upstreams {
		if u.Secret != "" {
			upstreams[u.Secret] = true
		}
	}
	for _, pair := range s.pairs {
		name, _, _ := strings.Cut(pair, "=")
		if units[name] || upstreams[name] || slices.Contains(by.keys, name) {
			continue
		}
		there := slices.DeleteFunc([]string{
			taking("units take", slices.Sorted(maps.Keys(units))),
			taking("providers of models take", slices.Sorted(slices.Values(by.keys))),
			taking("upstreams take", slices.Sorted(maps.Keys(upstreams))),
		}, func(text string) bool { return text == "" })
		return fault.New(fault.Input, "--secret: nothing takes a secret %s", fault.Quote(name)).
			WithHint("%s", strings.Join(append(there, "leave out what nothing takes"), "; "))
	}
	return nil
}

func taking(who string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s", who, strings.Join(slices.Compact(names), ", "))
}
