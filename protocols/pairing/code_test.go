package pairing_test

import (
	"errors"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

var (
	pin   = strings.Repeat("0123456789abcdef", 4)
	other = strings.Repeat("fedcba9876543210", 4)
)

func newCode(t *testing.T, address string) pairing.Code {
	t.Helper()
	c, err := pairing.New(address, pin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACodeIsReadAsItWasShown(t *testing.T) {
	for _, address := range []string{"192.168.8.2:7447", "laptop.local:1", "[fe80::1]:65535"} {
		c := newCode(t, address)
		lower := strings.ToLower(c.Groups())
		spaced := strings.ReplaceAll(c.Groups(), "-", " ") + "\n"
		for _, text := range []string{c.String(), c.Groups(), lower, strings.Replace(spaced, "FIELDMESH PAIR",
			"FIELDMESH-PAIR", 1)} {
			back, err := pairing.Parse(text)
			if err != nil || back != c {
				t.Errorf("%q is read as %+v, %v", text, back, err)
			}
		}
		if !c.Is(pin) || c.Is(other) || c.Is("") {
			t.Error("the hash is not the pin's")
		}
	}
	if first, second := newCode(t, "a:1"), newCode(t, "a:1"); first == second {
		t.Error("two codes are the same")
	}
}

// Every single letter that is mistyped is noticed before anybody is asked.
func TestAMistypedLetterIsNoticed(t *testing.T) {
	text := newCode(t, "192.168.8.2:7447").String()
	start := strings.LastIndexByte(text, '/') + 1
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	for i := start; i < len(text); i++ {
		for _, letter := range letters {
			if byte(letter) == text[i] {
				continue
			}
			wrong := text[:i] + string(letter) + text[i+1:]
			if _, err := pairing.Parse(wrong); !errors.Is(err, pairing.ErrMistyped) {
				t.Fatalf("%s for %s: %v", wrong, text, err)
			}
		}
	}
	for _, bad := range []string{"", "hello", text[:len(text)-1], text + "A", "FIELDMESH-PAIR//" + text[start:],
		"FIELDMESH-PAIR/a:0/" + text[start:], "FIELDMESH-PAIR/a b;c:9/" + text[start:]} {
		if _, err := pairing.Parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	c, err := pairing.New("192.168.8.2:7447", pin)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.String())
	f.Add(c.Groups())
	f.Add("FIELDMESH-PAIR/[::1]:1/" + strings.Repeat("A", 56))
	fuzz.Run(f, func(t *testing.T, text string) {
		c, err := pairing.Parse(text)
		if err != nil {
			return
		}
		if back, err := pairing.Parse(c.Groups()); err != nil || back != c {
			t.Errorf("%q: %+v reads back as %+v, %v", text, c, back, err)
		}
	})
}

// A proof is for one code, two keys, one name, one role and one direction.
//
//attack:network a proof that was seen, for another key, name or role | the proof is over both keys, name and role
func TestAProofIsForNothingElse(t *testing.T) {
	c := newCode(t, "a:1")
	r := pairing.Request{Version: 1, Name: "car", Role: wire.RoleNode, Listen: ":7443"}
	r.Proof = c.Prove(pin, other, r)
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	if !c.Proves(pin, other, r) {
		t.Error("a right proof is refused")
	}
	renamed, promoted, moved := r, r, r
	renamed.Name, promoted.Role, moved.Listen = "van", wire.RoleApp, ":1"
	for name, taken := range map[string]bool{
		"another code": newCode(t, "a:1").Proves(pin, other, r), "keys swapped": c.Proves(other, pin, r),
		"another new key": c.Proves(pin, pin, r),
		"another name":    c.Proves(pin, other, renamed), "another role": c.Proves(pin, other, promoted),
		"another port":        c.Proves(pin, other, moved),
		"as the controller's": c.Admits(pin, other, pairing.Reply{Proof: r.Proof, Name: r.Name, Role: r.Role}),
	} {
		if taken {
			t.Errorf("the proof is good for %s", name)
		}
	}
}

// The example of README.md, for whoever writes the other side in another language.
func TestTheExampleInTheText(t *testing.T) {
	c, err := pairing.Parse("FIELDMESH-PAIR/192.168.8.2:7447/AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Is(pin) {
		t.Error("the example's hash is not that of its pin")
	}
	got := c.Prove(pin, other, pairing.Request{Role: wire.RoleApp})
	if want := "8bf99f7605caddef4924729dd24f72a3806d8dcf966e818f4fdc193c86ffbdbd"; got != want {
		t.Errorf("the example's proof is %s, the text says %s", got, want)
	}
	got = c.Admit(pin, other, pairing.Reply{Name: "phone", Role: wire.RoleApp})
	if want := "dc449660fd5b0db511349ac15b346df1b17ac9573db6f844e847165a7c0f7765"; got != want {
		t.Errorf("the example's answer is %s, the text says %s", got, want)
	}
}
