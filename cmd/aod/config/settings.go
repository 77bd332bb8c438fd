package config

import (
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// setting is one row of the table: a key, the field that it sets, and the default.
type setting struct {
	key      string
	into     value
	fallback string // as written in the file
	doc      string // one line, without backquotes
}

// flag is the setting's name on a command line.
func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }

// env is the setting's name in the environment.
func (s setting) env() string { return "AOD_" + strings.ToUpper(s.key) }

const (
	day = 24 * time.Hour
	pib = 1024 * quantity.TiB
)

// settings is the table of the server's settings, bound to the fields of c. It is the
// only place where they are listed.
func (c *Config) settings() []setting {
	return slices.Concat(c.place(), c.clients(), c.runs(), c.sandboxes(), c.machines(), c.bounds(), c.kept())
}

// place is where the server is, and what it offers.
func (c *Config) place() []setting {
	return []setting{
		{"listen", address(&c.Listen), "127.0.0.1:7070", "where the HTTP API listens; port 0 takes a free one"},
		{
			"tls",
			word{&c.TLS, []string{TLSOff, TLSSelf}},
			TLSOff,
			"how the HTTP API and gRPC speak TLS: self makes a certificate, once; in the file also a block of cert " +
				"and key, which name one of your own",
		},
		{
			"data", pathOf(&c.Data), "",
			"the data directory; $XDG_DATA_HOME/aod or ~/.local/share/aod by default",
		},
		{"units", directories(&c.Units), "", "directories in which units are found"},
		{"code", boolean{&c.Code}, "false", "offer aod.code, a unit that runs programs in Python"},
		{
			"code_packages", packages(&c.Packages), "",
			"packages of Debian for aod.code, such as python3-numpy; the build of its image has the engine's network " +
				"then",
		},
	}
}

// clients is who may ask the server, and the keys with which it asks others.
func (c *Config) clients() []setting {
	return []setting{
		{
			"token_file", pathOf(&c.TokenFile), "",
			"the file with the token of all requests; server/token in the data directory by default",
		},
		{
			"secrets", pathOf(&c.Secrets), "",
			"the directory of secrets, a file each, which only its owner may read; secrets in the data directory " +
				"by default",
		},
		{"no_auth", boolean{&c.NoAuth}, "false", "ask for no token; refused unless listen is a loopback address"},
		{"hosts", hosts(&c.Hosts), "", "further names that a request's Host header may have"},
		{"origins", origins(&c.Origins), "", "web origins whose pages may call the API"},
	}
}

// runs is what runs and builds take, and how long.
func (c *Config) runs() []setting {
	return []setting{
		{"concurrency", integer{&c.Concurrency, 0, 10_000}, "0", "runs at once; 0 is twice the number of CPUs"},
		{"starts", integer{&c.Starts, 0, 1_000}, "0", "containers that start at once; 0 is the number of CPUs"},
		{
			"memory",
			size{&c.Memory, 0, pib},
			"0B",
			"memory of all runs, by their limits; further ones wait; 0B is 80 % of the engine's machine",
		},
		{"queue", integer{&c.Queue, 1, 100_000}, "100", "runs of one unit that may wait; further ones are refused"},
		{
			"queue_wait",
			duration{&c.QueueWait, time.Millisecond, 7 * day},
			"10m",
			"the longest wait of a run for its turn",
		},
		{"retries", integer{&c.Retries, 0, 100}, "3", "further attempts after an error that may pass"},
		{
			"retry_delay",
			duration{&c.RetryDelay, time.Millisecond, time.Hour},
			"1s",
			"the pause before the first retry; it doubles each time",
		},
		{
			"max_timeout",
			duration{&c.MaxTimeout, time.Millisecond, 7 * day},
			"24h",
			"the longest timeout that a run may ask for",
		},

		{
			"builds",
			integer{&c.Builds, 0, 1_000},
			"0",
			"images that are built at once; 0 is half of the CPUs, at least one",
		},
		{
			"build_timeout",
			duration{&c.BuildTimeout, time.Second, day},
			"10m",
			"the longest that the build of an image may take",
		},
		{
			"build_memory",
			size{&c.BuildMemory, 0, 16 * quantity.TiB},
			"2GiB",
			"memory of a build's container; 0 is no bound. BuildKit keeps no bound: uploads are built without it " +
				"unless this is 0",
		},
		{
			"build_cpus",
			cores{&c.BuildCPUs},
			"2",
			"processors of a build's container, also in parts; BuildKit keeps no bound",
		},
		{
			"build_network",
			word{&c.BuildNetwork, buildWords},
			"none",
			"the network of a build's steps: none, or default, the engine's; within the policy",
		},
	}
}

