package a2a

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Extension is the URI of the extension that tells of a unit what its card has no room for.
const Extension = "urn:aod:unit:v1"

const cardAge = "max-age=60" // how long a card may be kept

// cards are what agents tell of themselves.
type cards struct {
	svc  Service
	opts Options
}

// serve answers with the card of a unit, "" is the agent of all units. It is in the words of the version that the
// request names; of none, or of one that nobody here speaks, in those of all that there are.
func (c cards) serve(w http.ResponseWriter, r *http.Request, unit string) {
	var raw []byte
	var since time.Time
	version, _ := versionOf(r)
	err := httpwire.Catch(func() error {
		card, changed, err := c.of(r.Context(), unit, c.opts.base(r.Host), false)
		if err != nil {
			return err
		}
		since = changed
		raw, err = cardJSON(r.Context(), card, version)
		return err
	})
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	sum := sha256.Sum256(raw)
	header := w.Header()
	header.Set("Content-Type", httpwire.TypeJSON)
	header.Add("Vary", sdk.SvcParamVersion)
	header.Add("Vary", "Authorization") // without a token no uploads are shown
	if c.opts.Header != "" {
		header.Add("Vary", c.opts.Header)
	}
	header.Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	header.Set("Cache-Control", "public, "+cardAge)
	if c.opts.Private {
		header.Set("Cache-Control", "private, "+cardAge)
	}
	http.ServeContent(w, r, "", since, bytes.NewReader(raw))
}

func (c cards) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Input) {
		err = fault.New(fault.NotFound, "there is no such agent").WithHint("GET /v1/units lists the units")
	}
	if fault.Is(err, fault.Internal) {
		httpwire.NotesOf(r.Context()).Report(err, false)
	}
	_ = httpwire.ReplyProblem(w, httpwire.ProblemOf(err)) // whoever asked has gone
}

// of makes the card of a unit, or of the agent of all units, and says since when it is so.
func (c cards) of(ctx context.Context, unit, base string, extended bool) (*sdk.AgentCard, time.Time, error) {
	if unit == "" {
		return c.directory(ctx, base)
	}
	agent, err := c.svc.Agent(ctx, unit)
	if err != nil {
		return nil, time.Time{}, err
	}
	skill := skillOf(agent)
	card := c.plain(unit, base)
	card.Name, card.Description, card.Version = agent.Name, skill.Description, agent.Version
	card.DefaultInputModes, card.DefaultOutputModes = skill.InputModes, skill.OutputModes
	card.Skills = []sdk.AgentSkill{skill}
	if extended {
		card.Capabilities.Extensions = []sdk.AgentExtension{c.extension(agent)}
	}
	return card, sinceOf(agent.Unit), nil
}

