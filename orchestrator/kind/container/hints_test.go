package container

import "testing"

func TestSurprisesAreKnownByWhatProgramsSay(t *testing.T) {
	t.Parallel()
	inputs := func() []string { return []string{"sales.csv", "2/a.txt"} }
	for line, want := range map[string]*sandboxHint{
		"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>": &noNetwork,
		"curl: (6) Could not resolve host: example.org":                                          &noNetwork,
		"Error: getaddrinfo EAI_AGAIN example.org":                                               &noNetwork,
		"dial tcp: lookup example.org: no such host":                                             &noNetwork,
		"OSError: [Errno 101] Network is unreachable":                                            &noNetwork,
		"OSError: [Errno 30] Read-only file system: 'out.txt'":                                   &readOnly,
		"touch: cannot touch 'x': Read-only file system":                                         &readOnly,
		"Error: EROFS: read-only file system, open '/capsule/x'":                                 &readOnly,
		"ModuleNotFoundError: No module named 'requests'":                                        &noModule,
		"Error: Cannot find module 'left-pad'":                                                   &noModule,
		"Can't locate JSON/XS.pm in @INC":                                                        &noModule,
		"FileNotFoundError: [Errno 2] No such file or directory: 'sales.csv'":                    &inputAsItStands,
		"cat: 2/a.txt: No such file or directory":                                                &inputAsItStands,
		"Error: ENOENT: no such file or directory, open 'sales.csv'":                             &inputAsItStands,
		"FileNotFoundError: [Errno 2] No such file or directory: '/io/input/sales.csv'":          nil,
		"FileNotFoundError: [Errno 2] No such file or directory: 'model.bin'":                    nil,
		"looking up 3 names in the lookup table":                                                 nil,
		"":                                                                                       nil,
	} {
		if got := surpriseIn(line, false, inputs); got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got := surpriseIn("Could not resolve host: example.org", true, inputs); got != nil {
		t.Errorf("with a network: %+v", got)
	}
}

func TestASurpriseFarFromTheEndIsNoReason(t *testing.T) {
	t.Parallel()
	var s sandboxHints
	s.note(&readOnly)
	for range lastWords - 1 {
		s.note(nil)
	}
	if s.atTheEnd() != &readOnly {
		t.Error("it was among the last words")
	}
	if s.note(nil); s.atTheEnd() != nil {
		t.Error("the program said a lot after it")
	}
	s.note(&noModule)
	if s.note(&noNetwork); s.atTheEnd() != &noNetwork {
		t.Error("the last one counts")
	}
	if s.forget(); s.atTheEnd() != nil {
		t.Error("another attempt knows of it")
	}
}
