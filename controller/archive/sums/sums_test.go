package sums

import (
	"slices"
	"strings"
	"testing"
)

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	files := []File{{"run.json", sum, 12}, {"trials/0001-a1/MANIFEST.sha256", sum, 0}, {"a  b", sum, 1 << 40}}
	if got, wrong := Parse(Text(files)); !slices.Equal(got, files) || len(wrong) > 0 {
		t.Errorf("%v, wrong %q", got, wrong)
	}
	want := "# 12 bytes: run.json\n" + sum + "  run.json\n"
	if text := string(Text(files[:1])); text != want {
		t.Errorf("%q", text)
	}
}

func TestLinesThatAreOfNoManifest(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	text := strings.Join([]string{"# a remark", "# 3 bytes: journal.ndjson", "",
		sum + " run.json", sum + "  ../run.json", sum + "  /run.json",
		sum[1:] + "  run.json", sum + "  run.json"}, "\n")
	files, wrong := Parse([]byte(text))
	if !slices.Equal(files, []File{{"run.json", sum, -1}}) || len(wrong) != 6 {
		t.Errorf("%v, wrong %q", files, wrong)
	}
}
