// Package kernel knows the Linux kernel that rehearsals in virtual time run in:
// what it is built from, and where it lies once built. The script build beside
// this file builds it; nothing here does.
package kernel

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

//go:embed build config sources patches/*.patch tcpcc/*
var files embed.FS

// Kernel is a kernel that is there.
type Kernel struct {
	Path    string
	Version string // the kernel's own word, such as 7.3.4
	// Configuration is the hash of all that it is built from, or of the file
	// itself where somebody named one that lies where no kernel is built.
	Configuration string
}

// Build is how the kernel is built, for messages.
const Build = "make kernel"

// ErrNone is returned when the kernel has not been built.
var ErrNone = errors.New("the kernel for virtual time has not been built")

// Find returns the kernel of the version that sources lists first.
func Find() (Kernel, error) {
	hash, err := hashOf("")
	if err != nil {
		return Kernel{}, err
	}
	path, err := Built(hash)
	if err != nil {
		return Kernel{}, err
	}
	return at(path, hash)
}

// Built is the file of the kernel that was built from what has this hash, which may be
// that of another version of Fieldmesh.
func Built(hash string) (string, error) {
	for _, dir := range folders() {
		path := filepath.Join(dir, hash, file)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", ErrNone
}

// file is what a kernel is called in the folder that bears its hash.
const file = "linux"

// folders are where kernels lie: the script's, where there is a home, and the package's.
func folders() []string {
	const packaged = "/usr/lib/fieldmesh/kernel"
	if cache, err := os.UserCacheDir(); err == nil {
		return []string{filepath.Join(cache, "fieldmesh/kernel"), packaged}
	}
	return []string{packaged}
}

// At is the kernel in a file. One that was built, by whatever version of Fieldmesh, is
// known by what it was built from, as Find knows it.
func At(path string) (Kernel, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Kernel{}, fmt.Errorf("find kernel: %w", err)
	}
	dir, name := filepath.Split(path)
	if dir = filepath.Clean(dir); name == file && slices.Contains(folders(), filepath.Dir(dir)) {
		return at(path, filepath.Base(dir))
	}
	hash, err := FileHash(path)
	if err != nil {
		return Kernel{}, err
	}
	return at(path, hash)
}

// FileHash is the hash of a kernel's file.
func FileHash(path string) (string, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("find kernel: %w; `make kernel` builds one, and --kernel names its file", err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])[:hashDigits], nil
}

func at(path, hash string) (Kernel, error) {
	out, err := exec.Command(path, "--version").Output() //nolint:gosec // a file that the user has built or named
	if err != nil {
		return Kernel{}, fmt.Errorf("ask kernel %q for its version: %w; name one that `make kernel` built", path, err)
	}
	return Kernel{Path: path, Version: strings.TrimSpace(string(out)), Configuration: hash}, nil
}

// congestion are the kernel's own congestion controls that it is built with. The
// only others in it are tcpcc's: it has no modules, and no BPF that could be one.
func congestion() ([]string, error) {
	text, err := files.ReadFile("config")
	if err != nil {
		return nil, fmt.Errorf("read the kernel's configuration: %w", err)
	}
	out := []string{"reno"}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, "CONFIG_TCP_CONG_")
		if name, set := strings.CutSuffix(name, "=y\n"); ok && set && name != "ADVANCED" {
			out = append(out, strings.ToLower(name))
		}
	}
	return out, nil
}

// Check refuses trials that the kernel cannot run, before it is started. What
// else a node lacks, its preflight says.
func Check(trials []wire.Trial) error {
	has, err := congestion()
	if err != nil {
		return err
	}
	for _, program := range tcpcc.Programs() {
		if !slices.Contains(has, program) {
			has = append(has, program)
		}
	}
	for _, t := range trials {
		if variant := t.TCP.Variant; variant != "sack" && !slices.Contains(has, variant) {
			return fmt.Errorf("trial %d wants TCP variant %s, which the kernel in virtual time is not built with. It "+
				"has %s: choose one of them, or rehearse with --clock real", t.Number, variant, strings.Join(has, ", "))
		}
	}
	return nil
}

// hashDigits is how much of a SHA-256 names a kernel.
const hashDigits = 16

// hashOf is the hash of all that a version is built from, as build computes it;
// "" is the first that sources lists.
func hashOf(version string) (string, error) {
	line, err := source(version)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write([]byte(line + "\n"))
	names := []string{"build", "config"}
	for _, folder := range []string{"patches", "tcpcc"} {
		entries, err := files.ReadDir(folder)
		if err != nil {
			return "", fmt.Errorf("list the kernel's sources: %w", err)
		}
		for _, e := range entries { // in order, as the script has them
			names = append(names, folder+"/"+e.Name())
		}
	}
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read the kernel's sources: %w", err)
		}
		h.Write(body)
	}
	h.Write(tcpcc.SourceList())
	return hex.EncodeToString(h.Sum(nil))[:hashDigits], nil
}

// source is the line of sources about a version.
func source(version string) (string, error) {
	text, err := files.ReadFile("sources")
	if err != nil {
		return "", fmt.Errorf("read the kernel's sources: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "#") && (version == "" || strings.HasPrefix(line, version+" ")) {
			return line, nil
		}
	}
	return "", fmt.Errorf("find kernel %q: sources does not list it", version)
}
