package supply

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const script = "../../android-app/maven"

// build is a folder with the script of the app's builds, two registries, the user's own
// repository, and a Maven that says how it was called.
type build struct {
	dir, home, central, google string
}

const (
	library  = "org/lib/1/lib-1.jar"
	plugin   = "com/android/tool/2/tool-2.jar"
	platform = "org/platform/3/platform-3.jar" // of the profile all alone
)

func newBuild(t *testing.T) build {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	top := t.TempDir()
	b := build{filepath.Join(top, "app"), filepath.Join(top, "home"), filepath.Join(top, "central"),
		filepath.Join(top, "google")}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	put(t, b.dir, "maven", string(text))
	put(t, filepath.Join(top, "bin"), "mvn", "#!/bin/sh\necho \"$@\" >\""+b.dir+"/called\"\n")
	put(t, b.dir, "pom.xml", "<repositories>\n"+
		"  <repository><id>central</id><url>file://"+b.central+"</url></repository>\n"+
		"  <repository><id>google</id><url>file://"+b.google+"</url></repository>\n</repositories>\n")
	put(t, b.dir, "sums", fmt.Sprintf("%x  %s\n%x  %s\n", sha256.Sum256([]byte("a tool")), plugin,
		sha256.Sum256([]byte("a library")), library))
	put(t, b.dir, "sums.all", fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("a platform")), platform))
	put(t, b.central, library, "a library")
	put(t, b.central, platform, "a platform")
	put(t, b.google, plugin, "a tool")
	return b
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run builds. Called is how Maven was called, "" for not at all.
func (b build) run(t *testing.T, options ...string) (called, said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", slices.Concat([]string{filepath.Join(b.dir, "maven")}, options,
		[]string{"verify"})...)
	cmd.Env = append(os.Environ(), "HOME="+b.home,
		"PATH="+filepath.Join(filepath.Dir(b.dir), "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(filepath.Join(b.dir, "called"))
	_ = os.Remove(filepath.Join(b.dir, "called"))
	return string(text), string(out), err
}

// builds checks that a build succeeds, without a network, on the listed files and no others.
func (b build) builds(t *testing.T) {
	t.Helper()
	ours := filepath.Join(b.dir, ".repository")
	called, said, err := b.run(t)
	if err != nil || called != "-o -B -q -Dmaven.repo.local="+ours+" verify\n" {
		t.Fatalf("Maven is called with %q (%v): %s", called, err, said)
	}
	for path, want := range map[string]string{library: "a library", plugin: "a tool"} {
		if text, err := os.ReadFile(filepath.Join(ours, path)); err != nil || string(text) != want {
			t.Errorf("%s is %q, want %q (%v)", path, text, want, err)
		}
	}
	var found []string
	for _, pattern := range []string{"*/*/*/*", "*/*/*/*/*"} {
		files, err := filepath.Glob(filepath.Join(ours, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	found = slices.DeleteFunc(found, func(path string) bool { return !strings.HasSuffix(path, ".jar") })
	if len(found) != 2 {
		t.Errorf("the repository has %q", found)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, ".repository.*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func (b build) refuses(t *testing.T, why string) {
	t.Helper()
	called, said, err := b.run(t)
	if err == nil || called != "" || !strings.Contains(said, why) {
		t.Errorf("Maven is called with %q (%v), and %q does not say %q", called, err, said, why)
	}
}

func TestMavenIsGivenWhatIsListed(t *testing.T) {
	b := newBuild(t)
	b.builds(t)
	if err := os.RemoveAll(b.central); err != nil {
		t.Fatal(err)
	}
	b.builds(t) // from what it has
}

// What only the long tests need is fetched for them alone, and no build minds that it is there.
func TestMavenIsGivenMoreForTheProfileAll(t *testing.T) {
	b := newBuild(t)
	own := filepath.Join(b.dir, ".repository", platform)
	b.builds(t)
	if _, err := os.Stat(own); err == nil {
		t.Errorf("%s is fetched for every build", platform)
	}
	if called, said, err := b.run(t, "-Pall"); err != nil || !strings.HasSuffix(called, " -Pall verify\n") {
		t.Fatalf("Maven is called with %q (%v): %s", called, err, said)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "a platform" {
		t.Errorf("%s is %q (%v)", platform, text, err)
	}
	if called, said, err := b.run(t); err != nil || called == "" {
		t.Errorf("Maven is called with %q (%v): %s", called, err, said)
	}
	put(t, filepath.Dir(own), filepath.Base(own), "another platform")
	b.refuses(t, platform+": FAILED")
}

func TestMavensOwnRepositoryIsUsedFirst(t *testing.T) {
	b := newBuild(t)
	own := filepath.Join(b.home, ".m2", "repository")
	put(t, own, library, "a library")
	put(t, own, plugin, "a tool")
	put(t, own, "org/older/1/older-1.jar", "of another build")
	for _, registry := range []string{b.central, b.google} {
		if err := os.RemoveAll(registry); err != nil {
			t.Fatal(err)
		}
	}
	b.builds(t)
}

//attack:network an archive of a registry, or of the user's Maven, that was changed, to be run by the app's build | the
//attack:and build has a repository of its own, into which comes only what has the SHA-256 of a committed list
func TestChangedArchivesAreNotRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(b build)
		why   string // "" for a build that is not touched by it
	}{
		{"in a registry", func(b build) { put(t, b.google, plugin, "another tool") },
			plugin + " was fetched, and its SHA-256 is not the one in sums"},
		{"in no registry", func(b build) { _ = os.Remove(filepath.Join(b.central, library)) },
			library + " could not be fetched"},
		{"in Maven's own", func(b build) {
			put(t, filepath.Join(b.home, ".m2", "repository"), plugin, "another tool")
		}, ""},
		{"in ours", func(b build) { put(t, filepath.Join(b.dir, ".repository"), plugin, "another tool") },
			plugin + ": FAILED"},
		{"beside ours", func(b build) { put(t, filepath.Join(b.dir, ".repository"), "org/lib/2/lib-2.jar", "newer") },
			"org/lib/2/lib-2.jar"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuild(t)
			c.plant(b)
			if c.why == "" {
				b.builds(t)
				return
			}
			b.refuses(t, c.why)
			b.refuses(t, c.why) // nor the next time
		})
	}
	t.Run("after the first build", func(t *testing.T) {
		b := newBuild(t)
		b.builds(t)
		put(t, filepath.Join(b.dir, ".repository"), library, "another library")
		b.refuses(t, library+": FAILED")
	})
}