// directory is the card of the agent of all units.
func (c cards) directory(ctx context.Context, base string) (*sdk.AgentCard, time.Time, error) {
	units, err := c.svc.Units(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	card := c.plain("", base)
	card.Name, card.Version = "aod", c.opts.Version
	card.Description = "Agent on Demand: its skills are the units of this server. A message says in its metadata " +
		"`unit` which one it is for."
	card.DefaultInputModes, card.DefaultOutputModes = []string{httpwire.TypeJSON, typeText}, []string{
		httpwire.TypeJSON,
		typeText,
	}
	card.Skills = []sdk.AgentSkill{}
	var since time.Time
	for _, u := range units {
		if u.Problem != nil || u.Disabled {
			continue
		}
		card.Skills = append(card.Skills, skillOf(Agent{Unit: u}))
		if changed := sinceOf(u); changed.After(since) {
			since = changed
		}
	}
	return card, since, nil
}

func sinceOf(u api.Unit) time.Time {
	if u.Since == nil {
		return time.Time{}
	}
	return *u.Since
}

// plain is what the cards of all agents have.
func (c cards) plain(unit, base string) *sdk.AgentCard {
	card := &sdk.AgentCard{
		SupportedInterfaces: c.interfaces(unit, base),
		Capabilities: sdk.AgentCapabilities{
			Streaming: true, PushNotifications: c.opts.Push != nil,
			ExtendedAgentCard: true,
		},
	}
	if c.opts.NoAuth {
		return card
	}
	const name = "token"
	var scheme sdk.SecurityScheme = sdk.HTTPAuthSecurityScheme{Scheme: "Bearer"}
	if c.opts.Header != "" {
		scheme = sdk.APIKeySecurityScheme{Location: sdk.APIKeySecuritySchemeLocationHeader, Name: c.opts.Header}
	}
	card.SecuritySchemes = sdk.NamedSecuritySchemes{name: scheme}
	card.SecurityRequirements = sdk.SecurityRequirementsOptions{{name: {}}}
	return card
}

// interfaces are the addresses of an agent, the newest version first. By gRPC a unit is a tenant,
// which version 0.3 doesn't know.
func (c cards) interfaces(unit, base string) []*sdk.AgentInterface {
	address := base + top + unit
	if unit == "" {
		address = base + top + anyUnit
	}
	var all []*sdk.AgentInterface
	for _, version := range Versions() {
		for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
			all = append(all,
				&sdk.AgentInterface{
					URL: address, ProtocolBinding: binding,
					ProtocolVersion: sdk.ProtocolVersion(version),
				})
		}
		if c.opts.GRPC != "" && (version == version10 || unit == c.opts.Root) {
			at := &sdk.AgentInterface{
				URL: c.opts.GRPC, ProtocolBinding: sdk.TransportProtocolGRPC,
				ProtocolVersion: sdk.ProtocolVersion(version),
			}
			if version == version10 {
				at.Tenant = unit
			}
			all = append(all, at)
		}
	}
	return all
}

// skillOf is the one skill of a unit.
func skillOf(agent Agent) sdk.AgentSkill {
	skill := sdk.AgentSkill{
		ID: agent.Name, Name: agent.Name, Description: agent.Description, Tags: agent.Tags,
		InputModes: []string{httpwire.TypeJSON}, OutputModes: []string{httpwire.TypeJSON},
	}
	if skill.Description == "" {
		skill.Description = "The unit " + agent.Name
	}
	if len(skill.Tags) == 0 {
		skill.Tags = []string{agent.Kind}
	}
	parsed, _ := contract.Parse(agent.Schema)
	if parsed == nil {
		return skill
	}
	if textOf(agent, parsed.Input) != "" {
		skill.InputModes = append(skill.InputModes, typeText)
	}
	if len(parsed.Input.TakingFiles()) > 0 {
		skill.InputModes = append(skill.InputModes, typeRaw)
	}
	if slices.ContainsFunc(parsed.Output.Fields(),
		func(f contract.Field) bool { return f.Name == "text" && isText(f) }) {
		skill.OutputModes = append(skill.OutputModes, typeText)
	}
	if len(parsed.Output.TakingFiles()) > 0 {
		skill.OutputModes = append(skill.OutputModes, typeRaw)
	}
	return skill
}

// extension tells of a unit what its card has no room for.
func (c cards) extension(agent Agent) sdk.AgentExtension {
	params := map[string]any{
		"kind": agent.Kind, "concurrency": float64(agent.Concurrency), "max_request_bytes": float64(c.opts.MaxBytes),
	}
	if agent.Policy != nil && agent.Policy.OutputBytes > 0 {
		params["max_output_bytes"] = float64(agent.Policy.OutputBytes)
	}
	var schema struct{ Input, Output json.RawMessage }
	if json.Unmarshal(agent.Schema, &schema) == nil {
		for key, raw := range map[string]json.RawMessage{"input_schema": schema.Input, "output_schema": schema.Output} {
			if value, ok := valueOf(raw); ok {
				params[key] = value
			}
		}
	}
	return sdk.AgentExtension{URI: Extension, Description: "The contract of the unit and its bounds", Params: params}
}

// bindings are the names of the bindings that are served.
func (c cards) bindings() []string {
	all := []string{string(sdk.TransportProtocolJSONRPC), string(sdk.TransportProtocolHTTPJSON)}
	if c.opts.GRPC != "" {
		all = append(all, string(sdk.TransportProtocolGRPC))
	}
	return all
}

// keyOf is a state's name in a status: "completed".
func keyOf(state sdk.TaskState) string {
	return strings.ToLower(strings.TrimPrefix(string(state), "TASK_STATE_"))
}
