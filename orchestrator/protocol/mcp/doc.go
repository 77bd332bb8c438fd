// Package mcp serves units to clients of the Model Context Protocol: every unit is a tool,
// and a call of a tool is a run.
//
// The main path, in call order:
//
//	New            makes a Server of a Service
//	Server.ServeHTTP, Server.ServeStdio
//	               speak the protocol, each revision as it wants
//	Views          have a Server for those clients each who may know of the same units
//	catalogue      makes tools of units
//	calls          make runs of calls: arguments with their files, progress, results
//	dialog, rounds ask people what runs ask: while a call goes on, and in the answer to it
//	tasks          tell of long calls later, by the runs' ids
//
// It is the only importer of the protocol's SDK. It knows the orchestrator by the Service
// that it declares, and nothing of tokens and origins: those belong to who mounts it.
//
// Its Go API may change with every release: see docs/stability.md.
package mcp
