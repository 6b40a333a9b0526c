package cmd

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/pairing"
)

func TestCodesAreReadFromStandardInput(t *testing.T) {
	code, err := pairing.New("192.168.8.2:7447", strings.Repeat("0123456789abcdef", 4))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"": "no code was given", "\n": "no code was given",
		"hello\n":                            "a code begins with FIELDMESH-PAIR/; `fieldmesh keys pair` shows one",
		code.String():                        "",
		code.Groups():                        "",
		"  " + code.Groups() + " \r\nmore\n": "",
		"FIELDMESH-PAIR/192.168.8.2:7447/ABCD-EFGH\n":        "a letter of the code is wrong or missing",
		code.String() + strings.Repeat("A", 2*codeBytesMost): "a letter of the code is wrong or missing",
	} {
		c := PairCommand()
		c.SetIn(strings.NewReader(in))
		got, err := readCode(c)
		if want == "" && (err != nil || got.String() != code.String()) || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q is read as %s, %v; want %q", in, got, err, want)
		}
	}
}