// sandboxes is which containers wait, and what the others may reach.
func (c *Config) sandboxes() []setting {
	return []setting{
		{
			"pool",
			integer{&c.Pool, 0, 1_000},
			"8",
			"started containers that wait for the next runs, of all units together; 0 keeps none",
		},
		{
			"pool_memory",
			size{&c.PoolMemory, quantity.MiB, pib},
			"1GiB",
			"memory of all waiting containers, as far as earlier runs tell",
		},
		{
			"pool_idle",
			duration{&c.PoolIdle, time.Second, 7 * day},
			"5m",
			"without a call for so long, a unit has no more waiting container, unless its warm asks for it",
		},

		{
			"sessions",
			integer{&c.Sessions, 1, 1_000},
			"8",
			"containers of agents that live on between turns of their sessions; a further one ends the one that " +
				"is idle for longest",
		},

		{
			"mcp_sessions",
			integer{&c.MCPSessions, 1, 10_000},
			"100",
			"sessions of MCP of each client, with the server's tools and, apart from those, with MCP servers; a " +
				"further one ends the one that is idle for longest",
		},

		{
			"sandbox_uids",
			uids{&c.SandboxUIDs},
			"2100000000-2100065535",
			"user ids of sandboxes, one for each, where the server is root and its engine is on this machine and " +
				"maps no users; a single one is for all",
		},
		{
			"allow_unconfined",
			boolean{&c.AllowUnconfined},
			"false",
			"serve also with an engine without seccomp, where programs may use every system call",
		},

		{
			"egress_private", egressExceptions(&c.EgressPrivate), "",
			"hosts without a public address that units may reach by name (if policy.egress allows it), and at " +
				"which agents of uploaded units may be: a name, or name=address, which isn't looked up",
		},
	}
}

// machines are where runs go on beside this one.
func (c *Config) machines() []setting {
	return []setting{
		{
			"local_sandboxes",
			boolean{&c.LocalSandboxes},
			"true",
			"run units with containers on this machine, too; false: on workers alone",
		},
		{"labels", machineLabels(&c.Labels), "", "what units may need of this machine, such as [gpu]"},
		{
			"swarm", pathOf(&c.Swarm), "",
			"the file join of aod worker bundle: nodes of the Swarm that this engine manages join as workers",
		},
		{
			"worker_grace",
			duration{&c.WorkerGrace, time.Second, day},
			"2m",
			"how long a worker may be away before its runs count as lost",
		},
	}
}

// bounds is how much runs and requests may take, and what is kept.
func (c *Config) bounds() []setting {
	return []setting{
		{"handoff_depth", integer{&c.HandoffDepth, 1, 64}, "16", "how deep calls of units may nest"},
		{
			"handoff_calls",
			integer{&c.HandoffCalls, 1, 1_000_000},
			"200",
			"calls below one run, all together",
		},
		{
			"flow_calls",
			integer{&c.FlowCalls, 1, 1_000_000},
			"10000",
			"calls below one flow, all together",
		},

		{
			"model_tokens",
			integer{&c.ModelTokens, 0, 1_000_000_000_000},
			"2000000",
			"the most tokens of models of a run with all that it calls; 0 is no bound",
		},
		{
			"model_cost",
			money{&c.ModelCost},
			"0",
			"the most cost of a run with all that it calls, in the currency of the prices; 0 is no bound",
		},
		{
			"model_transcripts",
			boolean{&c.ModelTranscripts},
			"true",
			"keep what runs asked models, and the answers, unless agent.yaml says transcript: false",
		},
	}
}

// kept is how much is taken in, and what is kept for how long.
func (c *Config) kept() []setting {
	return []setting{
		{"upload_limit", size{&c.UploadLimit, 1, 16 * quantity.TiB}, "1GiB", "the largest body of one request"},
		{
			"payload_limit",
			size{&c.PayloadLimit, 1, quantity.GiB},
			"1MiB",
			"the largest input or output of a run, without files",
		},
		{
			"request_memory",
			size{&c.RequestMemory, 64 * quantity.MiB, pib},
			"256MiB",
			"memory of all requests together, those of running units included, for bodies that are not streamed " +
				"to disk; a client or a run has at most as much as it leaves free; more is refused with 503",
		},
		{
			"min_free_disk",
			size{&c.MinFreeDisk, 0, pib},
			"1GiB",
			"free space on the disks of data directory and engine below which new runs, handoffs, uploads and " +
				"builds are refused; at half of it the run that wrote most is stopped; 0 never",
		},
		{
			"retention_age",
			duration{&c.RetentionAge, 0, 3660 * day},
			"168h",
			"how long a run is kept after its end; 0 keeps it for ever",
		},
		{"audit_age", duration{&c.AuditAge, day, 3660 * day}, "9600h", "how long the audit keeps who did what"},
		{
			"retention_size",
			size{&c.RetentionSize, 0, pib},
			"10GiB",
			"what all kept runs may take before the oldest go; 0 is no bound",
		},
		{
			"sweep_interval",
			duration{&c.SweepInterval, 100 * time.Millisecond, day},
			"10m",
			"the time between two clean-ups",
		},

		{"grace", duration{&c.Grace, 0, day}, "10s", "how long running runs may go on after SIGTERM"},
		{"drain", boolean{&c.Drain}, "false", "wait for all running runs after SIGTERM, however long they take"},
		{
			"file_roots", directories(&c.FileRoots), "",
			"directories of files for POST /execute; none by default",
		},

		{
			"execute_errors",
			word{&c.ExecuteErrors, []string{InBody, AsProblem}},
			InBody,
			"how POST /execute tells what is wrong with a run: standard is 200 with the field error, problem a " +
				"status with application/problem+json",
		},

		{"log_format", word{&c.LogFormat, []string{"text", "json"}}, "text", "how log lines are written"},
		{
			"log_level",
			word{&c.LogLevel, []string{"debug", "info", "warn", "error"}},
			"info",
			"the least that is logged",
		},
	}
}

