package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// What this test is made of is in its document, twice the same.
func TestEveryModuleIsListed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run([]string{"1.2.3", self}, out); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Errorf("two documents of one program differ:\n%s\n%s", first.String(), second.String())
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range *bom.Components {
		listed[c.PackageURL] = true
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("this test has no modules")
	}
	for _, m := range info.Deps {
		if !listed["pkg:golang/"+m.Path+"@"+m.Version] {
			t.Errorf("%s %s is not listed", m.Path, m.Version)
		}
	}
	if !listed["pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go")] {
		t.Errorf("the standard library is not listed: %v", listed)
	}
}

// What lies beside a program that is not of Go says what it is made of.
func TestPartsOfAProgramInC(t *testing.T) {
	program := filepath.Join(t.TempDir(), "libiperf3.so")
	write := func(parts string) {
		t.Helper()
		err := errors.Join(os.WriteFile(program, nil, 0o644), os.WriteFile(program+".parts", []byte(parts), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	write("iperf3 3.22 BSD-3-Clause-LBNL\nmusl 1.2.5 MIT\n")
	if err := run([]string{"1.2.3", program}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name": "libiperf3.so"`, `"purl": "pkg:generic/iperf3@3.22"`,
		`"id": "BSD-3-Clause-LBNL"`, `"purl": "pkg:generic/musl@1.2.5"`, `"id": "MIT"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
	write("iperf3 3.22\n")
	if err := run([]string{"1.2.3", program}, &out); err == nil {
		t.Error("a part without a licence is listed")
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"1.2.3"}, {"1.2.3", "main.go"}, {"1.2.3", "nosuch"}} {
		var out bytes.Buffer
		if err := run(args, &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, %q", args, err, out.String())
		}
	}
}
