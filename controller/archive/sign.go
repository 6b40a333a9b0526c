package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/controller/archive/sums"
	"fieldmesh.dev/fieldmesh/internal/keys"
)

// What is signed, by the first line of the message.
const (
	signsRun  = "fieldmesh manifest 1\n"
	signsPlan = "fieldmesh plan 1\n"
)

// SignWith has the run's manifest signed with the controller's key, when it is
// finished. Of a run in which nothing has happened yet it seals the plan: its
// checksums are signed, and later ones are refused by Verify.
func (a *Archive) SignWith(identity keys.Identity) error {
	empty := a.Empty()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identity = &identity
	if a.lock == nil || !empty || a.disk.exists(planSums) {
		return nil
	}
	if err := a.sealPlan(); err != nil {
		return fmt.Errorf("seal the plan of run %q: %w", a.info.Run, err)
	}
	return nil
}

// sealPlan writes the plan's checksums, the signature first: a crash between leaves
// a signature that the next call replaces.
func (a *Archive) sealPlan() error {
	files := []string{runFile, campaignFile, scheduleFile}
	movement, err := a.disk.names(movementDir)
	if err != nil {
		return err
	}
	for _, name := range movement {
		files = append(files, filepath.Join(movementDir, name))
	}
	sums, err := a.disk.sums(".", files)
	if err != nil {
		return err
	}
	if err := a.disk.sign(*a.identity, planSignature, signsPlan, sums); err != nil {
		return err
	}
	return a.disk.replace(planSums, sums)
}

// sign writes who signs a text.
func (d disk) sign(identity keys.Identity, rel, as string, text []byte) error {
	signed, err := identity.Sign(append([]byte(as), text...))
	if err != nil {
		return err
	}
	return d.replaceJSON(rel, signed)
}

// Signature says who signed a text of an archive.
type Signature struct {
	SHA256 string // of the text that is signed
	Pin    string // of the key that signed it; "": it is not signed
}

// signature checks a signature. A text without one is not signed; one that is not
// there has no SHA256.
func (d disk) signature(rel, by, as string) (out Signature, err error) {
	if !d.exists(rel) {
		return out, nil
	}
	text, err := d.read(rel)
	if err != nil {
		return out, err
	}
	if out.SHA256, _, err = d.sum(rel); err != nil || !d.exists(by) {
		return out, err
	}
	raw, err := d.read(by)
	if err != nil {
		return out, err
	}
	var signed keys.Signed
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&signed); err != nil {
		return out, fmt.Errorf("read %s: %w", by, err)
	}
	out.Pin, err = signed.Check(append([]byte(as), text...))
	return out, err
}

// PlanSealed says by whom the plan was sealed before anything happened, and the
// SHA-256 of its checksums.
func (a *Archive) PlanSealed() (Signature, error) {
	return a.disk.signature(planSums, planSignature, signsPlan)
}

// Signed says by whom the run was signed when it was finished.
func (a *Archive) Signed() (Signature, error) {
	return a.disk.signature(manifestFile, manifestSignature, signsRun)
}

// signatures checks those of the run's own files.
func (c *check) signatures() {
	c.covered[manifestSignature] = true // it cannot be named by what it signs
	if c.disk.exists(manifestFile) && c.disk.exists(planSignature) && !c.disk.exists(manifestSignature) {
		c.found(manifestSignature, Missing, "the run's plan is signed")
	}
	c.signature(manifestFile, manifestSignature, signsRun)
	c.signature(planSums, planSignature, signsPlan)
	c.plan(".")
}

func (c *check) signature(rel, by, as string) {
	if !c.disk.exists(rel) {
		return // an unfinished run
	}
	if _, err := c.disk.signature(rel, by, as); err != nil {
		c.found(rel, Changed, err.Error())
	}
}

// plan compares a plan with what was sealed: that of the run, or of a shard in its
// folder. Where a shard kept no file of its own, it had that of the whole.
func (c *check) plan(dir string) {
	sums := filepath.Join(dir, planSums)
	if !c.disk.exists(sums) {
		if c.disk.exists(filepath.Join(dir, planSignature)) {
			c.found(sums, Missing, "its signature is there")
		}
		return
	}
	named, err := c.disk.named(sums)
	if err != nil {
		c.found(sums, Unreadable, err.Error())
		return
	}
	for _, must := range []string{runFile, campaignFile, scheduleFile} {
		if named[must] == "" {
			c.found(sums, Changed, "it does not name "+must)
		}
	}
	for rel, want := range named {
		at := rel
		if own := filepath.Join(dir, rel); c.disk.exists(own) {
			at = own
		}
		if sum, _, err := c.disk.sum(at); err == nil && sum != want {
			c.found(at, Changed, "it is not what was sealed before the first trial")
		}
	}
}

// named reads a manifest: files with their SHA-256.
func (d disk) named(rel string) (map[string]string, error) {
	raw, err := d.read(rel)
	if err != nil {
		return nil, err
	}
	files, wrong := sums.Parse(raw)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("not a line of a manifest: %.80q", wrong[0])
	}
	out := map[string]string{}
	for _, f := range files {
		out[f.Name] = f.SHA256
	}
	return out, nil
}
