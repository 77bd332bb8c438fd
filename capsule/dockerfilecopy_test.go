package capsule

import "testing"

func TestWhereADockerfileCopiesTheContext(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"as the templates do", "FROM aod/base\nCOPY . /capsule\n", "/capsule"},
		{"with settings behind it", "FROM x\nRUN apt-get update\nCOPY ./ /a/b/\nENV A=b\nUSER 1\nCMD [\"x\"]\n", "/a/b"},
		{"beside files of another stage", "FROM go AS b\nRUN go\nFROM x\nCOPY --from=b /x /y\nCOPY . /c", "/c"},
		{"not where something is made of the copies", "FROM x\nCOPY . /c\nRUN make", ""},
		{"not in a stage before the last", "FROM x AS b\nCOPY . /c\nFROM y\nCOPY --from=b /c /c", ""},
		{"not twice", "FROM x\nCOPY go.mod /c/\nCOPY . /c", ""},
		{"not a part", "FROM x\nCOPY src /c", ""},
		{"not with an owner", "FROM x\nCOPY --chown=1 . /c", ""},
		{"not to a place that the image decides", "FROM x\nWORKDIR /c\nCOPY . .", ""},
		{"not to a variable", "FROM x\nCOPY . /$A", ""},
		{"not in another form", "FROM x\nCOPY [\".\", \"/c\"]", ""},
		{"not where a step mounts it", "FROM x\nRUN --mount=type=bind,target=/s make\nCOPY . /c", ""},
		{"not by ADD", "FROM x\nADD . /c", ""},
		{"not before a volume", "FROM x\nCOPY . /c\nVOLUME /c", ""},
		{"not for images that are built on it", "FROM x\nONBUILD COPY . /d\nCOPY . /c", ""},
		{"nothing at all", "FROM x\nCMD x", ""},
	} {
		unit := Capsule{dockerfile: parseDockerfile([]byte(c.text))}
		if got, ok := unit.CopiedTo(); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
