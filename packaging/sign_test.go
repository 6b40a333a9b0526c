package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What is handed out is checked by a stranger with ssh-keygen and sha256sum.
//
//attack:network a download in which programs, and their checksums too, were exchanged | SHA256SUMS is signed by the
//attack:and maintainer's key, which ssh-keygen checks
func TestSumsAreSignedForSSHKeygen(t *testing.T) {
	testnet.Need(t, "ssh-keygen", "bash")
	dir := t.TempDir()
	key, sums := filepath.Join(dir, "key"), filepath.Join(dir, "SHA256SUMS")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := func(kind, path string) {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	sign := func(by string) (string, error) {
		c := exec.Command("./sign", dir)
		c.Env = append(os.Environ(), "FIELDMESH_SIGNING_KEY="+by)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	made("ed25519", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "signers"), "fieldmesh "+string(public))
	check := func() error {
		c := exec.Command("ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "fieldmesh", "-n", "fieldmesh-dist",
			"-s", "SHA256SUMS.sig")
		c.Dir, c.Stdin = dir, opened(t, sums)
		return c.Run()
	}
	write(sums, "00  fieldmesh\n")
	if out, err := sign(key); err != nil || check() != nil {
		t.Fatalf("signed with %v, checked with %v\n%s", err, check(), out)
	}
	write(sums, "11  fieldmesh\n")
	if check() == nil {
		t.Error("sums that were exchanged are taken")
	}
	made("ed25519", filepath.Join(dir, "other"))
	if out, err := sign(filepath.Join(dir, "other")); err != nil || check() == nil {
		t.Errorf("sums that another key signed (%v) are taken\n%s", err, out)
	}
	if out, err := sign(""); err != nil || !strings.Contains(out, "is not signed") {
		t.Errorf("without a key: %v\n%s", err, out)
	}
	if _, err := os.Stat(sums + ".sig"); err == nil {
		t.Error("the signature of other sums is left")
	}
	made("ecdsa", filepath.Join(dir, "ecdsa"))
	for _, bad := range []string{filepath.Join(dir, "ecdsa"), filepath.Join(dir, "nowhere")} {
		if out, err := sign(bad); err == nil {
			t.Errorf("signed by %s\n%s", bad, out)
		}
	}
}

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
