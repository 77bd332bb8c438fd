package httpwire

import "testing"

func TestAMediaTypeIsThatOfTheName(t *testing.T) {
	for name, want := range map[string]string{
		"a.csv": "text/csv", "d/A.PNG": "image/png", "x.tar.gz": "application/gzip", "none": unknownType, ".csv": "text/csv", "a.": unknownType, "": unknownType,
	} {
		if got := TypeOfFile(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestEachMediaTypeHasOneExtension(t *testing.T) {
	for end, known := range mediaTypes {
		one := Extension(known)
		if mediaTypes[one] != known {
			t.Errorf("%s: %s is an end of %q", end, one, mediaTypes[one])
		}
		for range 20 { // a map has no order
			if again := Extension(known); again != one {
				t.Errorf("%s: %s and %s", known, one, again)
			}
		}
	}
	if got := Extension("text/nobody"); got != ".bin" {
		t.Error(got)
	}
}
