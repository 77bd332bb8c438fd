// Package runtime is the life of one sandbox: a fresh container, used once, with a
// directory of its own, bounded in everything, whose results are taken as hostile.
//
// The main path, in call order:
//
//	BuildImage   builds the image of a build context
//	NewLayout    makes the run's directory: /io, /workspace, /run/aod
//	AddInput     copies an input file into /io/input
//	Start        create -> attach -> subscribe -> start
//	Wait         drain -> wait (or stop, kill) -> inspect -> usage
//	ReadResult   reads /io/output.json, whatever a capsule made of it
//	Collect      lists the files of /io/output, Deliver moves them out
//	Publish      or keeps them where they are, as a directory of ours
//	Remove       container, then directory
//
// A Durable sandbox outlives its process: Wait ends with ErrDetach, or never, and the
// next process calls Find, OpenLayout and Adopt instead of NewLayout and Start.
//
// It knows engines only by the interface Engine, and nothing of capsules: what a
// result has to look like is its caller's business. That a program fails, hangs or
// hits a limit is no error here but an End.
package runtime