// settings is the table of the settings of one unit. They can be set in the file only.
func (u *UnitConfig) settings() []setting {
	return append(u.turns(), u.bounds()...)
}

// turns is when its runs have their turn, how long, and whom they may call.
func (u *UnitConfig) turns() []setting {
	return []setting{
		{
			"concurrency",
			integer{&u.Concurrency, 0, 10_000},
			"0",
			"runs at once; 0 is 1 with access: read-write, else what agent.yaml says: 10 for an agent",
		},
		{
			"queue",
			integer{&u.Queue, 0, 100_000},
			"0",
			"runs that may wait; 0 is 10 for a wrapped agent, else the server's queue",
		},
		{
			"queue_wait",
			duration{&u.QueueWait, 0, 7 * day},
			"0s",
			"the longest wait of a run for its turn; 0 is 30m for a wrapped agent, else the server's queue_wait",
		},
		{
			"retries",
			integer{&u.Retries, UnitsOwn, 100},
			"-1",
			"further attempts after an error that may pass; -1 is what agent.yaml says, else the server's retries",
		},
		{
			"access",
			word{&u.Access, []string{ReadOnly, ReadWrite}},
			"",
			"read-write where runs change something outside their sandboxes: then one at a time; what agent.yaml " +
				"says by default",
		},
		{"needs", machineLabels(&u.Needs), "", "labels of a machine that it needs, beside those of agent.yaml"},
		{"may_call", unitNames(&u.MayCall), "", "units that it may call beside those of tools.yaml"},
		{"teams", teamNames(&u.Teams), "", "teams that may run it: an upload beside its own; of a directory all"},
		{"may_not_call", unitNames(&u.MayNotCall), "", "units that it may not call, whatever tools.yaml says"},
		{
			"timeout",
			duration{&u.Timeout, 0, 7 * day},
			"0s",
			"the longest that a run may take, whatever a request says, within max_timeout and the policy; 0 is " +
				"what agent.yaml says",
		},
		{
			"warm",
			integer{&u.Warm, UnitsOwn, 1_000},
			"-1",
			"containers that wait for its next runs, whether it is called or not; -1 is what agent.yaml says",
		},
	}
}

// bounds is what its runs may have and ask for.
func (u *UnitConfig) bounds() []setting {
	return []setting{
		{"env", environment(&u.Env), "", "environment variables of its program, in plain text: never a secret"},
		{
			"network",
			word{&u.Network, networkWords},
			"",
			"the network of its runs, within the policy; what agent.yaml says by default",
		},
		{"models", modelNames(&u.Models), "", "models that it may ask, instead of those of agent.yaml"},
		{
			"model_tokens",
			integer{&u.ModelTokens, 0, 1_000_000_000_000},
			"0",
			"the most tokens of models of a run with all that it calls; 0 is what agent.yaml says",
		},
		{
			"model_cost",
			money{&u.ModelCost},
			"0",
			"the most cost of a run with all that it calls; 0 is what agent.yaml says",
		},
		{
			"model_path", pathOf(&u.ModelPath), "",
			"an Agentic Unit's model on this machine, a file or a directory, for --model-path",
		},
		{"max_stdin", size{&u.MaxStdin, 1, 16 * quantity.TiB}, "50MiB", "the most that an Agentic Unit gets on stdin"},
		{
			"require", fieldNames(&u.Require), "",
			"fields that a request of the agent HTTP contract must have, beside those of agents",
		},
		{
			"modes", labels(&u.Modes, "[DEMO]"), "",
			"modes that it takes, of those of agents; all by default",
		},
		{
			"risk_tiers", labels(&u.RiskTiers, "[NON_SENSITIVE]"), "",
			"risk tiers that it takes, of those of agents, and a request must have one then; all by default",
		},
		{
			"refuse_with_200",
			boolean{&u.Refuse200},
			"false",
			"by the agent HTTP contract, answer refused inputs and failures with 200 and the status error instead " +
				"of 422 and 502; the codes are VALIDATION_ERROR and TASK_FAILED",
		},
	}
}

// settings is the table of the block limits of one unit. It can be set in the file only.
func (l *LimitsConfig) settings() []setting {
	return []setting{
		{"memory", size{&l.Memory, leastMemory, 16 * quantity.TiB}, "", "what a run may take of memory"},
		{"cpus", cores{&l.CPUs}, "", "processors, also in parts"},
		{"pids", integer{&l.PIDs, 2, mostPIDs}, "", "processes and threads at one time"},
		{"output", size{&l.Output, 1, 16 * quantity.TiB}, "", "all output files together"},
		{"log", size{&l.Log, 1, quantity.GiB}, "", "what is kept of stdout and stderr"},
	}
}
