package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// runner runs suites and keeps what they said.
type runner struct {
	mode Mode
	dir  string // compiled suites and the programs under test
	root bool

	mu      sync.Mutex
	results []*result // in the order in which they ended
}

// job is one process of a suite.
type job struct {
	suite   *result
	pattern string
	idle    bool
}

// result is the outcome of one suite.
type result struct {
	suite   Suite
	left    int     // processes that have not ended
	tookS   float64 // the processes' sum
	cpuS    float64 // of the processes and those that they waited for
	err     error
	cpuOf   map[string]float64
	output  []byte
	tests   []test
	overdue bool
}

func newRunner(m Mode) (*runner, error) {
	// Programs start their unprivileged half from here, so everybody may enter.
	dir, err := os.MkdirTemp("/var/tmp", "fieldmesh-suites-")
	if err != nil {
		return nil, err
	}
	r := &runner{mode: m, dir: dir, root: os.Geteuid() == 0}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if !r.root {
		r.say("the suites need root (namespaces, interfaces); sudo may ask for your password")
		sudo := exec.Command("sudo", "-v")
		sudo.Stdin, sudo.Stdout, sudo.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := sudo.Run(); err != nil {
			return nil, errors.Join(fmt.Errorf("become root: %w", err), os.RemoveAll(dir))
		}
	}
	return r, nil
}

func (r *runner) close() {
	if err := os.RemoveAll(r.dir); err != nil {
		r.say("remove %s: %v", r.dir, err)
	}
}

func (r *runner) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "suites: "+format+"\n", args...)
}

