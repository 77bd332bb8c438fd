package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// catalogue has the tools that a server offers, each made of a unit.
type catalogue struct {
	svc  Service
	opts Options

	mu    sync.Mutex
	tools map[string]*tool
	told  map[string]bool // units that aren't tools, and were logged
}

// tool is a tool with the unit behind it.
type tool struct {
	*sdk.Tool
	unit    string
	version string
	input   *contract.Schema
}

// refresh has the tools of the units as they are now. It returns those that are new or
// changed, and the names of those that have gone.
func (c *catalogue) refresh(ctx context.Context) (changed []*tool, gone []string, err error) {
	units, err := c.svc.Units(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := c.wanted(units)
	for name := range c.tools {
		if _, there := wanted[name]; !there {
			delete(c.tools, name)
			gone = append(gone, name)
		}
	}
	for name, w := range wanted {
		if known := c.tools[name]; known != nil && known.unit == w.Unit && known.version == w.unit.Version {
			continue
		}
		t, err := c.toolOf(ctx, w)
		if err != nil {
			c.opts.Logger.WarnContext(ctx, "unit isn't a tool", "unit", w.Unit, fault.LogAttr(err))
			if _, had := c.tools[name]; had {
				delete(c.tools, name)
				gone = append(gone, name)
			}
			continue
		}
		c.tools[name] = t
		changed = append(changed, t)
	}
	return changed, gone, nil
}

// wish is a unit that is wanted as a tool.
type wish struct {
	Tool
	unit api.Unit
}

// wanted chooses the tools by their names. Of units whose names would be alike the first one
// has the name.
func (c *catalogue) wanted(units []api.Unit) map[string]wish {
	wanted := map[string]wish{}
	byName := map[string]api.Unit{}
	slices.SortFunc(units, func(a, b api.Unit) int { return cmp.Compare(a.Name, b.Name) })
	for _, u := range units {
		byName[u.Name] = u
	}
	for _, name := range c.opts.Units {
		if _, there := byName[name]; !there {
			c.tell(name, "there is no such unit: it is a tool when there is one", "unit", name)
		}
	}
	for _, t := range c.chosen(units) {
		u, there := byName[t.Unit]
		if !there || !isTool(u) {
			continue
		}
		if first, taken := wanted[t.Name]; taken {
			c.tell(t.Unit, "two units make a tool of one name: the second is left out", "tool", t.Name, "unit", t.Unit,
				"first", first.Unit)
			continue
		}
		wanted[t.Name] = wish{t, u}
	}
	return wanted
}

// chosen lists the tools that the options ask for.
func (c *catalogue) chosen(units []api.Unit) []Tool {
	tools := slices.Clone(c.opts.Tools)
	if c.opts.Tools == nil {
		for _, u := range units {
			if len(c.opts.Units) == 0 || slices.Contains(c.opts.Units, u.Name) {
				tools = append(tools, Tool{Name: u.Name, Unit: u.Name})
			}
		}
	}
	for i := range tools {
		tools[i].Name = strings.ReplaceAll(tools[i].Name, ".", "_") // one dot blocks all tools of some clients
	}
	return tools
}

// tell warns of a unit that isn't a tool, once.
func (c *catalogue) tell(unit, message string, about ...any) {
	if !c.told[unit] {
		c.told[unit] = true
		c.opts.Logger.Warn(message, about...)
	}
}

// isTool reports whether a unit can be called, and now.
func isTool(u api.Unit) bool {
	return u.Problem == nil && u.Kind != kindMCP && (u.Policy == nil || u.Policy.Refusal == nil)
}

// kindMCP is the kind of units that speak the protocol themselves.
const kindMCP = "mcp"

// toolOf makes the tool of a unit.
func (c *catalogue) toolOf(ctx context.Context, w wish) (*tool, error) {
	raw, err := c.svc.Schema(ctx, w.Unit)
	if err != nil {
		return nil, err
	}
	known, _ := contract.Parse(raw)
	if known == nil {
		return nil, fault.New(fault.Capsule, "the contract of %q can't be read", w.Unit)
	}
	input, err := toolSchema(known.Input.Plain(), c.fileHint())
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	output, err := toolSchema(known.Output.Plain(), "")
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return &tool{
		Tool: &sdk.Tool{
			Name: w.Name, Title: titleOf(w.Name), Description: descriptionOf(w), Annotations: annotationsOf(w.unit),
			InputSchema: input, OutputSchema: output,
		},
		unit: w.Unit, version: w.unit.Version, input: known.Input,
	}, nil
}

func (c *catalogue) fileHint() string {
	if c.opts.Files != "" {
		return fileHint + ", or a path below the directory of files"
	}
	return fileHint
}

// find returns the tool of a name, nil for none.
func (c *catalogue) find(name string) *tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools[name]
}

// titleOf writes a name for people: csv-report is "Csv report".
func titleOf(name string) string {
	words := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }), " ")
	if words == "" {
		return name
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

func descriptionOf(w wish) string {
	text := cmp.Or(strings.TrimSpace(w.Description), strings.TrimSpace(w.unit.Description))
	return cmp.Or(text, "Runs the unit "+w.Unit+".")
}

// annotationsOf tells clients what a unit can do to the world.
func annotationsOf(u api.Unit) *sdk.ToolAnnotations {
	reads := u.Access != "read-write"
	open := u.Policy == nil || u.Policy.Network != "none"
	destructive := !reads
	return &sdk.ToolAnnotations{ReadOnlyHint: reads, DestructiveHint: &destructive, OpenWorldHint: &open}
}
