package au

import "testing"

func TestExitMeaning(t *testing.T) {
	card := parsed(t, ocrCard)
	cases := []struct {
		code  int
		class ExitClass
		name  string
		retry bool
	}{
		{0, ExitSuccess, "success", false},
		{1, ExitGeneralError, "general error", false},
		{2, ExitInvalidInput, "invalid input or arguments", false},
		{3, ExitDomainError, "no text found", false},
		{4, ExitDomainError, "domain error 4", false},
		{128, ExitDomainError, "domain error 128", false},
		{129, ExitSignal, "SIGHUP", true},
		{137, ExitSignal, "SIGKILL", true},
		{139, ExitSignal, "SIGSEGV", false},
		{143, ExitSignal, "SIGTERM", true},
		{192, ExitSignal, "signal 64", false},
		{193, ExitDomainError, "domain error 193", false},
		{255, ExitDomainError, "domain error 255", false},
		{256, ExitGeneralError, "general error", false},
		{-1, ExitGeneralError, "general error", false},
	}
	for _, c := range cases {
		if got, want := ExitMeaning(c.code, card), (Exit{c.class, c.code, c.name, c.retry}); got != want {
			t.Errorf("ExitMeaning(%d) = %+v, want %+v", c.code, got, want)
		}
	}
	if got := ExitMeaning(3, nil); got.Class != ExitDomainError || got.Name != "domain error 3" {
		t.Errorf("without a card: %+v", got)
	}
}