// build compiles the programs once for every suite, and every suite, so that
// none runs beside the compiler. The tags are the Makefile's: what the programs
// and the tests share is compiled once.
func (r *runner) build(ctx context.Context, list []Suite) error {
	const tags = "nethttpomithttp2"
	jobs := [][]string{{"build", "-trimpath", "-tags", tags, "-ldflags", "-s -w -buildid=", "-o", r.dir + "/",
		"./cmd/fieldmesh", "./cmd/fieldmesh-agent"}}
	for _, s := range list {
		if s.isPackage() {
			jobs = append(jobs, []string{"test", "-tags", "e2e," + tags, "-vet=off", "-ldflags", "-s -w", "-c", "-o",
				r.program(s), "./" + s.Name})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(3) // a linker mostly uses one processor
	for _, args := range jobs {
		group.Go(func() error {
			c := exec.CommandContext(ctx, "go", args...)
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(out))
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *runner) program(s Suite) string {
	// Tests name folders after their program, and sockets' paths are short.
	return filepath.Join(r.dir, strings.ReplaceAll(s.Name, "/", "-"), filepath.Base(s.Name)+".test")
}

// queue is the processes of the suites of a need, for as many lanes as take from it.
type queue struct {
	jobs  chan job
	ended sync.WaitGroup
}

// runAll runs the suites, lane by lane side by side.
func (r *runner) runAll(ctx context.Context, list []Suite) error {
	these := lanes
	if r.mode == bench {
		these = oneByOne
	}
	queues := map[Need]*queue{} // all are made before anything runs
	for _, p := range slices.Concat(these...) {
		if queues[p.need] != nil {
			continue
		}
		jobs, err := r.jobs(list, p)
		if err != nil {
			return err
		}
		q := &queue{jobs: make(chan job, len(jobs))}
		q.ended.Add(len(jobs))
		for _, j := range jobs {
			q.jobs <- j
		}
		close(q.jobs)
		queues[p.need] = q
	}
	var running sync.WaitGroup
	for _, lane := range these {
		running.Go(func() {
			for _, p := range lane {
				r.pool(ctx, p, queues[p.need], len(list))
			}
		})
	}
	running.Wait()
	return nil
}

// pool runs jobs, as many at a time as the pool may, and returns when those that
// other lanes took have ended too.
func (r *runner) pool(ctx context.Context, p pool, q *queue, of int) {
	for range p.atATime {
		go func() {
			for j := range q.jobs {
				r.one(ctx, j, of)
				q.ended.Done()
			}
		}()
	}
	q.ended.Wait()
}

// jobs lists the processes of the suites of a pool, those first that take longest:
// one that is begun last is waited for alone.
func (r *runner) jobs(list []Suite, of pool) (out []job, err error) {
	var rest []job
	for _, s := range list {
		if s.Need != of.need {
			continue
		}
		patterns := []string{""}
		if s.isPackage() {
			if patterns, err = s.patterns(r.mode); err != nil {
				return nil, err
			}
		}
		res := &result{suite: s, left: len(patterns), cpuOf: map[string]float64{}}
		for _, p := range patterns {
			j := job{suite: res, pattern: p, idle: of.idle}
			if slices.Contains(s.First, strings.Trim(p, "^()$")) {
				out = append(out, j)
			} else {
				rest = append(rest, j)
			}
		}
	}
	return append(out, rest...), nil
}

// one runs a process of a suite, and says how the suite went when it was its
// last.
func (r *runner) one(ctx context.Context, j job, of int) {
	c, err := r.command(ctx, j)
	var out bytes.Buffer
	began := time.Now()
	if err == nil {
		var to io.Writer = &out
		if r.mode == bench || r.mode == soak {
			to = io.MultiWriter(&out, os.Stdout)
		}
		c.Stdout, c.Stderr = to, to
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = time.Minute
		err = c.Run()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	res := j.suite
	res.tookS += time.Since(began).Seconds()
	if c != nil && c.ProcessState != nil {
		cpuS := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
		res.cpuS += cpuS
		if res.suite.Need == waiting {
			res.cpuOf[strings.Trim(j.pattern, "^()$")] = cpuS
		}
	}
	res.err = errors.Join(res.err, err)
	res.output = append(res.output, out.Bytes()...)
	if res.left--; res.left > 0 {
		return
	}
	budget := res.suite.budgetS(r.mode)
	res.tests = testsIn(res.output)
	res.overdue = budget > 0 && res.tookS > overdueFactor*budget
	r.results = append(r.results, res)
	fmt.Printf("%s [%d/%d]\n", res.line(budget), len(r.results), of)
	if res.err != nil {
		fmt.Printf("%s\nFAIL\t%s\t%v\n\n", bytes.TrimSpace(res.failure()), res.suite.Name, res.err)
	}
}

// command returns a process of a suite.
func (r *runner) command(ctx context.Context, j job) (*exec.Cmd, error) {
	args, env, err := r.arguments(j)
	if err != nil {
		return nil, err
	}
	if j.idle {
		args = append([]string{"chrt", "--idle", "0"}, args...)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	if j.suite.suite.isPackage() {
		c.Dir = j.suite.suite.Name
	}
	c.Env = append(os.Environ(), env...)
	return c, nil
}

// arguments returns a process's program, its arguments, and what it needs of an
// environment beyond this one's.
func (r *runner) arguments(j job) (args, env []string, err error) {
	s := j.suite.suite
	switch {
	case s.Name == "app":
		options := "-Dfieldmesh.pictures=false" // nobody looks at them
		if r.mode == all {
			options = "-Pall"
		}
		args = []string{"make", "app-verify", "MAVEN_OPTIONS=" + options}
		// Two busy suites are two threads: more would leave a guest, in whose tests deadlines run, a small share.
		return args, []string{"JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=1"}, nil
	case !s.isPackage():
		if r.mode == short && len(s.Long) > 0 {
			env = append(env, "FIELDMESH_GUEST_SKIP=^("+strings.Join(s.Long, "|")+")$")
		}
		if r.mode == soak {
			env = append(env, soakVariable+"=1")
		}
		return append([]string{"scripts/guest", "suites"}, strings.Split(s.Name, "-")[1:]...), env, nil
	}
	limit := map[Mode]string{soak: "6h", bench: "1h"}[r.mode]
	if limit == "" {
		limit = "30m"
	}
	args = []string{r.program(s), "-test.v", "-test.run", j.pattern, "-test.timeout", limit}
	env = []string{"FIELDMESH_PROGRAMS=" + r.dir}
	switch r.mode {
	case soak:
		env = append(env, soakVariable+"=1")
	case bench:
		env = append(env, benchVariable+"=1")
	}
	if !r.root {
		if env, err = rootEnvironment(env); err != nil {
			return nil, nil, err
		}
		args = append(append([]string{"sudo", "-n", "--", "env"}, env...), args...)
	}
	return args, env, nil
}

// rootEnvironment adds what a test needs of the user's environment under sudo.
// A Go cache of root's own keeps files that only root may change out of the
// user's.
func rootEnvironment(env []string) ([]string, error) {
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env = append(env, "GOMODCACHE="+strings.TrimSpace(string(modules)), "GOCACHE="+here+"/.tools/go-cache-root",
		"CGO_ENABLED=0")
	for _, name := range []string{"PATH", "GOFLAGS", "GOTOOLCHAIN", "FIELDMESH_SEED", "FIELDMESH_ATTEMPTS"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}
