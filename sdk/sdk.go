// Package sdk carries the Python library of capsules, so that a lone aod binary can build the base image. The library's
// own tests are in python/tests.
//
// run (sdk/python/aod/bridge.py) loads a capsule's logic, waits for the invocation, calls `execute` and writes what it
// returns. It checks input and output itself where AOD_VALIDATES doesn't say that AOD does.
//
// A task without code runs by without_code (sdk/python/aod/loop.py): a Loop asks a model through Gateway
// (sdk/python/aod/model.py), Toolbox (sdk/python/aod/toolbox.py) runs the calls of a turn, until the Goal finds the
// answer right. Each server of mcp.json is a Server (sdk/python/aod/servers.py): a Client (sdk/python/aod/mcpclient.py)
// over a Child (sdk/python/aod/mcpchild.py), or over an Http (sdk/python/aod/mcphttp.py) for a granted unit; message
// (sdk/python/aod/mcplines.py) reads lines, Served (sdk/python/aod/served.py) makes a tool of a tool.
//
// A node of a Flow (sdk/python/aod/flowwalk.py) calls with a key of its place in the flow: key
// (sdk/python/aod/address.py).
//
// Its Go API may change with every release: see docs/stability.md.
package sdk

import (
	"embed"
	"io/fs"
)

// The pattern names files: of a directory, go:embed leaves out __init__.py.
//
//go:embed python/aod/*.py
var files embed.FS

// Python returns the Python package aod: its modules, at the top, and nothing
// that the interpreter left beside them.
func Python() fs.FS {
	sub, err := fs.Sub(files, "python/aod")
	if err != nil {
		panic("sdk: " + err.Error()) // the name is a constant and valid
	}
	return sub
}
