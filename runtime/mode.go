package runtime

import "errors"

// Mode says what a sandbox's program and this process have to do with one another while it runs.
type Mode uint8

// The modes. With an engine elsewhere the init can't tell of the end.
const (
	ModeBare    Mode = iota // the init starts the program, and tells nobody of its end
	ModeOnce                // it tells of the end, see End.Early
	ModeParked              // likewise, and waits for Sandbox.Begin or StartProgram before it starts the program
	ModeProbe               // likewise, but looks the program up and doesn't start it
	ModeStdio               // the streams are those of Spec.Console; the sandbox ends with this process
	ModeConsole             // the streams are those of Spec.Console, which may be a terminal
	ModeSession             // the program's stdin grows by Feed, and its stdout is a file
)

// tells reports whether the init tells this process of the program's end.
func (m Mode) tells() bool {
	return m == ModeOnce || m == ModeParked || m == ModeProbe || m == ModeStdio
}

// onStreams reports whether the program's streams are those of a Console.
func (m Mode) onStreams() bool { return m == ModeStdio || m == ModeConsole }

// check refuses what the mode of a spec can't have.
func (s Spec) check(remote bool) error {
	switch {
	case s.Mode.onStreams() != (s.Console != nil):
		return errors.New("sandbox spec: a console goes with the modes of streams, and with no other")
	case s.Mode.onStreams() && s.Durable:
		return errors.New("sandbox spec: streams end with this process, a durable sandbox can't have them")
	case s.Mode == ModeSession && (s.Filter != nil || remote):
		return errors.New("sandbox spec: neither a filter nor an engine elsewhere can have a stdin that grows")
	}
	return nil
}
