// Command sbom writes what built programs are made of, as the linker has it in
// them: a CycloneDX document, the same for the same programs. Beside a program that
// is not of Go lies a file PROGRAM.parts, with a line for each part: name, version
// and licence by SPDX.
//
//	sbom VERSION PROGRAM… > sbom.cdx.json
package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("want a version and built programs")
	}
	bom, err := describe(args[0], args[1:])
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// describe lists the programs, and the modules and the standard library that are
// in any of them.
func describe(version string, programs []string) (*cdx.BOM, error) {
	bom := cdx.NewBOM()
	whole := "fieldmesh@" + version
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: whole, Type: cdx.ComponentTypeApplication,
		Name: "fieldmesh", Version: version}}
	parts := map[string]cdx.Component{}
	var names []string
	var needs []cdx.Dependency
	for _, file := range programs {
		all, err := partsOf(file)
		if err != nil {
			return nil, fmt.Errorf("read what is in %q: %w", file, err)
		}
		name := filepath.Base(file)
		names = append(names, name)
		parts[name] = cdx.Component{BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: version}
		in := map[string]bool{}
		for _, m := range all {
			parts[m.BOMRef], in[m.BOMRef] = m, true
		}
		needs = append(needs, cdx.Dependency{Ref: name, Dependencies: new(slices.Sorted(maps.Keys(in)))})
	}
	needs = append(needs, cdx.Dependency{Ref: whole, Dependencies: &names})
	bom.Components = new(slices.SortedFunc(maps.Values(parts), func(a, b cdx.Component) int {
		return cmp.Compare(a.BOMRef, b.BOMRef)
	}))
	bom.Dependencies = &needs
	return bom, nil
}

// partsOf lists what a program is made of.
func partsOf(file string) ([]cdx.Component, error) {
	text, err := os.ReadFile(file + ".parts")
	if errors.Is(err, fs.ErrNotExist) {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return modules(info), nil
	}
	if err != nil {
		return nil, err
	}
	var out []cdx.Component
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("%q is not name, version and licence", line)
		}
		url := "pkg:generic/" + f[0] + "@" + f[1]
		out = append(out, cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: f[0], Version: f[1],
			PackageURL: url, Licenses: &cdx.Licenses{{License: &cdx.License{ID: f[2]}}}})
	}
	return out, nil
}

// modules are those that a program was built of, replaced ones as they really are.
func modules(info *debug.BuildInfo) []cdx.Component {
	out := []cdx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		out = append(out, module(m.Path, m.Version))
	}
	return out
}

func module(name, version string) cdx.Component {
	url := "pkg:golang/" + name + "@" + version
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url}
}
