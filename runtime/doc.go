// Package runtime is the life of one sandbox: a container with a directory of its own, bounded in everything, whose
// results are taken as hostile. A container serves one run, unless its unit has `reuse`: then it serves several runs of
// that unit, one after the other.
//
// The main path, in call order:
//
//	BuildImage   builds the image of a build context
//	NewLayout    makes the run's directory: /io, /workspace, /run/aod
//	Layout.At    gives it volumes where the engine doesn't see this host's files
//	Start        create -> attach -> subscribe -> start
//	Wait         drain -> wait (or stop, kill) -> inspect -> usage
//	ReadResult   reads /io/output.json, whatever a capsule made of it
//	Collect      lists the files of /io/output, Deliver moves them out
//	Publish      or keeps them where they are, as a directory of ours
//	Remove       container, then directory
//
// A Durable sandbox outlives its process: Wait ends with ErrDetach, or never. The next process calls Find, OpenLayout
// and Adopt instead of NewLayout and Start. A reused sandbox returns from WaitOrPosted; Layout.Reset and Sandbox.Assign
// make it ready for the next run. A Stdio (spec.go) makes files the program's stdin and stdout, a Console (console.go)
// is a terminal, a Feed (feed.go) says what a living program has read of stdin.
//
// The package knows engines only by the interface Engine, and nothing of capsules. The caller checks the result. A
// program that fails, hangs or hits a limit isn't an error here but an End.
//
// Its Go API may change with every release: see docs/stability.md.
package runtime
